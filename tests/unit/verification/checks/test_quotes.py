"""Quotations: word by word, with omissions, in seven languages' marks; small words apart, altered ones are errors."""

from __future__ import annotations

from verification.checks.wording import quotations
from verification.claims.claims import claims
from verification.grounding import check_claims, read_basis
from verification.types import Draft, Source, Violation

SOURCE = "The manual says they're never to open the valve before the lamp is green, whatever the pressure is."


def violations_of(claim: str, source: str = SOURCE) -> list[Violation]:
    text = f"{claim} [1]"
    draft = Draft(text=text, sources=(Source(id=1, title="", text=source),))
    return [v for v in check_claims(read_basis(draft, text), claims(text))[1] if v.words != text]


def test_quotation_marks_of_every_kind() -> None:
    for marked in [
        "“one two three”",
        "„one two three“",
        "«one two three»",
        "»one two three«",
        '"one two three"',
        "‘one two three’",
        "「一二三四五六」",
        "『一二三四五六』",
    ]:
        assert [marked[start - 0 : end] for start, end, _ in quotations(marked)] == [marked[1:-1]]


def test_one_or_two_quoted_words_are_a_label() -> None:
    assert list(quotations('the "Save all" button')) == []


def test_an_altered_quotation_names_the_original() -> None:
    (violation,) = violations_of('It says "never to open the valve before the lamp is red".')
    assert violation.severity == "error"
    assert violation.detail == "source [1] has it as: never to open the valve before the lamp is green"


def test_an_invented_quotation_is_an_error() -> None:
    (violation,) = violations_of('It says "squirrels guard those purple teapots".')
    assert violation.severity == "error"
    assert "are not in source [1]" in violation.detail


def test_small_words_apart_it_is_a_suspicion() -> None:
    violations = violations_of('It says "they are never to open the valve".')
    assert [v.severity for v in violations] == ["warning"]


def test_missing_german_negation_is_not_a_small_word() -> None:
    source = "Das Handbuch sagt, man soll das Ventil während der Wartung nicht öffnen und die Lampe prüfen."
    violations = violations_of(
        "Es heißt „man soll das Ventil während der Wartung öffnen und die Lampe prüfen“.", source
    )
    assert [v.severity for v in violations if "has it as" in v.detail] == ["error"]
