"""verification/attribution.py: the right fact behind the wrong number."""

from __future__ import annotations

import pytest

from verification.answer import Draft, Source
from verification.rules import check

SOURCES = (
    Source(id=1, title="Refunds", text="Refunds take 14 days. The form has 3 pages."),
    Source(id=2, title="Leave", text="Annual leave is 30 days. Parental leave is 16 weeks."),
    Source(id=3, title="Urlaub", text="Der Resturlaub verfällt am 31. März."),
)


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("Refunds take 14 days [2].", "Refunds take 14 days [1]."),
        ("Annual leave is 30 days [1].", "Annual leave is 30 days [2]."),
        (
            "Refunds take 14 days [2]. Annual leave is 30 days [1].",
            "Refunds take 14 days [1]. Annual leave is 30 days [2].",
        ),
        (
            "• Parental leave is 16 weeks [1]\n• The form has 3 pages [1]",
            "• Parental leave is 16 weeks [2]\n• The form has 3 pages [1]",
        ),
        ("Der Resturlaub verfällt am 31. März [1].", "Der Resturlaub verfällt am 31. März [3]."),
    ],
)
def test_f2_a_wrong_citation_is_set_right_and_recorded(text: str, mended: str) -> None:
    verdict = check(Draft(text=text, sources=SOURCES))
    assert verdict.passed
    assert verdict.text == mended
    assert "citation_source" in [repair.kind for repair in verdict.repairs]
    assert check(Draft(text=verdict.text, sources=SOURCES)).repairs == ()


@pytest.mark.parametrize(
    "text",
    [
        "Refunds take 30 days [1].",
        "Refunds take 99 days [2].",
        "The trial takes 30 days [1].",
    ],
)
def test_f2_a_wrong_fact_stays_wrong(text: str) -> None:
    verdict = check(Draft(text=text, sources=SOURCES))
    assert not verdict.passed
    assert verdict.text == text


def test_f2_what_two_sources_hold_is_not_moved() -> None:
    twins = (*SOURCES, Source(id=4, title="Refunds again", text="Refunds take 14 days."))
    assert check(Draft(text="Refunds take 14 days [2].", sources=twins)).text == "Refunds take 14 days [2]."


def test_f2_without_repair_nothing_is_moved() -> None:
    verdict = check(Draft(text="Refunds take 14 days [2].", sources=SOURCES, repair=False))
    assert not verdict.passed
    assert verdict.text == "Refunds take 14 days [2]."
