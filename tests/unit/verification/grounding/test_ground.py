"""Single claims against their sources: each kind of evidence, the finding, and paraphrases without one."""

import pytest

from verification.claims.claims import claims
from verification.grounding import check_claims, read_basis
from verification.types import Claim, Draft, Source, Violation

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
