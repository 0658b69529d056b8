"""What only a replaced page says, told as true today, fails; told as past, or borne out elsewhere, it passes."""

from __future__ import annotations

import pytest

from verification.answer import Draft, Source
from verification.rules import check

OLD = Source(id=1, title="Leave 2023 (superseded by Leave 2026)", text="Full-time employees get 25 days of leave.")
NEW = Source(id=2, title="Leave 2026", text="Full-time employees get 28 days of leave. Interns get 10 days of leave.")
ALT = Source(id=1, title="Urlaub", text="Diese Regelung ist veraltet. Vollzeitkräfte bekommen 25 Tage Urlaub.")


def is_refused(text: str, *sources: Source, question: str = "") -> bool:
    found = check(Draft(text=text, question=question, sources=sources)).errors
    return any("says of itself" in each.detail for each in found)


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("Full-time employees get 25 days of leave [1].", (OLD, NEW)),
        ("Vollzeitkräfte bekommen 25 Tage Urlaub [1].", (ALT,)),
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


def test_f1_a_page_that_speaks_of_replacing_further_down_is_not_replaced() -> None:
    far = Source(id=1, title="Leave", text="Employees get 25 days of leave. " * 12 + "The form was replaced by a page.")
    assert not is_refused("Employees get 25 days of leave [1].", far)
