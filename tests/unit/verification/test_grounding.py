"""Claims against their sources: evidence, citations set right, and right answers in any spelling."""

from dataclasses import replace

import pytest

from verification.check import check
from verification.claims.claims import claims
from verification.grounding import check_claims, fix_citations, read_basis
from verification.types import Claim, Draft, Repair, Source, Violation

BACKUPS = Source(
    id=1,
    title="Backups",
    url="https://docs.example/backups",
    text=(
        "Backups are kept for 30 days. They run nightly at 02:00. The command is `orion backup --full`. "
        'Version v2.1.3 was released on 5 March 2021. "Never delete a backup by hand", says the runbook. '
        "There are 1,200 users: 300 in Berlin and 900 in Paris."
    ),
)
LEAVE = Source(id=2, title="Leave", text="Employees have 28 days of leave a year. Requests go to the team lead.")


def judge(text: str, *, question: str = "", known_text: str = "") -> tuple[tuple[Claim, ...], tuple[Violation, ...]]:
    draft = Draft(text=text, sources=(BACKUPS, LEAVE), question=question, known_text=known_text)
    return check_claims(read_basis(draft, text), claims(text))


def test_precise_evidence_is_an_error_that_names_the_source_value() -> None:
    for text, words, said in [
        ("Backups are kept for 14 days [1].", "14 days", "source [1] says 30 days"),
        ("Backups are kept for 30 hours [1].", "30 hours", "source [1] says 30 days"),
        ("They run nightly at 3:00 [1].", "3:00", "source [1] says 02:00"),
        ("Use `orion backup --fast` [1].", "`orion backup --fast`", "source [1] has orion backup --full"),
        ("It was released on 6 March 2021 [1].", "6 March 2021", "source [1] says 5 March 2021"),
        ('It says "Never delete a backup by mistake" [1].', "Never delete a backup by mistake", "source [1] has it as"),
        ("Version 2.1.4 is out [1].", "2.1.4", "source [1] has v2.1.3"),
        ("See https://evil.example/x [1].", "https://evil.example/x", "is not in source [1]"),
    ]:
        judged, violations = judge(text)
        assert [claim.supported for claim in judged] == ["no"]
        (found,) = violations
        assert (found.rule, found.severity, found.words) == ("claim_supported", "error", words)
        assert text[found.start : found.end] == words
        assert said in found.detail
        assert found.remedy


def test_a_claim_after_a_refuted_one_is_still_judged() -> None:
    text = "Backups are kept for 14 days [9]. Backups are kept for 30 days [1]. Backups are kept for 15 days [1]."
    judged, violations = judge(text)
    assert [claim.supported for claim in judged] == ["open", "yes", "no"]
    assert [violation.words for violation in violations] == ["15 days"]


@pytest.mark.parametrize(
    "text",
    [
        "Backups run nightly at 02:00 and employees have 28 days of leave a year [1][2].",
        "Leave is 28 days a year for employees, backups run nightly [1][2].",
        "Requests for leave go to the team lead, while users in Berlin and Paris number 1,200 [1][2].",
    ],
)
def test_two_sources_together_support_a_claim(text: str) -> None:
    (claim,), violations = judge(text)
    assert (claim.supported, claim.settled_by, violations) == ("open", "nobody", ())


def test_a_word_in_code_that_no_source_has_is_an_error() -> None:
    _, violations = judge("Backups are made with `xyzzy` [1].")
    assert [(each.severity, each.words) for each in violations] == [("error", "`xyzzy`")]


@pytest.mark.parametrize(("code", "severity"), [("`curl`", "error"), ("`curl -s`", "warning")])
def test_the_writer_may_name_an_everyday_command_freely(code: str, severity: str) -> None:
    _, violations = judge(f"Backups are fetched with {code} [1].")
    assert [(each.severity, each.words) for each in violations] == [(severity, code)]


def test_a_quotation_that_ends_inside_a_word_is_altered() -> None:
    source = Source(id=1, title="", text='The sign says "never delete the backups." It hangs there.')
    text = 'It says "never delete the backup" [1].'
    _, violations = check_claims(read_basis(Draft(text=text, sources=(source,)), text), claims(text))
    assert [each.words for each in violations] == ["never delete the backup"]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "Die Probezeit dauert 6 Monate. Reisekosten werden innerhalb von 30 Tagen erstattet, die Passwörter nicht.",
            "Die Probezeit dauert sechzehn Monate [1].",
        ),
        (
            "Masa percobaan berlangsung 6 bulan. Biaya diganti dalam 30 hari, dan kata sandi tidak boleh dibagikan.",
            "Masa percobaan berlangsung enam belas bulan [1].",
        ),
    ],
)
def test_a_short_claim_is_read_in_the_language_of_the_source_whose_words_it_has(source: str, text: str) -> None:
    draft = Draft(text=text, question="What do our rules say?", sources=(Source(id=1, title="Page", text=source),))
    ((claim,), _) = check_claims(read_basis(draft, text), claims(text))
    assert claim.supported == "no"


@pytest.mark.parametrize(
    ("text", "without", "before_a_judge"),
    [
        ("Employees have 28 days of leave a year [1].", True, True),
        ("Employees have 28 days of leave [1].", True, False),
        ("Requests for a refund go to the shop within 30 days [1].", True, False),
        ("Requests for a refund go to the team lead [1].", False, False),
        ("A year of leave have 28 employees [1].", False, False),
        ("作品は三日間乾かします[1]。", True, True),
        ("作品は三日間[1]。", True, False),
    ],
)
def test_a_quotation_may_be_shortened_only_without_a_judge(
    text: str,
    without: bool,  # noqa: FBT001 - a column of the table
    before_a_judge: bool,  # noqa: FBT001 - a column of the table
) -> None:
    told = (
        "Employees have 28 days of leave a year. Requests for a refund go to the shop within 30 days unless the seal "
        "is broken.\n作品は三日間乾かします。"
    )
    for judged, quoted in ((False, without), (True, before_a_judge)):
        draft = Draft(text=text, sources=(Source(id=1, title="", text=told),), has_judge=judged)
        (claim,), _ = check_claims(read_basis(draft, text), claims(text))
        assert (claim.settled_by == "quotation") is quoted


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
    page = "First:\n```\nfan on\n```\nThen:\n```\nbattery off --now\n```"
    for code, settled in (("fan on\nbattery off --now", "quotation"), ("battery off --now\nfan on", "nobody")):
        (claim,) = check(replace(draft(page, f"```\n{code}\n```\n[1]"), has_judge=True)).claims
        assert claim.settled_by == settled


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
