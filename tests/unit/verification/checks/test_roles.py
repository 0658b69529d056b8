"""Roles in the place of other roles: who approves, who is paged, who is told."""

from __future__ import annotations

import pytest

from verification.check import check
from verification.types import Draft, Source, Violation

TRIPS = "Tell the office manager 10 days before a trip outside the European Union."
PAGES = "| Severity | First update | Who is paged |\n|---|---|---|\n| SEV1 | 15 minutes | Primary and incident lead |"
FLAG = "The `--force` flag may lose data: only the database lead may use it."


def found(source: str, text: str, title: str = "Page") -> list[Violation]:
    draft = Draft(text=f"{text} [1].", sources=(Source(id=1, title=title, text=source),))
    return [each for each in check(draft).violations if each.rule == "claim_supported"]


@pytest.mark.parametrize(
    ("source", "claim", "words", "there"),
    [
        (TRIPS, "Tell the release captain 10 days before a trip", "release captain", "office manager"),
        (FLAG, "Only the security lead may use the `--force` flag", "security lead", "database lead"),
        (PAGES, "SEV1: primary and legal counsel", "legal counsel", "incident lead"),
        ("The incident lead does not debug.", "The finance partner does not debug", "finance partner", "incident lead"),
        ("The harbour office keeps the keys.", "The support team keeps the keys", "support team", "harbour office"),
        (
            "On-call engineers are paid by the finance team.",
            "Security auditors are paid by the finance team",
            "Security auditors",
            "On-call engineers",
        ),
    ],
)
def test_f1_another_role_in_the_place_of_the_source_s_is_an_error(
    source: str, claim: str, words: str, there: str
) -> None:
    (error,) = [each for each in found(source, claim) if each.severity == "error"]
    assert (error.words, error.detail) == (words, f"source [1] has {there} there, not {words}")
    assert error.remedy.startswith(f"Write {there} as source [1] has it")


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        (TRIPS, "Tell the office manager 10 days before a trip"),
        (TRIPS, "Tell your manager 10 days before a trip"),
        ("The primary on-call engineer is paged first.", "The on-call engineer is paged first"),
        ("The security lead approves new software.", "The head of security approves new software"),
        ("The support desk answers within a day.", "The support team answers within a day"),
        ("The team that owns payments is paged.", "The payments team is paged"),
        ("The data team meets on Monday and the design team on Friday.", "The design team meets on Friday"),
        ("Tickets go to the support desk.", "As release captain you send tickets to the support desk"),
        ("Die Sicherheitsleitung gibt neue Software frei.", "Das Finanzteam gibt neue Software frei"),
        ("Boats are repaired in the yard by the harbour office.", "The night team likes tea and long walks by the sea"),
    ],
)
def test_f6_the_same_role_in_other_words_is_none(source: str, claim: str) -> None:
    assert not [each for each in found(source, claim) if each.severity == "error"]


def test_f1_a_role_that_the_page_names_elsewhere_is_only_suspected() -> None:
    source = "Opens the channel and informs the support desk and all customers by mail."
    claim = "The incident lead opens the channel and informs all customers by mail"
    assert [each.severity for each in found(source, claim, "Duties of the incident lead")] == ["warning"]
    assert [each.severity for each in found(source, claim, "Duties")] == ["error"]
