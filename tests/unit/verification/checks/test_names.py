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
