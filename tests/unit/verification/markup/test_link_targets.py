"""The links of an answer: their spellings, the ones that resolve, and the ones that become code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verification.check import check
from verification.markup.links import links, normalise_url
from verification.rules.references import KnownLinks, show_as_code
from verification.types import Dialect, Draft, Source

SOURCE = Source(
    id=1,
    title="Deploy",
    url="https://docs.acme.test/deploy",
    text=(
        "Deploy from https://docs.acme.test/console, see [the wiki](https://wiki.other.test/a_(b)) or "
        "www.third.test/x. "
        "Write to ops@acme.test or call +49 30 123456. Clone ssh://git@acme.test/repo. Run `curl https://api.acme.test/v1/ping`."
    ),
)
OWN = Source(id=1, title="Deploy", url="https://docs.acme.test/deploy", text="See https://docs.acme.test/console.")


def test_links_are_found_in_every_form() -> None:
    for text, targets in [
        ("see https://a.test/x.", ["https://a.test/x"]),
        ("see (https://a.test/x).", ["https://a.test/x"]),
        ("see https://a.test/x_(y), ok", ["https://a.test/x_(y)"]),
        ("see https://a.test/x[1].", ["https://a.test/x"]),
        ("見る https://a.test/xをご覧ください", ["https://a.test/x"]),
        ("<https://a.test/x|label> b", ["https://a.test/x"]),
        ("<https://a.test/x>", ["https://a.test/x"]),
        ("<mailto:a@b.test|a>", ["mailto:a@b.test"]),
        ("[label](https://a.test/x) b", ["https://a.test/x"]),
        ('[label](https://a.test/x "title") b', ["https://a.test/x"]),
        ("![image](https://a.test/x.png)", ["https://a.test/x.png"]),
        ("[a](./other.md)", ["./other.md"]),
        ("www.a.test/x", ["www.a.test/x"]),
        ("open evil.com/steal?d=1 now", ["evil.com/steal?d=1"]),
        ("*https://a.test/x*", ["https://a.test/x"]),
        ("a/b/c and src/main.py and node.js and e.g. this", []),
        ("README.md and config.yaml/section", []),
        ("version 1.2.3/4 and 10.0.0.1/24", []),
        ("<@U123> <#C1|general> <!date^1^{date}|x>", []),
        ("[1] and [x]", []),
    ]:
        assert [link.target for link in links(text)] == targets


def test_only_spellings_of_one_target_are_equal() -> None:
    same = [
        ("https://A.test/x/", "https://a.test/x"),
        ("http://a.test/x", "https://a.test/x"),
        ("https://a.test:443/x", "https://a.test/x"),
        ("https://a.test/x?a=1&amp;b=2", "https://a.test/x?a=1&b=2"),
        ("www.a.test", "https://www.a.test"),
        ("https://a.test/a%20b", "https://a.test/a b"),
        ("mailto:A@b.test?subject=x", "mailto:a@b.test"),
    ]
    different = [
        ("https://a.test/x", "https://a.test/X"),
        ("https://a.test/x", "https://a.test/xy"),
        ("https://a.test@evil.test/x", "https://a.test/x"),
        ("https://a.test/x?y=1", "https://a.test/x?y=2"),
    ]
    for one, other in (*same, *different):
        assert (normalise_url(one) == normalise_url(other)) is ((one, other) in same), one


def test_a_link_resolves_becomes_code_or_is_unknown() -> None:
    for target, standing in [
        ("https://docs.acme.test/deploy", "resolves"),
        ("https://docs.acme.test/console", "resolves"),
        ("https://wiki.other.test/a_(b)", "resolves"),
        ("www.third.test/x", "resolves"),
        ("https://api.acme.test/v1/ping", "resolves"),
        ("ssh://git@acme.test/repo", "as_code"),
        ("tel:+4930123456", "resolves"),
        ("tel:+4930123457", "unknown"),
        ("mailto:ops@acme.test?subject=x", "resolves"),
        ("mailto:ops@acme.test?bcc=evil@evil.test", "unknown"),
        ("https://asked.test/page", "as_code"),
        ("https://allowed.test/page", "resolves"),
        ("mailto:ops@acme.test", "resolves"),
        ("mailto:evil@acme.test", "unknown"),
        ("https://docs.acme.test/con", "unknown"),
        ("https://docs.acme.test/console/more", "unknown"),
        ("https://docs.acme.test/deploy?leak=1", "unknown"),
        ("https://docs.acme.test@evil.test/deploy", "unknown"),
        ("https://evil.test/[", "unknown"),
        ("javascript:alert(1)", "unknown"),
        ("./other.md", "unknown"),
    ]:
        draft = Draft(
            text="",
            question="What is https://asked.test/page and https://allowed.test/page?",
            sources=(SOURCE,),
            link_hosts=frozenset({"allowed.test"}),
        )
        assert KnownLinks(draft).status(target) == standing


def test_a_page_with_an_anchor_may_be_linked_without_it() -> None:
    draft = Draft(text="", sources=(Source(id=1, title="t", url="https://a.test/p#section"),))
    assert KnownLinks(draft).status("https://a.test/p") == "resolves"
    assert KnownLinks(draft).status("https://a.test/p#section") == "resolves"


def test_a_link_that_is_only_in_the_question_is_shown_as_code() -> None:
    for text, shown in [
        ("see https://wiki.other.test/a_(b).", "see `https://wiki.other.test/a_(b)`."),
        ("see <https://wiki.other.test/a_(b)|the wiki>.", "see the wiki (`https://wiki.other.test/a_(b)`)."),
        ("see <https://wiki.other.test/a_(b)|https://wiki.other.test/a_(b)>.", "see `https://wiki.other.test/a_(b)`."),
        ("see <https://docs.acme.test/console|it>.", "see <https://docs.acme.test/console|it>."),
        ("see https://evil.test/x.", "see https://evil.test/x."),
        ("see `https://wiki.other.test/a_(b)`.", "see `https://wiki.other.test/a_(b)`."),
    ]:
        known = KnownLinks(Draft(text="", question="What is https://wiki.other.test/a_(b)?", sources=(OWN,)))
        once, repairs = show_as_code(text, known)
        assert once == shown
        assert [(repair.kind, repair.count) for repair in repairs] == ([("link_as_code", 1)] if text != shown else [])
        assert show_as_code(once, known) == (shown, ())
        before = "From https://docs.acme.test/deploy: "
        assert show_as_code(before + text, known)[0] == before + shown


@pytest.mark.parametrize("dialect", ["mrkdwn", "markdown"])
def test_a_link_that_no_source_has_is_an_error_in_both_dialects(dialect: Dialect) -> None:
    text = "Deploy from the console [1], more on [this page](https://evil.test/?q=secret) [1]."
    verdict = check(Draft(text=text, question="How do I deploy?", sources=(SOURCE,), dialect=dialect))
    (found,) = [each for each in verdict.errors if each.rule == "citation_resolves"]
    assert "https://evil.test/?q=secret" in found.words
    assert verdict.text[found.start : found.end] == found.words


def test_a_label_that_shows_another_address_is_an_error() -> None:
    text = "Deploy from <https://docs.acme.test/console|https://evil.test/login> [1]."
    verdict = check(Draft(text=text, question="How do I deploy?", sources=(SOURCE,)))
    assert "citation_resolves" in [each.rule for each in verdict.errors]


def test_without_repair_a_link_to_be_shown_as_code_is_an_error() -> None:
    asked = "What is https://asked.test/a_(b)?"
    draft = Draft(text="Deploy, see https://asked.test/a_(b) [1].", question=asked, sources=(SOURCE,), repair=False)
    assert "Show the address as `code`, not as a link." in [each.remedy for each in check(draft).errors]


@given(st.text(alphabet="htps:/.<>|[]()aw`1 \n@", max_size=80))
def test_links_are_in_order_inside_the_text(text: str) -> None:
    last = 0
    for link in links(text):
        assert 0 <= link.start < link.end <= len(text)
        assert link.start >= last
        last = link.end
