"""Hard cases of form: what a model writes, and what Slack must get.

Each pair was judged by Slack's rules, not by what some converter does.
"""

import json
from typing import Any

from tests.support.paths import ROOT
from verification.markup.mrkdwn import repair
from verification.markup.scanner import Edit, apply_edits
from verification.rules.writing import violations

CASES: dict[str, Any] = json.loads((ROOT / "tests/data/mrkdwn_cases.json").read_text(encoding="utf-8"))


def test_hard_cases_are_repaired() -> None:
    for draft, expected in CASES["repaired"]:
        text, repairs = repair(draft)
        assert text == expected
        assert repairs
        assert repair(text) == (text, ())
        assert violations(text) == ()


def test_adjacent_faults_are_repaired_in_one_pass() -> None:
    """``null``: only the second repair is looked at."""
    for draft, expected in CASES["neighbours"]:
        text, _ = repair(draft)
        assert expected in {None, text}
        assert repair(text) == (text, ())


def test_correct_text_is_not_changed() -> None:
    for draft in CASES["unchanged"]:
        assert repair(draft) == (draft, ())
        assert violations(draft) == ()


def test_a_leak_is_never_repaired_and_fails() -> None:
    for draft, name in CASES["leaks"]:
        assert repair(draft)[0] == draft
        assert {violation.detail.partition(":")[0] for violation in violations(draft)} == {name}


def test_standard_markdown_stays_in_its_own_dialect() -> None:
    for draft, expected in CASES["markdown"]:
        text, _ = repair(draft, "markdown")
        assert text == (draft if expected is None else expected)
        assert repair(text, "markdown") == (text, ())
        assert violations(text, "markdown") == ()


def test_words_in_parentheses_stay_in_markdown() -> None:
    for draft in ("[a](b c)", "[a](https://x.y) [b][c]", "\\*x\\*", "<me@x.org>", "a > b"):
        assert repair(draft, "markdown") == (draft, ())
    assert repair("<https://x.y|l> a", "markdown")[0] == "[l](https://x.y) a"


def test_code_that_begins_after_its_ticks_keeps_its_indentation() -> None:
    assert repair("x ```a\n b``` c", "markdown")[0] == "x \n```\na\n b\n```\n c"


def test_an_overlapping_edit_is_skipped() -> None:
    assert apply_edits("abcd", [Edit(1, 3, "X"), Edit(2, 4, "Y")]) == "aXd"
    assert apply_edits("ab", [Edit(1, 1, "-"), Edit(1, 2, "B")]) == "a-B"
