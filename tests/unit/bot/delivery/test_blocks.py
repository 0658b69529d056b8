"""An answer as Slack messages: whole, in order and inside the limits."""

import html
import re
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.texts.catalogue import age
from bot.delivery.answer_key import AnswerKey
from bot.delivery.blocks import MAX_MESSAGE_LENGTH, Post, context, join_lines, list_sources, render
from bot.delivery.rich_text import Block, rich_text
from bot.local.model.limits import check_blocks, text_length
from tests.support.local_slack import block_text
from verification.markup.chunks import group_messages, split_chunks
from verification.markup.mrkdwn import repair, strip_mrkdwn
from verification.markup.scanner import TOKEN, fences, segments
from verification.types import Answer, Source

TODAY = date(2026, 11, 21)
SOURCE = Source(id=1, title="Release process", url="https://docs.example/release.md", updated_at="2026-11-01")


def answer(**fields: Any) -> Answer:
    known = {"text": "On Tuesdays [1].", "chunks": ("On Tuesdays <https://docs.example/release.md|[1]>.",)}
    return Answer(**{**known, "sources": (SOURCE,), "verified": True, "attempts": 1, **fields})


def render_answer(shown: Answer, **frame: Any) -> tuple[Post, ...]:
    return render(shown, AnswerKey(question_ts="1.1", **{"turn_id": "turn-7", **frame}), TODAY)


def controls(post: Post) -> list[tuple[str, str]]:
    return [
        (one["action_id"], one["text"]["text"]) for b in post.blocks if b["type"] == "actions" for one in b["elements"]
    ]


def test_a_verified_answer_has_one_line_and_one_row_of_buttons() -> None:
    (post,) = render_answer(answer(attempts=2), ask_human=True)
    assert post.text == "On Tuesdays <https://docs.example/release.md|[1]>."
    chunk, foot, row = post.blocks
    assert post.plain[0]["text"] == {"type": "mrkdwn", "text": post.text, "verbatim": True}
    assert block_text(chunk) == "On Tuesdays [1]."
    line = "✓ Verified  ·  <https://docs.example/release.md|[1] Release process> · 2 weeks ago"
    assert foot == {"type": "context", "elements": [{"type": "mrkdwn", "text": line, "verbatim": True}]}
    assert [one["value"] for one in row["elements"]] == ["good:turn-7", "bad:turn-7", "turn-7", "turn-7"]
    assert controls(post) == [
        ("orion_feedback", "Helpful"),
        ("orion_not_helpful", "Not helpful"),
        ("orion_trust", "Why trust this?"),
        ("orion_hand_off", "Ask a human"),
    ]


def test_a_refusal_in_the_words_of_the_model_shows_what_it_cites_without_a_badge() -> None:
    (post,) = render_answer(answer(verified=False), ask_human=True)
    _, foot, _ = post.blocks
    assert foot["elements"][0]["text"] == "<https://docs.example/release.md|[1] Release process> · 2 weeks ago"
    assert [action for action, _ in controls(post)] == ["orion_feedback", "orion_not_helpful", "orion_hand_off"]


def test_a_reply_without_claims_has_no_badge_and_no_buttons() -> None:
    (greeting,) = render_answer(answer(text="Hello!", chunks=("Hello!",), sources=()))
    assert [block["type"] for block in greeting.blocks] == ["rich_text"]
    # A refusal names its nearest documents in its own text: listing them again below would look like evidence.
    (refusal,) = render_answer(answer(verified=False, text="Not found. Nearest: Release process"))
    assert [block["type"] for block in refusal.blocks] == ["rich_text", "actions"]
    assert [action for action, _ in controls(refusal)] == ["orion_feedback", "orion_not_helpful"]


