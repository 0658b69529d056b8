"""Setting a citation right: only where exactly one other source bears the sentence out."""

import pytest

from verification.check import check
from verification.claims.claims import claims
from verification.grounding import check_claims, fix_citations, read_basis
from verification.types import Draft, Repair, Source

SOURCES = (
    Source(id=1, title="Backups", text="Backups are kept for 30 days. They run nightly at 02:00."),
    Source(id=2, title="Leave", text="Employees have 28 days of leave a year. Requests go to the team lead."),
    Source(id=3, title="Parking", text="The garage opens at 06:30 and closes at 22:00."),
)


def set_right(text: str, sources: tuple[Source, ...] = SOURCES) -> tuple[str, tuple[Repair, ...]]:
    offered = read_basis(Draft(text=text, sources=sources), text)
    return fix_citations(offered, text, check_claims(offered, claims(text))[0])


def test_a_citation_that_does_not_exist_is_corrected_too() -> None:
    assert set_right("The garage opens at 06:30 [9].")[0] == "The garage opens at 06:30 [3]."
    assert set_right("The garage opens at 06:30 [9][1].")[0] == "The garage opens at 06:30 [3]."


def test_the_remedy_names_the_supporting_source() -> None:
    text = "Employees have 28 days of leave a year [1]."
    (judged,), violations = check_claims(read_basis(Draft(text=text, sources=SOURCES), text), claims(text))
    assert judged.supported == "no"
    assert "Cite [2] instead" in violations[0].remedy


RULEBOOK = (
    Source(id=1, title="Refunds", text="Refunds take 14 days. The form has 3 pages."),
    Source(id=2, title="Leave", text="Annual leave is 30 days. Parental leave is 16 weeks."),
    Source(id=3, title="Urlaub", text="Der Resturlaub verfällt am 31. März."),
)


def test_a_wrong_citation_is_corrected_and_recorded() -> None:
    for text, mended in [
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
    ]:
        verdict = check(Draft(text=text, sources=RULEBOOK))
        assert verdict.passed
        assert verdict.text == mended
        assert "citation_source" in [repair.kind for repair in verdict.repairs]
        assert check(Draft(text=verdict.text, sources=RULEBOOK)).repairs == ()


@pytest.mark.parametrize(
    "text", ["Refunds take 30 days [1].", "Refunds take 99 days [2].", "The trial takes 30 days [1]."]
)
def test_a_wrong_fact_still_fails(text: str) -> None:
    verdict = check(Draft(text=text, sources=RULEBOOK))
    assert not verdict.passed
    assert verdict.text == text


def test_a_citation_of_a_fact_in_two_sources_is_not_moved() -> None:
    twins = (*RULEBOOK, Source(id=4, title="Refunds again", text="Refunds take 14 days."))
    assert check(Draft(text="Refunds take 14 days [2].", sources=twins)).text == "Refunds take 14 days [2]."


def test_without_repair_no_citation_is_moved() -> None:
    verdict = check(Draft(text="Refunds take 14 days [2].", sources=RULEBOOK, repair=False))
    assert not verdict.passed
    assert verdict.text == "Refunds take 14 days [2]."


GUIDES = (
    Source(id=1, title="Roles", text="The communications lead writes to customers. The page names every lead."),
    Source(id=2, title="Incidents", text="The incident lead decides. The communications lead updates the status page."),
    Source(id=3, title="Parking", text="The garage opens at 06:30 and closes at 22:00."),
)


@pytest.mark.parametrize(
    "text",
    [
        "The communications lead updates the status page [2].",
        "The lead for communications keeps the status page up to date [2].",
        "The incident lead decides [2].",
        "Updates [1].",
    ],
)
def test_a_citation_that_no_other_page_beats_stays(text: str) -> None:
    verdict = check(Draft(text=text, sources=GUIDES))
    assert verdict.passed
    assert verdict.text == text
