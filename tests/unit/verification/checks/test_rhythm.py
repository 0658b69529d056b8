"""How often something happens: equal rhythms in other words, and others that are a suspicion."""

from __future__ import annotations

import pytest

from verification.check import check
from verification.checks.rhythm import _rhythms
from verification.types import Draft, Source

PAGE = "Backups run every 6 hours. The restore test is done every quarter."
SEITE = "Der Bericht erscheint monatlich und wird an alle Teams verschickt."


NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "eight": 8, "twelve": 12}


def suspected(text: str) -> bool:
    draft = Draft(
        text=text,
        question="How often?",
        sources=(Source(id=1, title="Backups", text=SEITE if "Bericht" in text else PAGE),),
    )
    return any("another rhythm" in found.detail for found in check(draft).violations)


@pytest.mark.parametrize(
    "text",
    [
        "Backups run daily [1].",
        "Backups run every 6 days [1].",
        "Backups run twice a day [1].",
        "Backups run every second Tuesday [1].",
        "The restore test is done every month [1].",
        "The restore test is done yearly [1].",
        "Der Bericht erscheint jede Woche [1].",
    ],
)
def test_f6_another_rhythm_is_a_suspicion(text: str) -> None:
    assert suspected(text)


@pytest.mark.parametrize(
    "text",
    [
        "Backups run every six hours [1].",
        "Backups run four times a day [1].",
        "The restore test is done quarterly [1].",
        "The restore test is done four times a year [1].",
        "The restore test is done every three months [1].",
        "Der Bericht erscheint jeden Monat [1].",
        "Backups run whenever they are needed, each umpteen days [1].",
    ],
)
def test_f1_the_same_rhythm_in_other_words_is_none(text: str) -> None:
    assert not suspected(text)


def test_f9_thirty_days_are_a_month_and_no_year() -> None:
    source = Source(id=1, title="Backups", text="Backups run every 30 days.")

    def findings(text: str) -> list[str]:
        return [found.detail for found in check(Draft(text=text, sources=(source,))).violations]

    assert findings("Backups run monthly [1].") == []
    assert any("another rhythm" in detail for detail in findings("Backups run yearly [1]."))


HOUR, DAY, WEEK = 3600.0, 86_400.0, 604_800.0
YEAR = 365.25 * DAY


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        *((f"every {word} hours", number * HOUR) for word, number in NUMBERS.items()),
        *((f"{word} times a day", DAY / number) for word, number in NUMBERS.items()),
        *(
            (f"alle {word} Stunden", number * HOUR)
            for word, number in (("zwei", 2), ("drei", 3), ("vier", 4), ("sechs", 6))
        ),
        *(
            (f"{word} pro Woche", WEEK / n)
            for n, word in enumerate(("einmal", "zweimal", "dreimal", "viermal"), start=1)
        ),
        ("once a week", WEEK),
        ("twice a day", DAY / 2),
        ("every second week", 2 * WEEK),
        ("every other day", 2 * DAY),
        ("every third month", YEAR / 4),
        ("jede zweite Woche", 2 * WEEK),
        ("jeden zweiten Tag", 2 * DAY),
        ("jeder zweiter Tag", 2 * DAY),
        ("hourly", HOUR),
        ("weekly", WEEK),
        ("every Monday", WEEK),
        ("quarterly", YEAR / 4),
        ("annually", YEAR),
        ("stündlich", HOUR),
        ("täglich", DAY),
        ("wöchentlich", WEEK),
        ("vierteljährlich", YEAR / 4),
        ("jährlich", YEAR),
        ("each umpteen days", None),
        ("umpteen times a day", None),
    ],
)
def test_f9_how_often_that_is(said: str, seconds: float | None) -> None:
    assert [round(each) for each, _, _ in _rhythms(f"It runs {said}.")] == ([] if seconds is None else [round(seconds)])
