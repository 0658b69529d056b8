"""A rule fails only what it is sure of: right answers in any spelling pass, another value in a value's place fails."""

from dataclasses import replace

import pytest

from verification.check import check
from verification.types import Draft, Source

TRAVEL = (
    "A private car is reimbursed with 0.32 euros a kilometre. Hotels cost up to 140 euros a night. "
    "Book flights at least 14 days ahead. The year end freeze runs from 2026-12-18 to 2027-01-04."
)
KEYS = (
    "API keys do not expire, but version 2 keys will be removed on 2027-02-28. Logs are kept for 30 days. "
    "The review is on Monday, 3 May 2027 at 14:30. Connect with `client.connect(timeout=30)`."
)


def draft(source: str, text: str, question: str = "") -> Draft:
    page = Source(id=1, title="Page", text=source, updated_at="2026-10-01T09:00:00Z")
    return Draft(text=text, question=question, sources=(page,))


@pytest.mark.parametrize(
    ("source", "text", "words"),
    [
        (TRAVEL, "A private car is reimbursed with 0.48 euros a kilometre [1].", "0.48 euros"),
        (TRAVEL, "300 km × 0.32 €/km = 86 € [1].", "86 €"),
        (KEYS, "The review is on Monday, 10 May 2027 at 14:30 [1].", "10 May 2027"),
    ],
)
def test_another_value_in_place_of_the_source_value_fails_with_any_judge(source: str, text: str, words: str) -> None:
    asked = replace(draft(source, text), question="300 km")
    for verdict in (check(asked), check(replace(asked, has_judge=True))):
        assert words in {error.words for error in verdict.errors}


def test_a_value_that_no_source_has_is_left_to_the_judge() -> None:
    for source, text in [
        (TRAVEL, "Lunch on the train is paid up to 77 euros [1]."),
        (KEYS, "The next audit takes place on 9 June 2029 [1]."),
        (KEYS, "Set `retry_limit` first [1]."),
        (KEYS, "Connect like this [1]:\n```\nclient.connect(timeout=900)\n```"),
        (KEYS, "Logs are not kept for 30 days [1]."),
    ]:
        asked = draft(source, text)
        assert [error.rule for error in check(asked).errors] == ["claim_supported"]
        verdict = check(replace(asked, has_judge=True))
        assert verdict.passed
        assert "open" in {claim.supported for claim in verdict.claims}


def test_shared_words_do_not_move_a_citation_if_there_is_a_judge() -> None:
    """With a judge no rule moves a citation: it would move right ones to pages with the same numbers."""
    sources = (
        Source(id=1, title="Colonoscopy", text="Second sachet 5 hours before. Drink nothing from three hours before."),
        Source(id=2, title="Ultrasound", text="Drink nothing for 3 hours before an ultrasound at 9:00 or 12:00."),
    )
    text = "Three hours before, 12:00 − 3 hours = 9:00, drink nothing [1]."
    assert "[1]" in check(Draft(text=text, sources=sources, has_judge=True)).text


def test_a_judge_decides_the_order_of_quoted_steps() -> None:
    """Two steps exchanged, each word for word: rules and quotations alone let it pass in a recorded try."""
    page = "1. Unplug the battery from the truck.\n2. Switch on the fan and wait for the green lamp."
    swapped = (
        "1. Switch on the extractor fan and wait for the green lamp. [1]\n2. Unplug the battery from the truck. [1]"
    )
    assert check(draft(page, swapped)).passed
    claims = check(replace(draft(page, swapped), has_judge=True)).claims
    assert {(claim.supported, claim.settled_by) for claim in claims} == {("open", "nobody")}
