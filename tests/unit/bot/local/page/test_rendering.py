from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.local.model.messages import LocalMessage, MessageLog, rich_text
from bot.local.page.rendering import (
    as_slack_text,
    block_view,
    markdown_html,
    message_view,
    modal_view,
    mrkdwn_html,
    plain_html,
    rich_html,
    text_html,
)
from tests.support.html_parts import HtmlParts

NAMES = {"U0ORION": "Orion", "U0RELEASE": "Release manager", "C0HELP": "help"}
# fmt: off
ALLOWED = {
    "div", "span", "strong", "em", "s", "code", "pre", "blockquote", "br", "a", "p", "ul", "ol", "li",
    "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td", "hr", "del",
}
# fmt: on


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("*bold* _it_ ~off~ `code`", "<strong>bold</strong> <em>it</em> <s>off</s> <code>code</code>"),
        ("*a _b_ c*", "<strong>a <em>b</em> c</strong>"),
        ("2*3*4 snake_case_name a~b~c", "2*3*4 snake_case_name a~b~c"),
        ("* not bold * and ** neither", "* not bold * and ** neither"),
        ("`*raw* &lt;b&gt;`", "<code>*raw* &lt;b&gt;</code>"),
        ("a &amp; b &lt;c&gt;", "a &amp; b &lt;c&gt;"),
        ("<b>bold</b> & co", "&lt;b&gt;bold&lt;/b&gt; &amp; co"),
        ("<@U0ORION> hi", '<span class="mention" data-id="U0ORION">@Orion</span> hi'),
        ("<#C0HELP|help>", '<span class="mention channel" data-id="C0HELP">#help</span>'),
        ("<!here> <!date^1^{date}|soon>", '<span class="mention broadcast">@here</span> soon'),
        ("<!subteam^S1|@ops>", '<span class="mention">@ops</span>'),
        ("<javascript:alert(1)|x>", "&lt;javascript:alert(1)|x&gt;"),
        (":eyes: :unknown_one: 10:30:00", "👀 :unknown_one: 10:30:00"),
        (
            "<https://a.example/x?a=1&amp;b=2|A *title*>",
            '<a href="https://a.example/x?a=1&amp;b=2" target="_blank" rel="noopener noreferrer">A *title*</a>',
        ),
        (
            "see https://a.example/x.",
            'see <a href="https://a.example/x" target="_blank" rel="noopener noreferrer">https://a.example/x</a>.',
        ),
        (
            "<mailto:a@b.example|write>",
            '<a href="mailto:a@b.example" target="_blank" rel="noopener noreferrer">write</a>',
        ),
    ],
)
def test_mrkdwn_looks_as_in_slack(text: str, html: str) -> None:
    assert mrkdwn_html(text, NAMES).removeprefix('<div class="line">').removesuffix("</div>") == html


def test_fences_quotes_bullets_and_gaps_are_recognised() -> None:
    quoted, items = "&gt; quoted\n> more", "• one\n  ◦ two\n1. three"
    html = mrkdwn_html(f"intro\n```\n*raw* <https://a.example|x>\n```\n{quoted}\n\n{items}", NAMES)
    assert "<pre><code>*raw* https://a.example</code></pre>" in html
    assert "<blockquote>quoted<br>more</blockquote>" in html
    assert '<div class="gap"></div>' in html
    assert '<div role="list"><div class="line item depth0" role="listitem"><span class="sign">• </span>' in html
    assert 'role="listitem"><span class="sign">◦ </span><span>two</span></div>' in html
    assert "line item depth1" in html
    assert '<span class="sign">1. </span>' in html


PIECES = [
    *"*_~`<>&|@#!:;\"'/\\ \n\x00abc1()[]{}=-.",
    *("<script>", "javascript:", "onerror=", "http://", "```", "&lt;", "&#60;"),
]
NASTY = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


@given(NASTY)
@example("<http://x|<img src=x onerror=alert(1)>>")
@example('<http://x" onmouseover="alert(1)|y>')
@example("\x000\x00`a`")
def test_no_message_makes_markup_of_its_own(text: str) -> None:
    for html in (mrkdwn_html(text, NAMES), plain_html(text), markdown_html(text, NAMES)):
        found = HtmlParts(html)
        assert found.tags <= ALLOWED
        assert found.attributes <= {"class", "href", "target", "rel", "data-id", "start", "style"}
        assert all(link.lower().startswith(("http://", "https://", "mailto:")) for link in found.links)


