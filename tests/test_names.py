"""Names: absent ones are suspicions, swapped ones are errors, and what only looks like a name is left alone."""

from __future__ import annotations

import pytest

from verification.answer import Draft, Source, Violation
from verification.claims import claims
from verification.examination import grounds
from verification.grounding import ground

SOURCE = "Requests go to Marta Weiss in Lisbon. The team in Los Angeles uses Kestrel for builds."


def found(claim: str, *, question: str = "") -> list[Violation]:
    text = f"{claim} [1]"
    draft = Draft(text=text, question=question, sources=(Source(id=1, title="", text=SOURCE),))
    return [
        v for v in ground(grounds(draft, text), claims(text))[1] if v.words and v.words in claim and v.words != text
    ]


def test_f1_another_name_in_the_place_of_the_sources_is_an_error() -> None:
    (violation,) = found("Requests go to Jonas Brandt in Lisbon.")
    assert (violation.severity, violation.words) == ("error", "Jonas Brandt")
    assert "Marta Weiss" in violation.detail


def test_f1_a_name_merely_absent_is_a_suspicion() -> None:
    (violation,) = found("Requests for builds and the team go to Lisbon and then Ottawa.")
    assert (violation.severity, violation.words) == ("warning", "Ottawa")


@pytest.mark.parametrize(
    "claim",
    ["Requests go to Marta Weiss in Lisbon.", "The team in LA uses Kestrel for builds.", "Builds use Kestrel."],
)
def test_f1_known_names_initials_and_first_words_are_fine(claim: str) -> None:
    assert found(claim) == []


def test_f1_before_an_article_the_same_word_must_stand_too() -> None:
    assert [v.severity for v in found("Builds go from the Team in Lisbon.")] == []
    assert [v.severity for v in found("Requests of Marta Weiss go by the Warden in Los Angeles.")] == ["warning"]


def test_f1_names_of_the_question_are_known() -> None:
    assert found("The team in Ottawa uses Kestrel for builds.", question="What about Ottawa?") == []
