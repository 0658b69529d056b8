"""What was and what is exchanged; and changes told rightly, and ranges."""

from __future__ import annotations

import pytest

from verification.check import check
from verification.types import Draft, Source


def details(source: str, text: str) -> list[str]:
    found = check(Draft(text=f"{text} [1].", sources=(Source(id=1, title="", text=source),))).errors
    return [each.detail for each in found if "the other way round" in each.detail]


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        (
            "The default timeout is now 20 seconds (was 60 seconds).",
            "The default timeout went from 60 seconds to 20 seconds",
            "The default timeout went from 20 to 60 seconds",
        ),
        (
            "The cache holds 500 entries (was 1,000).",
            "The cache holds 500 entries instead of 1,000",
            "The cache holds 1,000 entries instead of 500",
        ),
        (
            "Prices rose from 5 euros to 8 euros.",
            "Prices are 8 euros, up from 5 euros",
            "Prices are 5 euros, up from 8 euros",
        ),
        (
            "Das Indizieren dauert 14 Minuten statt 9 Minuten.",
            "Das Indizieren dauert 14 Minuten statt 9 Minuten",
            "Das Indizieren dauert 9 Minuten statt 14 Minuten",
        ),
    ],
)
def test_f1_a_change_told_the_other_way_round_fails(source: str, right: str, wrong: str) -> None:
    assert details(source, right) == []
    assert details(source, wrong) != []


def test_f1_two_ranges_are_no_changes() -> None:
    assert details("Restores take from 20 to 40 minutes.", "Restores take from 40 to 20 minutes") == []


def test_f1_a_sentence_with_the_change_as_claimed_settles_it() -> None:
    source = "The cache holds 500 entries (was 1,000). After the rollback the cache holds 1,000 entries (was 500)."
    assert details(source, "The cache holds 1,000 entries instead of 500") == []