@given(st.text(alphabet="abc *_~\n•-<>&", max_size=80))
def test_plain_words_are_never_lost(text: str) -> None:
    shown = HtmlParts(mrkdwn_html(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"), {})).shown
    assert [one for one in shown if one in "abc"] == [one for one in text if one in "abc"]


def test_markdown_blocks_show_mentions_tables_and_images_as_links() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |"
    links = "![chart](https://a.example/c.png) [bad](javascript:x) <b>raw</b>"
    html = markdown_html(f"**b** ~~s~~ <@U0ORION>\n\n{table}\n\n{links}", NAMES)
    assert "<strong>b</strong> <s>s</s>" in html
    assert ">@Orion</span>" in html
    assert "<td>1</td>" in html
    assert '<a href="https://a.example/c.png"' in html
    assert "<img" not in html
    assert "javascript:x" not in HtmlParts(html).links
    assert "&lt;b&gt;raw" in html
    assert "<a>" in markdown_html("[x](ftp://a.example)", NAMES)


def test_rich_text_shows_its_parts() -> None:
    part = {
        "type": "rich_text_list", "style": "ordered",
        "elements": [{"type": "rich_text_section", "elements": [
            {"type": "text", "text": "a<b", "style": {"bold": True, "code": True}},
            {"type": "user", "user_id": "U0ORION"}, {"type": "channel", "channel_id": "C0HELP"},
            {"type": "link", "url": "https://a.example", "text": "t"},
        ]}],
    }  # fmt: skip
    html = rich_html(part, NAMES)
    assert html.startswith("<ol><li><strong><code>a&lt;b</code></strong>")
    assert "@Orion" in html
    assert "#help" in html
    assert (
        rich_html({"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "x"}]}, {})
        == "<pre><code>x</code></pre>"
    )
    assert rich_html({"type": "rich_text_quote", "elements": []}, {}) == "<blockquote></blockquote>"
    assert rich_html({"type": "rich_text_list", "elements": []}, {}) == "<ul></ul>"


def test_each_block_has_a_view() -> None:
    plain = {"type": "plain_text", "text": "Name"}
    option = {"text": plain, "value": "1"}
    select = {"type": "static_select", "action_id": "s", "placeholder": plain, "options": [option]}
    button = {"type": "button", "text": plain, "action_id": "x"}
    blocks: list[dict[str, Any]] = [
        {"type": "section", "text": {"type": "mrkdwn", "text": "*a*"}, "accessory": button},
        {"type": "context", "elements": [{"type": "mrkdwn", "text": "c"}]},
        {"type": "table", "rows": [[{"type": "raw_text", "text": "<x>"}, {"type": "rich_text", "elements": []}]]},
        {"type": "input", "block_id": "b", "label": plain, "element": select},
        {"type": "task_card", "task_id": "1", "title": "T", "status": "error"},
        {"type": "divider"},
    ]  # fmt: skip
    views = [block_view(block, NAMES) for block in blocks]
    assert views[0]["accessory"]["text"] == "Name"
    assert [one["html"] for one in views[1]["elements"]] == ['<div class="line">c</div>']
    assert views[2]["rows"] == [["&lt;x&gt;", ""]]
    assert views[3]["element"]["options"] == [{"text": "Name", "value": "1"}]
    assert (views[4]["title"], views[4]["status"]) == ("T", "error")
    assert text_html(None, {}) == ""
    shown = modal_view(
        {"id": "V1", "type": "home", "blocks": blocks, "title": None, "submit": None, "close": plain}, NAMES
    )
    assert (shown["title"], shown["close"], len(shown["blocks"])) == ("", "Name", 6)


def test_the_inspector_is_offered_for_answers_only() -> None:
    log = MessageLog()
    message = LocalMessage(channel="C1", ts=log.next_ts(), user="U0ORION", text="hi")
    log.add(message)
    assert message_view(message, log, NAMES)["turn_id"] == ""
    message.metadata = {"event_type": "orion_answer", "event_payload": {"turn_id": "t1", "verified": True}}
    assert message_view(message, log, NAMES)["turn_id"] == "t1"
    message.metadata = {"event_type": "other", "event_payload": {"turn_id": "t1"}}
    assert message_view(message, log, NAMES)["turn_id"] == ""


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("@Orion how?", "<@U0ORION> how?"),
        ("@orion, @Release Manager: #help", "<@U0ORION>, <@U0RELEASE>: <#C0HELP>"),
        ("@Orionis a@Orion ##help", "@Orionis a@Orion ##help"),
        ("a < b && <!here> <@U0ORION>", "a &lt; b &amp;&amp; &lt;!here&gt; &lt;@U0ORION&gt;"),
        ("see https://a.example/?a=1&b=2.", "see <https://a.example/?a=1&amp;b=2>."),
        ("`@Orion <x>` and ```@Orion```", "`@Orion &lt;x&gt;` and ```@Orion```"),
    ],
)
def test_typed_text_becomes_slacks_text(typed: str, text: str) -> None:
    assert as_slack_text(typed, NAMES) == text


def test_typed_text_without_names_equals_its_rich_text() -> None:
    assert as_slack_text("@Orion", {}) == "@Orion"
    (block,) = rich_text("<@U0ORION> see <https://a.example|there> &amp; <#C0HELP>")
    kinds = [one["type"] for one in block["elements"][0]["elements"]]
    assert kinds == ["user", "text", "link", "text", "channel"]