@pytest.mark.parametrize(
    ("badges", "rules_only", "language", "badge"),
    [
        ((), False, None, "✓ Verified"),
        ((), True, None, "Checked by rules only"),
        (
            ("quotes",),
            True,
            None,
            "❝ Quoted from your documents · no model is connected: this may not answer your question",
        ),
        (("partial",), False, None, "◐ Partly verified"),
        (("partial",), True, None, "◐ Partly verified  ·  Checked by rules only"),
        (("partial",), False, "ja", "◐ 一部のみ確認済み"),
    ],
)
def test_the_badge_says_how_far_the_answer_was_verified(
    badges: tuple[Any, ...], language: str | None, badge: str, *, rules_only: bool
) -> None:
    (post,) = render_answer(answer(rules_only=rules_only), badges=badges, language=language)
    shown, _, source = post.blocks[1]["elements"][0]["text"].rpartition("  ·  ")
    assert shown == badge
    assert source.endswith({None: "2 weeks ago", "ja": "2 週間前"}[language])
    assert ("orion_trust", "Why trust this?") in controls(post) or language


def test_a_table_is_a_table_block_and_the_next_one_a_list() -> None:
    drawn = "```\nRegion | Limit\n-------+---------\nEU &amp; UK | 600 [1]\nUS     |\n```"
    (post,) = render_answer(answer(chunks=(f"Limits:\n\n{drawn}\n\nOr by plan:\n\n{drawn}",)))
    lead, table, between, listed, *_ = post.blocks
    assert (block_text(lead), block_text(between)) == ("Limits:", "Or by plan:")
    cells = [[cell["elements"][0]["elements"] for cell in row] for row in table["rows"]]
    assert cells[0][0] == [{"type": "text", "text": "Region", "style": {"bold": True}}]
    link = {"type": "link", "url": SOURCE.url, "text": "[1]"}
    assert cells[1] == [[{"type": "text", "text": "EU & UK"}], [{"type": "text", "text": "600 "}, link]]
    assert cells[2][1] == [{"type": "text", "text": " "}]
    inner = [item["elements"] for part in listed["elements"] for item in part["elements"]]
    assert inner[1] == [{"type": "text", "text": "Limit: "}, {"type": "text", "text": "600 "}, link]
    assert [block["type"] for block in post.plain] == ["section", "context"]
    assert drawn in post.plain[0]["text"]["text"]


def test_a_label_is_above_the_answer() -> None:
    (post,) = render_answer(answer(label="Not from your documents, not verified", verified=False, sources=()))
    assert post.blocks[0] == context(["Not from your documents, not verified"])
    assert post.text.startswith("Not from your documents, not verified\nOn Tuesdays")


def test_a_long_answer_keeps_every_chunk_and_puts_the_tail_last() -> None:
    chunks = tuple(f"{number} " + "x" * 2_800 for number in range(20))
    posts = render_answer(answer(chunks=chunks))
    assert [block_text(b) for post in posts for b in post.blocks if b["type"] == "rich_text"] == list(chunks)
    assert [any(b["type"] == "actions" for b in post.blocks) for post in posts] == [False] * (len(posts) - 1) + [True]


def test_a_tail_that_does_not_fit_gets_its_own_message() -> None:
    full = tuple("x" * 2_900 for _ in range(4))
    posts = render_answer(
        answer(chunks=full, sources=tuple(Source(id=n, title="t" * 110 + str(n)) for n in range(1, 40)))
    )
    assert len(posts) == 2
    assert posts[1].blocks[0]["type"] == "context"
    assert posts[1].text.startswith("✓ Verified  ·  [1] ttt")


def test_more_sources_than_fit_are_counted() -> None:
    lines = [f"{number} " + "y" * 300 for number in range(60)]
    block = context(lines)
    assert len(block["elements"]) <= 10
    assert block["elements"][-1]["text"].endswith("… and 34 more")
    assert join_lines(["short"], 100) == "short"


@pytest.mark.parametrize(
    ("updated_at", "words"),
    [
        ("2026-11-21", "today"),
        ("2026-11-20T23:59:00Z", "1 day ago"),
        ("2026-11-07", "2 weeks ago"),
        ("2026-08-01", "3 months ago"),
        ("2024-01-01T00:00:00+00:00", "2 years ago"),
        ("2026-12-24", "2026-12-24"),
        ("last spring", ""),
        ("", ""),
    ],
)
def test_an_age_is_shown_in_words(updated_at: str, words: str) -> None:
    assert age(updated_at, TODAY) == words


