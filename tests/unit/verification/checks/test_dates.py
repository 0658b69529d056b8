"""Dates of claims against those of the sources: spans of years, missing years, and the date named instead."""

from __future__ import annotations

import pytest

from verification.check import check
from verification.types import Draft, Source, Violation


def errors(source: str, text: str, question: str = "") -> list[Violation]:
    pages = (Source(id=1, title="", text=source),)
    verdict = check(Draft(text=f"{text} [1].", sources=pages, question=question))
    return [each for each in verdict.errors if each.rule == "claim_supported"]


def test_date_some_years_from_another_passes() -> None:
    for source, text in [
        ("The audit was in November 2018 and again a year later.", "The audit was in November 2019"),
        ("Die Prüfung war im November 2016 und wieder drei Jahre später.", "Die Prüfung war im November 2019"),
        ("L'audit fut en novembre 2017 et deux ans plus tard.", "L'audit fut en novembre 2019"),
        ("El examen fue en noviembre de 2016 y tres años después.", "El examen fue en noviembre de 2019"),
    ]:
        assert errors(source, text) == []
        assert errors(source, text.replace("2019", "2021"))


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


def test_date_of_the_question_is_known_but_not_its_year() -> None:
    assert errors("The desk is open.", "The desk is open on 5 March", "Is the desk open on 5 March?") == []
    assert errors("The desk is open.", "The desk is open on 5 March 2024", "Is the desk open on 5 March 2022?")


def test_date_needs_all_its_days_and_one_of_its_readings() -> None:
    for source, right, wrong in [
        ("The audit is on 3 April 2021.", "The audit is on 03/04/2021", "The audit is on 03/05/2021"),
        ("The audit is on 4 March 2021.", "The audit is on 03/04/2021", "The audit is on 04/04/2021"),
        ("The audit is on 3 and 5 March 2021.", "The audit is on 3-5 March 2021", "The audit is on 3-6 March 2021"),
        ("The club won in 1904.", "The club won in the season 1904-1905", "The club won from 1904-1906"),
        ("试用期从二〇二四年开始。", "试用期从2024年开始", "试用期从2023年开始"),
        ("Releases are on Tuesdays.", "There are no releases on Fridays", "Releases are on Fridays"),
        ("El almacén abre los sábados.", "The store opens on Saturdays", "El almacén abre los domingos"),
        ("The audit is yearly.", "The audit is in November", "The audit is in November 2024"),
    ]:
        assert errors(source, right) == []
        assert errors(source, wrong)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        # the source has it, and its subject is a matter of meaning
        ("The certificate expired at 09:10. The first upload failed at 09:12.", "The certificate expired at 09:12"),
        ("The office in Bonn opens at 08:00. The office opens at 09:00 in Rome.", "The office in Bonn opens at 09:00"),
        ("Karl tests by 17 September. Mei writes the note by 18 September.", "Mei writes the note by 17 September"),
        ("The desk opens at 08:00. The mill opens at 09:00.", "Opens at 09:00"),
        ("The club was founded in 2004. The hall burnt in 2011.", "The club was founded in 2004 and burnt in 2011"),
        ("The audit is in March. The party is in May.", "The audit party is in May"),
    ],
)
def test_time_that_may_be_meant_so_passes(source: str, text: str) -> None:
    assert errors(source, text) == []


@pytest.mark.parametrize(
    ("source", "question", "context", "right", "wrong"),
    [
        # a range, the end of it on the next day too
        ("Call-outs pay 45 euros, 05:30 to 07:00.", "", "", "Call-outs pay 45 euros at 06:00", "at 08:00"),
        ("Call-outs pay 45 euros, 23:00 to 07:00.", "", "", "Call-outs pay 45 euros at 02:00", "at 08:00"),
        ("Nothing ships 2026-11-25 to 2026-11-30.", "", "", "Nothing ships on 2026-11-26", "on 2026-12-26"),
        # another way to write it
        ("Ximena hace el correo el 04/12.", "", "", "Ximena hace el correo el 4 de diciembre", "el 6 de diciembre"),
        ("It is taken 5 hours before.", "It is at 12", "", "It is taken before 12:00", "before 14:00"),
        # a span before or after a time or date that is told, and the day of the week of one
        ("It is taken 5 hours before.", "The test is at 12:00.", "", "It is taken at 07:00", "at 08:00"),
        ("Give notice of 14 days.", "", "Monday 2026-11-23", "Notice given ends on 7 December", "on 7 December 2028"),
        (
            "Checkout is frozen.",
            "May it ship this Thursday?",
            "Monday 2026-11-23",
            "It ships on Thursday 26 November",
            "on 26 November 2028",
        ),
    ],
)
def test_date_or_time_that_follows_from_a_known_one_is_a_doubt(
    source: str, question: str, context: str, right: str, wrong: str
) -> None:
    pages = (Source(id=1, title="", text=source),)

    def failed(text: str) -> bool:
        return bool(check(Draft(text=f"{text} [1].", question=question, context=context, sources=pages)).errors)

    assert not failed(right)
    assert failed(f"{right.rpartition(' ')[0].rpartition(' ')[0]} {wrong}")
