"""Names: swapped ones are errors, and what only looks like a name is left alone."""

from __future__ import annotations

import pytest

from verification.claims.claims import claims
from verification.grounding import check_claims, read_basis
from verification.types import Draft, Source, Violation

SOURCE = "Requests go to Marta Weiss in Lisbon. The team in Los Angeles uses Kestrel for builds."


def violations_of(claim: str, *, question: str = "", source: str = "") -> list[Violation]:
    text = f"{claim} [1]"
    draft = Draft(text=text, question=question, sources=(Source(id=1, title="", text=source or SOURCE),))
    return [
        v
        for v in check_claims(read_basis(draft, text), claims(text))[1]
        if v.words and v.words in claim and v.words != text
    ]


def test_another_name_in_the_place_of_the_sources_is_an_error() -> None:
    (violation,) = violations_of("Requests go to Jonas Brandt in Lisbon.")
    assert (violation.severity, violation.words) == ("error", "Jonas Brandt")
    assert "Marta Weiss" in violation.detail


@pytest.mark.parametrize(
    "claim",
    ["Requests go to Marta Weiss in Lisbon.", "The team in LA uses Kestrel for builds.", "Builds use Kestrel."],
)
def test_known_names_initials_and_first_words_are_fine(claim: str) -> None:
    assert violations_of(claim) == []


def test_name_is_compared_only_with_the_same_word_before_its_article() -> None:
    assert violations_of("Builds go from the Team in Lisbon.") == []
    assert violations_of("Requests of Marta Weiss go by the Warden in Los Angeles.") == []


def test_names_of_the_question_are_known() -> None:
    assert violations_of("The team in Ottawa uses Kestrel for builds.", question="What about Ottawa?") == []


NOTES = (
    "Karl objected because the rollback plan is untested. Mei Tanaka writes the migration note. Ines Duarte asks Karl."
)


@pytest.mark.parametrize(
    ("claim", "there"),
    [
        ("Ines Duarte asks Mei.", "Karl"),
        ("Ines Duarte writes the migration note.", "Mei Tanaka"),
    ],
)
def test_known_name_in_the_place_of_another_fails(claim: str, there: str) -> None:
    (violation,) = violations_of(claim, source=NOTES)
    assert (violation.severity, violation.detail.split(" says ")[1].split(", not")[0]) == ("error", there)


def test_name_that_the_source_uses_elsewhere_passes() -> None:
    for claim, question in [
        ("Mei Tanaka writes the migration note.", ""),
        ("Mei objected because the rollback plan is untested.", ""),  # a first word has a capital anyway
        ("Mei objected because the rollback plan is untested.", "Did Mei object?"),  # as the asker calls him
        ("Ines objected.", ""),
        ("Ines Duarte objected because of the costs of the plan.", ""),
        ("The plan of Karl is untested, so Ines Duarte objected.", ""),
    ]:
        assert [v for v in violations_of(claim, question=question, source=NOTES) if v.severity == "error"] == []


def test_name_that_another_sentence_puts_there_passes() -> None:
    source = "Karl tests the rollback plan on Monday. Mei tests the rollback plan later."
    assert violations_of("Mei tests the rollback plan on Monday.", source=source) == []