@pytest.mark.parametrize(
    ("url", "title", "line"),
    [
        ("javascript:alert(1)", "Plain", "[1] Plain"),
        ("", "A & <b>", "[1] A &amp; &lt;b&gt;"),
        ("https://x.example/a|b c>d?e=1&f=2", "x", "<https://x.example/a%7Cb%20c%3Ed?e=1&amp;f=2|[1] x>"),
        ("https://x.example", "a|b\n<!here>", "<https://x.example|[1] a¦b &lt;!here&gt;>"),
    ],
)
def test_a_title_or_address_cannot_break_out_of_its_markup(url: str, title: str, line: str) -> None:
    assert list_sources([Source(id=1, title=title, url=url)], TODAY) == [line]


def test_two_parts_of_one_section_share_a_line() -> None:
    parts = [
        Source(id=n, title=title, url="https://x.example/p")
        for n, title in ((1, "Refunds"), (2, "Fees"), (3, "Refunds"))
    ]
    assert list_sources(parts, TODAY) == ["<https://x.example/p|[1] [3] Refunds>", "<https://x.example/p|[2] Fees>"]


CHUNK = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=2_900).filter(str.strip)
SOURCES = st.lists(
    st.builds(
        Source,
        id=st.integers(1, 99),
        title=st.text(max_size=300),
        url=st.sampled_from(["", "https://x.example/a"]),
        updated_at=st.dates(max_value=TODAY).map(str) | st.text(max_size=5),
    ),
    max_size=12,
)


@given(chunks=st.lists(CHUNK, min_size=1, max_size=8), sources=SOURCES, label=st.sampled_from(["", "Not verified"]))
def test_slack_would_accept_every_message(chunks: list[str], sources: list[Source], label: str) -> None:
    shown = answer(chunks=tuple(chunks), sources=tuple(sources), label=label)
    posts = render_answer(shown)
    sent = [block["text"]["text"] for post in posts for block in post.plain if block["type"] == "section"]
    assert sent == [chunk for group in group_messages(shown.chunks) for chunk in group]
    for post in posts:
        blocks = list(post.blocks)
        check_blocks(blocks)
        assert sum(map(text_length, blocks)) <= MAX_MESSAGE_LENGTH + 200  # the label rides on the first message
        assert post.text.strip()


CITED = "<https://docs.example/a|[1]>"
OTHER = "<https://docs.example/b|[2]>"
CITED_SOURCES = tuple(Source(id=n, title=f"T{n}", url=f"https://docs.example/{n}", text="") for n in (1, 2))

words = st.sampled_from(["deploy", "3", "a_b", "2*3", "R&D", "<b>", "naïve", "「重要」", "x.py", "~5", "[1]", "[2]"])
spans = st.sampled_from(
    ["{}", "**{}**", "_{}_", "~~{}~~", "***{}***", "`{}`", "[{}](https://docs.example/p?a=1&copy=2)"]
)
phrases = st.lists(st.tuples(spans, words), min_size=1, max_size=5).map(
    lambda found: " ".join(span.format(word) for span, word in found)
)
lines = st.tuples(st.sampled_from(["", "- ", "1. ", "3. ", "    - ", "> ", "# ", "   "]), phrases).map("".join)
drafts = st.lists(
    lines | st.sampled_from(["", "```py\nif a < b:\n    *go*\n```", "| A | B |\n|---|---|\n| 1 | `x` |"]), max_size=8
).map("\n".join)


def leaves(block: Block) -> Iterator[dict[str, Any]]:
    for one in block["elements"]:
        yield from leaves(one) if "elements" in one else (one,)


def visible_words(block: Block) -> list[str]:
    """The words that a reader sees, without marks, bullets and numbers of items."""
    parts = [
        "".join(one["text"] for one in leaves(item))
        for element in block["elements"]
        for item in (element["elements"] if element["type"] == "rich_text_list" else [element])
    ]
    return bare("\n".join(parts))


