"""Numbers that follow from those of the sources: counts, sums, shares, spans; and numbers that do not."""

from __future__ import annotations

import pytest

from verification.check import check
from verification.types import Draft, Source, Violation


def errors(source: str, text: str) -> list[Violation]:
    pages = (Source(id=1, title="", text=source),)
    return [each for each in check(Draft(text=f"{text} [1].", sources=pages)).errors if each.rule == "claim_supported"]


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        # counts
        (
            "Steps:\n" + "\n".join(f"- step {name}" for name in "abcdefghijkl"),
            "There are 12 steps",
            "There are 11 steps",
        ),
        ("Steps:\n- unplug it\n- plug it in", "There are 2 steps", "There is 1 step"),
        ("and bring a pen, a pad, a badge.", "Bring 3 things", "Bring 4 things"),
        # what is nowhere called a sum or a difference
        ("A search took 130 ms and takes 85 ms now.", "A search is 45 ms faster", "A search is 55 ms faster"),
        (
            "August cost 41,200 dollars, July 38,900.",
            "Together they cost 80,100 dollars",
            "Together they cost 81,100 dollars",
        ),
        (
            "The default is 20 seconds (was 60).",
            "The default was cut by 40 seconds",
            "The default was cut by 30 seconds",
        ),
        ("Der Bau dauert 14 Minuten statt 9.", "Der Bau dauert 5 Minuten länger", "Der Bau dauert 6 Minuten länger"),
        (
            "| Trip | Hotel |\n|---|---|\n| Europe | 160 euros |\n| Overseas | 210 euros |\n\nThe trip is booked.",
            "A trip overseas allows 50 euros more for the hotel than one in Europe",
            "A trip overseas allows 60 euros more for the hotel than one in Europe",
        ),
        # products and ratios
        (
            "A night in a hotel is paid up to 160 euros.",
            "Three nights in a hotel are paid up to 480 euros",
            "Three nights in a hotel are paid up to 490 euros",
        ),
        (
            "Leave is 16 weeks for each parent.",
            "Both parents have 32 weeks of leave",
            "Both parents have 30 weeks of leave",
        ),
        ("The job runs every 6 hours.", "The job runs 4 times a day", "The job runs 5 times a day"),
        ("| Price per month | 2,600 euros |", "The price is 31,200 euros a year", "The price is 26,000 euros a year"),
        (
            "The budget of a year is 480,000 dollars.",
            "The budget is 40,000 dollars a month",
            "The budget is 48,000 dollars a month",
        ),
        (
            "Fluxo moves 80,000 messages, Kafka 120,000.",
            "Kafka moves 1.5 times as many messages",
            "Kafka moves 1.6 times as many messages",
        ),
        # sums and differences
        ("The fee was 80 euros and is now 100 euros.", "The fee rose by 20 euros", "The fee rose by 30 euros"),
        (
            "The fee was 20 euros and is now 130 euros.",
            "The fee rose by about 100 euros",
            "The fee rose by about 90 euros",
        ),
        (
            "The fee was 20 euros and is now 132 euros.",
            "The fee rose by about 110 euros",
            "The fee rose by about 100 euros",
        ),
        (
            "Review takes 2.5 days and rollout takes 2.9 days.",
            "Review and rollout take 5.4 days in total",
            "Review and rollout take 5 days in total",
        ),
        (
            "A key costs 5 euros, a lock 7 euros and a door 90 euros.",
            "A key and a lock cost 12 euros together",
            "A key and a lock cost 13 euros together",
        ),
        (
            "The review takes 2 days. "
            + "".join(f"The review takes {what}. " for what in ("time", "care", "skill", "money"))
            + "Zebras sleep for 9 days.",
            "The review takes 2 days in total",
            "The review takes 11 days in total",
        ),
        (
            "Review takes 2 days. Rollout takes 3 days.",
            "Review and rollout take 5 days in total",
            "Review and rollout take 6 days in total",
        ),
        (
            "A jug holds 2.5 l and a can 2.9 l.",
            "A jug and a can hold 5.4 l together",
            "A jug and a can hold 5 l together",
        ),
        ("Berlin has 300 desks, Paris has 1 desk.", "They have 301 desks together", "They have 310 desks together"),
        (
            "Berlin has 300 desks, Paris has 900 desks.",
            "The desks together come to 1,200",
            "The desks together come to 1,300",
        ),
        ("The fee was 80 euros and is now 100 euros.", "The average fee is 90 euros", "The average fee is 95 euros"),
        # shares
        ("The fee was 80 euros and is now 100 euros.", "The fee rose by 25 %", "The fee rose by 30 %"),
        ("20 % of the 500 licences are unused.", "400 licences are used", "410 licences are used"),
        ("20 % of the doors are red and 50 % are new.", "80 % of the doors are not red", "15 % of the doors are both"),
        ("Of 300 tests, 1 failed.", "0.33 % of the tests failed", "0 % of the tests failed"),
        ("Of 300 tests, 200 passed.", "66.6 % of the tests passed", "66 % of the tests passed"),
        ("Of 300 applicants, 100 were accepted.", "33 % of the applicants were accepted", "30 % of them were accepted"),
        ("Of 300 applicants, 100 were accepted.", "33.3 % of the applicants were accepted", "33.9 % were accepted"),
        ("0 of 40 tickets are new, 20 are open.", "50 % of the tickets are open", "60 % of the tickets are open"),
        ("Of 8 doors, 1 is locked.", "12.5 % of the doors are locked", "11 % of the doors are locked"),
        ("Of 300 tests, 299 passed.", "99.7 % of the tests passed", "100 % of the tests passed"),
        ("三分之一的许可证未使用。", "33%的许可证未使用", "30%的许可证未使用"),
        ("A third of the licences are unused.", "33 % of the licences are unused", "3 % of the licences are unused"),
        ("Ein Drittel der Lizenzen ist frei.", "33 % der Lizenzen sind frei", "30 % der Lizenzen sind frei"),
        ("Of 500 licences 20 % are unused.", "80 % of the licences are used", "70 % of the licences are used"),
        (
            "A night costs 120 euros in Berlin and 140 euros in Rome.",
            "A night in Rome costs 140 euros, 20 more than in Berlin",
            "A night in Rome costs 140 euros, 30 more than in Berlin",
        ),
        ("Backups run every 6 hours.", "There are four backups a day", "There are 7 backups a day"),
        # spans
        (
            "It opened in 1990, was rebuilt in 2000 and closed in 2015.",
            "It was open for 25 years",
            "It was open for 20 years",
        ),
        (
            "It opened on 5 March 2024 and closed on 6 March 2024.",
            "It was open for 1 day",
            "It was open for 3 days",
        ),
        (
            "It opened on 5 March 2024 and closed on 15 March 2024.",
            "It was open for 11 days",
            "It was open for 9 days",
        ),
        (
            "5 March 2024 is the first day and 9 March 2024 is the last.",
            "The first and the last day are 4 days apart",
            "The first and the last day are 6 days apart",
        ),
        (
            "The hall opened on 5 March 2024 and closed on 6 March 2024. The gate closed on 9 March 2024.",
            "The hall was open for 2 days",
            "The hall was open for 4 days",
        ),
    ],
)
def test_what_follows_passes_and_what_nearly_does_fails(source: str, right: str, wrong: str) -> None:
    assert errors(source, right) == []
    assert errors(source, wrong)


