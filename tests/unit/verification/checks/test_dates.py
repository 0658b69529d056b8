"""Dates of claims against those of the sources: spans of years, missing years, and the date named instead."""

from __future__ import annotations

from verification.check import check
from verification.types import Draft, Source, Violation


def errors(source: str, text: str, question: str = "") -> list[Violation]:
    pages = (Source(id=1, title="", text=source),)
    verdict = check(Draft(text=f"{text} [1].", sources=pages, question=question))
    return [each for each in verdict.errors if each.rule == "claim_supported"]


def test_the_feedback_names_a_date_of_the_same_kind() -> None:
    for source, text, detail in [
        ("In 2018 the office opened and a year later it moved.", "The office opened at 10:00", "10:00 is not in"),
        ("On 5 March 2024 the office opens at 09:00.", "The office opens at 10:00", "says 09:00, not 10:00"),
        ("The desk opens at 09:00 since 2021.", "The desk is open since 2023", "says 2021, not 2023"),
        ("The audit is on 5 March.", "The audit is on 5 March 2024", "5 March 2024 is not in"),
        ("5 March 2024 is the day of the audit.", "6 March 2024 is the day of the audit", "says 5 March 2024"),
    ]:
        (only,) = errors(source, text)
        assert detail in only.detail
