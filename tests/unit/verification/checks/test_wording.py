"""Quotations, names and negations of claims against the sentences of their sources."""

import pytest

from verification.checks.wording import quotations
from verification.claims.claims import claims
from verification.grounding import check_claims, read_basis
from verification.types import Draft, Source, Violation

MANUAL = "The manual says they're never to open the valve before the lamp is green, whatever the pressure is."
CONTACTS = "Requests go to Marta Weiss in Lisbon. The team in Los Angeles uses Kestrel for builds."


def violations_of(source: str, claim: str, *, judged: bool = False) -> list[Violation]:
    text = f"{claim} [1]"
    draft = Draft(text=text, sources=(Source(id=1, title="", text=source),), has_judge=judged)
    return [*check_claims(read_basis(draft, text), claims(text))[1]]


def test_quotation_marks_of_every_kind() -> None:
    for marked in [
        "“one two three”", "„one two three“", "«one two three»", "»one two three«", '"one two three"',
        "‘one two three’", "「一二三四五六」", "『一二三四五六』",
    ]:  # fmt: skip
        assert [marked[start - 0 : end] for start, end, _ in quotations(marked)] == [marked[1:-1]]


def test_one_or_two_quoted_words_are_a_label() -> None:
    assert list(quotations('the "Save all" button')) == []


@pytest.mark.parametrize(
    "source",
    [
        "The of\u00adfice\u00a0opens at nine.", "The o\ufb03ce opens at nine.", "The ｏｆｆｉｃｅ opens at nine.",
        "The of-\nfice opens at nine.", "The office¹ opens at nine.", "The office<sup>1</sup> opens at nine.",
        "The office<br>opens at nine.", "<td>The office</td><td>opens at nine.</td>",
        "The [[Office|office]] opens at nine.", "The&nbsp;office opens at nine.",
        "The [office [main]](https://x.test).\n\nThe **office** opens\n> at nine.",
    ],
)  # fmt: skip
def test_a_quotation_compares_as_it_is_read(source: str) -> None:
    assert violations_of(source, 'It says "the office opens at nine".') == []


def test_an_altered_quotation_names_the_original() -> None:
    (violation,) = violations_of(MANUAL, 'It says "never to open the valve before the lamp is red".')
    assert violation.severity == "error"
    assert violation.detail == "source [1] has it as: never to open the valve before the lamp is green"


def test_an_invented_quotation_is_an_error() -> None:
    (violation,) = violations_of(MANUAL, 'It says "squirrels guard those purple teapots".')
    assert violation.severity == "error"
    assert "are not in source [1]" in violation.detail


def test_a_quotation_that_differs_in_small_words_is_a_warning() -> None:
    violations = violations_of(MANUAL, 'It says "they are never to open the valve".')
    assert [v.severity for v in violations] == ["warning"]


def test_a_missing_german_negation_counts_as_a_change() -> None:
    source = "Das Handbuch sagt, man soll das Ventil während der Wartung nicht öffnen und die Lampe prüfen."
    violations = violations_of(
        source, "Es heißt „man soll das Ventil während der Wartung öffnen und die Lampe prüfen“."
    )
    assert [v.severity for v in violations if "has it as" in v.detail] == ["error"]


def test_a_name_that_differs_from_the_source_is_an_error() -> None:
    (violation,) = violations_of(CONTACTS, "Requests go to Jonas Brandt in Lisbon.")
    assert (violation.severity, violation.words) == ("error", "Jonas Brandt")
    assert "Marta Weiss" in violation.detail


ROLES = "The Incident Commander runs the meeting on Monday. The IC may ask anyone on the call to leave."


@pytest.mark.parametrize(
    "claim",
    [
        "The IC runs the meeting on Monday.", "The IC's meeting runs on Monday.",
        "The Incident Commander may ask anyone on the call to leave.",
    ],
)  # fmt: skip
def test_initials_are_the_same_name(claim: str) -> None:
    assert violations_of(ROLES, claim, judged=True) == []


@pytest.mark.parametrize("names", [("Control-C", "Ctrl-C"), ("Berlin", "Bern"), ("Mia", "Maria")])
def test_only_a_judge_can_tell_a_short_form_of_a_name_from_another_name(names: tuple[str, str]) -> None:
    source, claim = (f"Customers ask the desk for a refund after {name} confirms it." for name in names)
    verdicts = (violations_of(source, claim, judged=judged) for judged in (True, False))
    assert [[each.severity for each in verdict] for verdict in verdicts] == [["warning"], ["error"]]


NOTES = (
    "Karl objected because the rollback plan is untested. Mei Tanaka writes the migration note. Ines Duarte asks Karl."
)


@pytest.mark.parametrize(
    ("claim", "there"), [("Ines Duarte asks Mei.", "Karl"), ("Ines Duarte writes the migration note.", "Mei Tanaka")]
)
def test_a_known_name_in_place_of_another_fails(claim: str, there: str) -> None:
    (violation,) = violations_of(NOTES, claim)
    assert (violation.severity, violation.detail.split(" says ")[1].split(", not")[0]) == ("error", there)


@pytest.mark.parametrize(
    ("source", "claim", "count"),
    [
        ("Storage consumes 25.2 BU in a day.", "Storage consumes 25.2 BUs in a day.", 0),
        ("Storage consumes `25.2 BU` in a day.", "Storage consumes `25.2 BUs` in a day.", 0),
        ("Each of the nodes has two SSDs inside.", "Each of the nodes has two SSD inside.", 0),
        ("Storage consumes 25.2 BU in a day.", "Storage consumes 25.2 MUs in a day.", 1),
    ],
)
def test_the_plural_of_an_abbreviation_is_the_same_name(source: str, claim: str, count: int) -> None:
    assert len(violations_of(source, claim)) == count


def test_an_added_or_missing_negation_is_an_error_without_a_judge() -> None:
    for source, claim in [
        ("Deploys are allowed on Friday.", "Deploys are not allowed on Friday."),
        ("The door must not be opened by visitors.", "The door must be opened by visitors."),
        ("The service doesn't restart by itself.", "The service does restart by itself."),
        ("Der Zugang ist am Sonntag erlaubt und kostenlos.", "Der Zugang ist am Sonntag nicht erlaubt und kostenlos."),
        ("El acceso a la sala está permitido.", "El acceso a la sala no está permitido."),
    ]:
        (violation,) = violations_of(source, claim)
        assert violation.severity == "error"
        assert source in violation.detail
        assert [each.severity for each in violations_of(source, claim, judged=True)] == ["warning"]
        assert violations_of(source, source) == []


@pytest.mark.parametrize(
    "source",
    ["<mailto:ann@x.example>", "mailto:ann@x.example", "ann@x.example", "[ann@x.example](mailto:ann@x.example)"],
)
def test_a_mail_address_is_read_however_it_is_written(source: str) -> None:
    for claim in ("ann@x.example", "<mailto:ann@x.example|ann@x.example>"):
        assert (
            violations_of(f"Write to {source} about your days off.", f'It says "Write to {claim} about your days".')
            == []
        )