def test_sum_of_unlike_things_is_left_to_a_judge() -> None:
    source = Source(id=1, title="", text="The shelter has 5 cats and 3 dogs.")
    verdict = check(Draft(text="The shelter has 8 animals in total [1].", sources=(source,)))
    assert [(each.severity, each.words) for each in verdict.violations] == [("warning", "8")]


def test_every_sentence_may_use_the_result_of_a_right_calculation() -> None:
    source = "Own car: 0.38 euros a km for the first 300 km, then 0.20 euros."
    steps = "- 300 km × 0.38 euros = 114 euros [1]\n- 114 euros + 24 euros = {} euros"
    assert not [
        each for each in errors(source, f"You get 138 euros [1].\n\n{steps.format(138)}") if "138" in each.words
    ]
    assert [each for each in errors(source, f"You get 148 euros [1].\n\n{steps.format(138)}") if "148" in each.words]
    assert [each for each in errors(source, f"You get 148 euros [1].\n\n{steps.format(148)}") if "148" in each.words]


def test_span_of_time_lies_between_two_times_of_the_source() -> None:
    for source, right, wrong in [
        (
            "Uploads failed from 09:12 to 11:47.",
            "Uploads failed for 2 hours and 35 minutes",
            "Uploads failed for 2 hours and 25 minutes",
        ),
        ("Uploads failed from 09:12 to 11:47.", "Uploads failed for 155 minutes", "Uploads failed for 145 minutes"),
        (
            "Uploads failed from 09:12 to 11:47.",
            "Uploads failed for about 2.5 hours",
            "Uploads failed for about 3.5 hours",
        ),
        (
            "09:12 first failed upload. 09:40 a customer reports it. 09:55 support pages.",
            "Support paged 43 minutes after the first failed upload",
            "Support paged 53 minutes after the first failed upload",
        ),
        (
            "4.1 was released on 2026-07-01. 4.2 was released on 2026-08-19.",
            "4.2 was released seven weeks after 4.1",
            "4.2 was released eight weeks after 4.1",
        ),
        (
            "4.1 was released on 2026-07-01. 4.2 was released on 2026-02-30.",
            "4.1 was released on 1 July 2026",
            "4.2 was released 30 days after 4.1",
        ),
        (
            "Ann writes it by 12 March. Ben tests it by 16 March.",
            "Ben tests it four days after Ann writes it",
            "Ben tests it three days after Ann writes it",
        ),
        ("The club was founded in 1990 and closed in 2004.", "The club lasted 14 years", "The club lasted 15 years"),
    ]:
        assert errors(source, right) == []
        assert errors(source, wrong)


def test_times_far_from_the_claim_make_no_span() -> None:
    mills = " ".join(f"The mill grinds {grain}." for grain in ("rye", "oats", "spelt", "wheat", "barley"))
    source = f"The desk opens at 08:00. {mills} Lunch is at 12:00."
    assert errors(source, "The mill grinds for 4 hours")


@pytest.mark.parametrize(
    ("text", "fails"), [("322 € : 3,5 h × 92 € = 322 € [1].", False), ("On facture 4,5 h à 92 € [1].", True)]
)
def test_how_long_the_question_says_something_took_may_be_written_in_hours(text: str, fails: bool) -> None:  # noqa: FBT001 - a parameter
    price = Source(id=1, title="Tarifs", text="L'heure de main-d'œuvre coûte 92 €.")
    draft = Draft(text=text, question="3h30 de réparation, on facture quoi ?", sources=(price,))
    assert bool(check(draft).errors) is fails
