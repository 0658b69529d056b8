"""The form rules: what they report, where, and with which words."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verification.markup.mrkdwn import repair
from verification.rules.writing import violations
from verification.types import Dialect, RuleName

FAULTS: tuple[tuple[str, RuleName, str, str], ...] = (
    ("a **bold** word", "no_markdown_bold", "bold", "**bold**"),
    ("a __bold__ word", "no_markdown_bold", "bold", "__bold__"),
    ("a\n> quoted\nb", "no_blockquotes", "quote", "> quoted"),
    ("a\n> a **bold** word", "no_markdown_bold", "bold", "**bold**"),
    ("> | a | b |\n> |---|---|\n> | 1 | 2 |", "no_blockquotes", "quote", "> | a | b |\n> |---|---|\n> | 1 | 2 |"),
    ("a\n## Title\nb", "mrkdwn", "heading", "## Title"),
    ("Title\n===\nb", "mrkdwn", "heading", "Title\n==="),
    ("see [this](https://x.y) now", "mrkdwn", "link", "[this](https://x.y)"),
    ("see [a [^1] b](https://x.y)", "mrkdwn", "link", "[a [^1] b](https://x.y)"),
    ("see ![this](https://x.y) now", "mrkdwn", "image", "![this](https://x.y)"),
    ("a\n| a | b |\n|---|---|\n| 1 | 2 |\nb", "mrkdwn", "table", "| a | b |\n|---|---|\n| 1 | 2 |"),
    ("a\n\n***\nb", "mrkdwn", "rule", "***"),
    ("- [ ] open", "mrkdwn", "task", "- [ ] "),
    ("~~gone~~", "mrkdwn", "strike", "~~gone~~"),
    ("a<br>b", "mrkdwn", "html", "<br>"),
    ("a <b>b</b>", "mrkdwn", "html", "<b>b</b>"),
    ("a&nbsp;b", "mrkdwn", "entity", "&nbsp;"),
    ("a & b", "mrkdwn", "bare", "&"),
    ("a < b", "mrkdwn", "bare", "<"),
    ("a > b", "mrkdwn", "bare", ">"),
    ("x\n```python\ny\n```", "mrkdwn", "fence", "```python\ny\n```"),
    ("x\n```\ny", "mrkdwn", "fence", "```\ny"),
    ("note[^1]", "mrkdwn", "footnote", "^"),
    ("[1]: https://x.y", "mrkdwn", "reference", "[1]: https://x.y"),
    ("a\x00b", "mrkdwn", "control", "\x00"),
    ("hm <thinking> so", "mrkdwn", "tag", "<thinking>"),
    ('x {"action": "respond"}', "mrkdwn", "json", '{"action":'),
)


def test_each_fault_is_named_placed_and_remedied() -> None:
    for text, rule, name, words in FAULTS:
        found = [violation for violation in violations(text) if violation.detail.startswith(f"{name}: ")]
        assert len(found) == 1
        assert (found[0].rule, found[0].severity, found[0].words) == (rule, "error", words)
        assert text[found[0].start : found[0].end] == words
        assert found[0].remedy.endswith(".")


@pytest.mark.parametrize(
    "text",
    [
        "`**x**` and ```# not\n> code``` text",
        '```\n> quote\n# heading\n| a | b |\n<thinking>\n{"a": 1}\n```',
        '`<thinking>` and `{"a": 1}` and `[t](u)`',
        "2**10 and 3**4, __init__, *.py and src/**/*.md",
    ],
)
def test_code_and_lookalikes_are_not_judged(text: str) -> None:
    assert violations(text) == ()


def test_table_outside_a_quote_is_not_a_quote() -> None:
    assert [found.rule for found in violations("| a | b |\n|---|---|\n| 1 | 2 |")] == ["mrkdwn"]


def test_places_are_exact_after_windows_line_ends_and_control_characters() -> None:
    text = "one\r\ntwo\r\n\x00**three**\r\n> four"
    found = {violation.detail.partition(":")[0]: violation for violation in violations(text)}
    assert set(found) == {"control", "bold", "quote"}
    assert found["bold"].words == "**three**"
    assert found["quote"].words == "> four"


def test_windows_line_ends_round_code_are_no_fault() -> None:
    for dialect in get_args(Dialect):
        assert not violations("one\r\n\r\n```\r\nx = 1\r\n```\r\n\r\ntwo\r\n", dialect)


def test_too_long_for_a_block_is_reported_once() -> None:
    (found,) = violations("word " * 700)
    assert (found.start, found.end, found.detail.partition(":")[0]) == (3000, 3500, "length")
    assert violations("word " * 700, limit=0) == ()


def test_words_shown_are_bounded() -> None:
    (found,) = violations("**" + "x" * 900 + "**")
    assert len(found.words) == 200
    assert found.end == 904


def test_bold_is_right_in_markdown_and_the_other_rules_apply() -> None:
    assert violations("**x**\n\n# T\n\n- [ ] a\n\n| a | b |\n|---|---|\n| 1 | 2 |", "markdown") == ()
    rules = [violation.rule for violation in violations("> q\n\n![a](https://x.y)\n\n```\nx", "markdown")]
    assert rules == ["no_blockquotes", "mrkdwn", "mrkdwn"]


@settings(max_examples=150, deadline=None)
@given(text=st.text(alphabet='*_`~[]()<>&#-|\n \r\x00\\ab1:!={"', max_size=60))
def test_words_are_the_text_at_the_span(text: str) -> None:
    dialects: tuple[Dialect, ...] = ("mrkdwn", "markdown")
    for dialect in dialects:
        for violation in violations(text, dialect):
            assert 0 <= violation.start <= violation.end <= len(text)
            assert text[violation.start : violation.end][:200] == violation.words


@settings(max_examples=150, deadline=None)
@given(text=st.text(alphabet="*_`~[]()<>&#-|\n \\ab1:!=", max_size=60))
def test_no_violation_means_nothing_to_repair_but_polish(text: str) -> None:
    if not violations(text):
        kinds = {found.kind for found in repair(text)[1]}
        assert kinds <= {"list", "backslash", "code", "line end"}
