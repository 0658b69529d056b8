"""verification/salvage.py: what is verified is kept, and what is kept still reads well."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.paths import ROOT
from verification.check import check
from verification.salvage import LeftOut, outline, salvage
from verification.types import Draft, Source

SOURCE = Source(
    id=1,
    title="Refunds",
    url="https://docs.acme.test/refunds",
    text=(
        "Refunds take 14 days. A refund needs a form of 3 pages and 2 copies. The finance team pays the refund. "
        "Refunds above 500 dollars need an approval."
    ),
)
QUESTION = "How long do refunds take?"
LEFT_OUT = LeftOut(step="A step is left out here.", row="A row is left out here.")


def salvaged_text(text: str, question: str = QUESTION) -> str | None:
    draft = Draft(text=text, question=question, sources=(SOURCE,))
    verdict = check(draft)
    assert not verdict.passed
    left = salvage(draft, verdict, left_out=LEFT_OUT)
    assert left is None or left.passed
    return left.text if left else None


def test_only_verified_parts_are_kept() -> None:
    for text, left in json.loads((ROOT / "tests/data/salvaged.json").read_text(encoding="utf-8")):
        question = "返金は何日ですか？" if text.startswith("返金") else QUESTION
        assert salvaged_text(text, question) == left


def test_the_remaining_text_must_address_the_question() -> None:
    text = "The printer needs 30 watts [1]. The finance team pays the refund [1]."
    assert salvaged_text(text, "How does the printer work?") is None


def test_the_remaining_text_must_state_something() -> None:
    assert salvaged_text("How may I help with refunds? The refund takes 30 days [1].") is None


def test_a_dropped_row_leaves_a_phrase_and_dropping_the_last_row_drops_the_table() -> None:
    draft = Draft(
        text=(
            "Refunds take 14 days [1].\n\n| Part | Number |\n|---|---|\n"
            "| copies of it | 2 [1] |\n| pages of the form | 9 [1] |\n"
        ),
        question=QUESTION,
        sources=(SOURCE,),
        dialect="markdown",
    )
    left = salvage(draft, check(draft), left_out=LEFT_OUT)
    assert left is not None
    assert "copies of it" in left.text
    assert "9" not in left.text
    assert "A row is left out here. [1]" in left.text
    assert left.claims == check(replace(draft, text=left.text, left_out=LEFT_OUT)).claims


def test_a_gap_cites_no_missing_source() -> None:
    text = "Refunds take 14 days [1].\n\n1. Fill in the form [9]\n2. The finance team pays the refund [1]"
    left = salvaged_text(text)
    assert left is not None
    assert "1. A step is left out here.\n2. The finance" in left


@pytest.mark.parametrize(
    "text", ["1. Copies: 2 [1]\n2. Pages: 9 [1]", "| Part | Number |\n|---|---|\n| copies | 2 [1] |\n| pages | 9 [1] |"]
)
def test_without_words_for_the_gap_the_whole_procedure_or_table_is_dropped(text: str) -> None:
    draft = Draft(text=f"Refunds take 14 days [1].\n\nYou need:\n\n{text}", question=QUESTION, sources=(SOURCE,))
    left = salvage(draft, check(draft))
    assert left is not None
    assert left.text == "Refunds take 14 days [1]."


def test_a_passed_verdict_is_unchanged() -> None:
    draft = Draft(text="Refunds take 14 days [1].", question=QUESTION, sources=(SOURCE,))
    verdict = check(draft)
    assert salvage(draft, verdict) == verdict


PARTS = [
    "Refunds take 14 days [1]. ", "Refunds take 30 days [1]. ", "However, the finance team pays the refund [1]. ",
    "It needs 9 copies. ", "\n\n", "\n• a form of 3 pages [1]", "\n• a form of 8 pages [1]", "\n  1. 2 copies [1]",
    "\n  2. 7 copies [1]", "You need:", "\n*Head*\n", "\n```\ncode\n```\n",
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=9).map("".join))
def test_salvaged_text_passes_and_adds_no_word(text: str) -> None:
    draft = Draft(text=text, question=QUESTION, sources=(SOURCE,))
    verdict = check(draft)
    left = salvage(draft, verdict)
    if left is not None:
        assert left.passed
        assert words(left.text) <= words(verdict.text)


def words(text: str) -> set[str]:
    """The words of a text without the numbers of list items, which may change."""
    return set(re.sub(r"(?m)^\s*[0-9]+\.", "", text).casefold().split())


def test_a_text_is_split_into_its_parts() -> None:
    for text, parts in [
        ("", []),
        ("One. Two [1]. Three", [("sentence", "One."), ("sentence", "Two [1]."), ("sentence", "Three")]),
        ("„Alles gut.” [1]", [("sentence", "„Alles gut.” [1]")]),
        ("One. [1] Two.", [("sentence", "One. [1]"), ("sentence", "Two.")]),
        ("返金は14日です[1]。次です。", [("sentence", "返金は14日です[1]。"), ("sentence", "次です。")]),
        ("*Head*\nText", [("heading", "*Head*"), ("sentence", "Text")]),
        ("## Head\n\nText", [("heading", "## Head"), ("sentence", "Text")]),
        ("• a\n• b", [("item", "• a"), ("item", "• b")]),
        ("- a\n  more\n- b", [("item", "- a\n  more"), ("item", "- b")]),
        ("1. a\n\n2. b\n\nText", [("item", "1. a"), ("item", "2. b"), ("sentence", "Text")]),
        ("```\ncode\n```", [("fence", "```\ncode\n```")]),
        ("| a |\n|---|\n| 1 |", [("head", "| a |"), ("head", "|---|"), ("row", "| 1 |")]),
        (
            "```\na  b\n-- --\n1  2\n```",
            [("head", "```"), ("head", "a  b"), ("head", "-- --"), ("row", "1  2"), ("foot", "```")],
        ),
        ("```\n--\na\n```", [("fence", "```\n--\na\n```")]),
    ]:
        assert [(part.kind, text[part.start : part.end].strip()) for part in outline(text)] == parts


def test_the_depth_and_number_of_list_items_are_read() -> None:
    parts = outline("3. a\n   - b\n4. c:\n")
    assert [(part.indent, part.number, part.introduces) for part in parts] == [
        (0, 3, False),
        (3, None, False),
        (0, 4, True),
    ]


@given(st.text(alphabet="ab.1 \n-•|*#`:。[]", max_size=120))
def test_parts_are_in_order_and_cover_the_visible_text(text: str) -> None:
    last = 0
    for part in outline(text):
        assert last <= part.start < part.end <= len(text)
        assert not text[last : part.start].strip()
        last = part.end
    assert not text[last:].strip()
