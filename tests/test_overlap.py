"""A sentence without a word of its source is an error; one word, or part of one, in common is a doubt at most."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verification.answer import Draft, Source
from verification.rules import check

PAGE = "Backups run every night at 02:00 and are kept for 30 days. Bodybuilding courses are on Mondays."


def found(text: str, *sources: str) -> list[tuple[str, str]]:
    pages = tuple(Source(id=i, title="", text=page) for i, page in enumerate(sources, 1))
    verdict = check(Draft(text=text, sources=pages))
    return [(v.severity, v.detail) for v in verdict.violations if v.rule == "claim_supported"]


def test_f1_a_sentence_that_has_nothing_of_its_source_is_an_error() -> None:
    text = "The works council agreed to this after a long debate with everybody [1]."
    assert found(text, PAGE) == [("error", "not one word of this sentence stands in source [1]")]
    both = text.replace("[1]", "[1][2]")
    assert found(both, PAGE, "Parking is free for all staff.") == [
        ("error", "not one word of this sentence stands in sources [1] and [2]")
    ]


def test_f9_in_german_too() -> None:
    page = "Die Sicherungen laufen jede Nacht und werden dreißig Tage aufgehoben."
    text = "Der Betriebsrat hat das nach einer langen Debatte mit allen Beteiligten beschlossen [1]."
    assert [severity for severity, _ in found(text, page)] == ["error"]


@pytest.mark.parametrize(
    "text",
    [
        "The works council agreed to backups after a long debate [1].",  # one word
        "The works council agreed to this after long days of debate [1].",  # one stem
        "The works council agreed that people may build after a debate [1].",  # a part of a word
        "The works council agreed to 30 after a long debate [1].",  # a number
        "The works council agreed to it [1].",  # few words
        "Der Betriebsrat hat das nach einer langen Debatte mit allen beschlossen [1].",  # another language
    ],
)
def test_f1_anything_in_common_is_left_to_the_score(text: str) -> None:
    assert "error" not in [severity for severity, _ in found(text, PAGE)]


def test_f2_a_sentence_of_another_page_gets_its_number() -> None:
    other = "The works council agreed to this after a long debate with everybody."
    pages = (Source(id=1, title="", text=PAGE), Source(id=2, title="", text=other))
    verdict = check(Draft(text=f"{other[:-1]} [1].", sources=pages))
    assert verdict.passed
    assert verdict.text == f"{other[:-1]} [2]."


@given(
    st.sampled_from(("Backups", "night", "02:00", "kept", "30", "days", "courses", "Mondays")),
    st.text(alphabet="abcdefgh ", min_size=20, max_size=60),
)
def test_f1_a_word_of_the_source_always_saves_it_from_this(word: str, rest: str) -> None:
    assert not any("not one word" in detail for _, detail in found(f"{rest} {word} {rest} [1].", PAGE))