def bare(text: str) -> list[str]:
    text = re.sub(r"(?m)^ *(?:[•◦▪>-]|\d+[.)]) +", "", text)
    return re.sub(r"\[\d\]|[*_~`\u200b]", "", text).split()


@given(drafts)
def test_words_links_and_code_are_those_of_the_chunk(draft: str) -> None:
    text, _ = repair(draft)
    for chunk in split_chunks(text, CITED_SOURCES):
        found = list(leaves(block := rich_text(chunk)))
        assert visible_words(block) == bare(strip_mrkdwn(chunk))
        outside = {s.start for s in segments(chunk) if s.kind == "token"}
        targets = {token[0][1:-1].partition("|")[0] for token in TOKEN.finditer(chunk) if token.start() in outside}
        assert {one["url"] for one in found if one["type"] == "link"} == {url.replace("&amp;", "&") for url in targets}
        code = [chunk[s.start : s.end].strip("`") for s in segments(chunk) if s.kind == "code"]
        code += [chunk[fence.body : fence.body_end].strip("\n") for fence in fences(chunk)]
        inside = [one["text"] for one in found if one.get("style", {}).get("code")]
        inside += [leaf["text"] for one in block["elements"] if "preformatted" in one["type"] for leaf in leaves(one)]
        assert sorted(inside) == sorted(filter(None, map(html.unescape, code)))


def lists(chunk: str) -> list[tuple[str, int, int, list[str]]]:
    return [
        (
            one["style"],
            one["indent"],
            one.get("offset", 0),
            ["".join(leaf["text"] for leaf in leaves(item)) for item in one["elements"]],
        )
        for one in rich_text(chunk)["elements"]
        if one["type"] == "rich_text_list"
    ]


def test_lists_keep_their_nesting_and_their_numbers() -> None:
    chunk = "1. One\n   goes on\n    • inner\n    • second\n2. Two\n\n• other"
    assert lists(chunk) == [
        ("ordered", 0, 0, ["One\ngoes on"]),
        ("bullet", 1, 0, ["inner", "second"]),
        ("ordered", 0, 1, ["Two"]),
        ("bullet", 0, 0, ["other"]),
    ]


def test_a_heading_and_nested_marks_become_styles() -> None:
    found = list(leaves(rich_text("*Steps*\n\n_*both*_ and `a*b`, snake_case 2 * 3 <https://x.test|*all*>")))
    assert [(one["text"], sorted(one.get("style", {}))) for one in found] == [
        ("Steps", ["bold"]),
        ("\n\n", []),
        ("both", ["bold", "italic"]),
        (" and ", []),
        ("a*b", ["code"]),
        (", snake_case 2 * 3 ", []),
        ("all", ["bold"]),
    ]


@pytest.mark.parametrize(
    "words", ["2**10, __init__ and *.py", "__init__.py if __name__ == '__main__'", "it*al*ic, a_b_c, ~/x~y"]
)
def test_signs_that_are_no_emphasis_stay(words: str) -> None:
    assert rich_text(words)["elements"] == [
        {"type": "rich_text_section", "elements": [{"type": "text", "text": words}]}
    ]


def test_code_that_begins_next_to_the_ticks_is_whole() -> None:
    (block,) = rich_text("```npm ci\nnpm test```")["elements"]
    assert block["elements"] == [{"type": "text", "text": "npm ci\nnpm test"}]


def test_one_citation_is_shown_for_a_list_or_paragraph_that_rests_on_one_source() -> None:
    same = f"It is 3 {CITED}. It stays {CITED}.\n\n• a {CITED}\n• b {CITED}"
    texts = "".join(one["text"] for one in leaves(rich_text(same)))
    assert texts == "It is 3. It stays [1].ab [1]"
    for kept in (f"It is 3 {CITED}. It is 4 {OTHER}.", f"• a {CITED}\n• b\n• c {CITED}"):
        assert sum(one["type"] == "link" for one in leaves(rich_text(kept))) == 2
