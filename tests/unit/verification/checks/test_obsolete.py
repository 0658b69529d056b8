"""What only a replaced page says, told as true today, fails; told as past, or borne out elsewhere, it passes."""

from __future__ import annotations

import pytest

from verification.check import check
from verification.checks.obsolete import replaced
from verification.types import Draft, Source

OLD = Source(id=1, title="Leave 2023 (superseded by Leave 2026)", text="Full-time employees get 25 days of leave.")
NEW = Source(id=2, title="Leave 2026", text="Full-time employees get 28 days of leave. Interns get 10 days of leave.")
PHONE = Source(id=2, title="Phones", text="Ask 4110.")
ALT = Source(id=1, title="Urlaub", text="Diese Regelung ist veraltet. Vollzeitkräfte bekommen 25 Tage Urlaub.")


def is_refused(text: str, *sources: Source, question: str = "") -> bool:
    found = check(Draft(text=text, question=question, sources=sources)).errors
    return any("says of itself" in each.detail for each in found)


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("Full-time employees get 25 days of leave [1].", (OLD, NEW)),
        ("Vollzeitkräfte bekommen 25 Tage Urlaub [1].", (ALT,)),
        ("Full-time employees get 25 days of leave [1]. Ask 4110 [2].", (OLD, PHONE)),
    ],
)
def test_f1_a_replaced_page_told_as_current_fails(text: str, sources: tuple[Source, ...]) -> None:
    assert is_refused(text, *sources)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Full-time employees had 25 days of leave before [1].", ""),
        ("Full-time employees get 25 days of leave by the policy of 2023 [1].", ""),
        ("Full-time employees get 25 days of leave [1].", "What did the old policy say?"),
        ("Full-time employees get 25 days of leave [1]. That page is superseded [1].", ""),
        ("Full-time employees get 28 days of leave [2].", ""),
        ("Full-time employees get leave [1][2].", ""),
    ],
)
def test_f1_what_is_told_as_past_or_stands_in_another_page_passes(text: str, question: str) -> None:
    assert not is_refused(text, OLD, NEW, question=question)


@pytest.mark.parametrize(
    "head",
    [
        "This page is obsolete.",
        "> **Obsolete since 2026-02:** see the runbook.",
        "Status: superseded by the new policy.",
        "This policy no longer applies.",
        "This old guide has been replaced by another.",
        "Diese Richtlinie wurde durch die neue Fassung ersetzt.",
        "Cette page est obsolète.",
        "Esta política ya no está vigente.",
        "Halaman ini sudah tidak berlaku.",
        "この規定は廃止されました。",
    ],
)
def test_f1_a_page_says_in_many_ways_that_it_was_replaced(head: str) -> None:
    assert replaced(f"Leave\n{head} Employees get 25 days of leave.")


@pytest.mark.parametrize(
    "head",
    [
        "The first API was replaced by the second one in May.",
        "Paper forms are obsolete.",
        "This page lists tools that were superseded.",
        "This policy replaces the one of 2019, which is no longer valid.",
        "Der alte Drucker wurde ersetzt durch einen neuen.",
        "旧システムは廃止されました。",
    ],
)
def test_f1_a_page_in_force_may_speak_of_what_was_replaced(head: str) -> None:
    page = Source(id=1, title="Leave", text=f"{head} Employees get 25 days of leave.")
    assert not replaced(page.text)
    assert not is_refused("Employees get 25 days of leave [1].", page)


def test_f1_a_page_that_speaks_of_replacing_further_down_is_not_replaced() -> None:
    lead, said = "Employees get 25 days of leave. ", "This policy is obsolete."
    assert is_refused(f"{lead.strip(' .')} [1].", Source(id=1, title="Leave", text=said + " " + lead))
    assert not is_refused(f"{lead.strip(' .')} [1].", Source(id=1, title="Leave", text=lead * 12 + said))
