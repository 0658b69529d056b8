"""Numbers that a source has, but of something else, where a sentence says the same with another number."""

from __future__ import annotations

import pytest

from verification.check import check
from verification.types import Draft, Source, Verdict

CODES = "| Status | Meaning |\n|---|---|\n| 400 | The request is malformed. |\n| 429 | Too many requests: wait. |"
LIMITS = "Each key may send 600 requests a minute. Bursts are allowed."
HOUSE = "The office has 45 desks. Room 12 is on the third floor. Bicycles go to the yard; 30 people have a badge."
ASKED = "What does it say?"


def verdict(text: str, *sources: str, question: str = ASKED) -> Verdict:
    read = tuple(Source(id=number, title="Page", text=source) for number, source in enumerate(sources, 1))
    return check(Draft(text=text, question=question, sources=read))


def errors(text: str, *sources: str, question: str = ASKED) -> list[str]:
    return [each.detail for each in verdict(text, *sources, question=question).errors]


@pytest.mark.parametrize(
    ("text", "sources", "detail"),
    [
        ("The office has 12 desks [1].", [HOUSE], "source [1] says 45 desks, not 12 desks"),
        ("The office has 30 desks [1].", [HOUSE], "source [1] says 45 desks, not 30 desks"),
        ("Each key may send 400 requests a minute [1].", [CODES, LIMITS], "source [2] says 600 requests a minute, and"),
        ("Each key may send 429 requests a minute [1].", [CODES, LIMITS], "source [1] has no 429 requests a minute"),
        ("Each key may send 400 requests a minute [2].", [CODES, LIMITS], "source [2] says 600"),
        ("Each key may send 400 requests per minute [1][2].", [CODES, LIMITS], "not 400 requests per minute"),
        ("The probation lasts 30 months [1].", [HOUSE, "The probation lasts six months."], "[2] says six months, and"),
    ],
)
def test_f1_a_number_of_something_else_is_an_error_where_a_sentence_has_another(
    text: str, sources: list[str], detail: str
) -> None:
    (found,) = errors(text, *sources)
    assert detail in found


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("Each key may send 600 requests a minute [2].", [CODES, LIMITS]),
        (
            "Receipts are handed in within 30 days [1].",
            ["Receipts: 30 days.", "Receipts are handed in within 60 days."],
        ),
        (
            "Receipts are handed in within 30 days [1].",
            ["| What | Days |\n|---|---|\n| Receipts | 30 |", "Receipts are handed in within 60 days."],
        ),
        (
            "Receipts are handed in within 30 days [1].",
            ["Days to hand in receipts: 30", "Receipts are handed in within 60 days."],
        ),
        ("The office has 12 of the desks in the yard [1].", [HOUSE]),
        ("The office does not have 12 desks but 45 [1].", [HOUSE]),
        ("The office has 12 desks and the house 45 desks [1].", ["The office has 12 desks. The house has 45 desks."]),
        ("A desk costs 12 euros [1].", ["A desk costs 12 euros.", "A desk costs 15 euros since May."]),
    ],
)
def test_f6_a_right_number_is_not_accused(text: str, sources: list[str]) -> None:
    assert errors(text, *sources) == []


def test_f6_a_number_of_the_question_counts_as_known() -> None:
    assert errors("With 5 people the office has 5 desks [1].", HOUSE, question="Has it 5 desks?") == []


def test_f2_a_citation_is_not_set_to_a_page_that_has_the_number_of_something_else() -> None:
    wrong = verdict("Each key may send 400 requests a minute [2].", CODES, LIMITS)
    assert not wrong.passed
    assert "[2]" in wrong.text
    right = verdict("Each key may send 600 requests a minute [1].", CODES, LIMITS)
    assert right.passed
    assert "[2]" in right.text


def test_f3_the_remedy_names_the_number_and_the_page_that_has_it() -> None:
    (found,) = verdict("Each key may send 400 requests a minute [1].", CODES, LIMITS).errors
    assert found.remedy == "Say 600 requests a minute and cite [2], or drop the sentence."
    assert found.words == "400"
