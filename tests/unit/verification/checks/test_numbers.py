"""Numbers and dates against their sources: unit, period, currency and place, and what the feedback names."""

import pytest

from verification.check import check
from verification.types import Draft, Source, Verdict, Violation


def verdict(source: str, text: str) -> Verdict:
    return check(Draft(text=f"{text} [1].", sources=(Source(id=1, title="Page", text=source),)))


def violations_of(source: str, text: str) -> list[Violation]:
    return [each for each in verdict(source, text).violations if each.rule == "claim_supported"]


def test_the_feedback_names_the_time_if_only_that_differs() -> None:
    (only,) = violations_of("A key may make 600 requests a minute.", "A key may make 600 requests a second")
    assert only.detail == "source [1] says 600 requests a minute, not 600 requests a second"
    assert "Replace 600 requests a second by 600 requests a minute" in only.remedy


def test_a_number_of_the_source_is_left_to_the_judge() -> None:
    source = "A replica that lags by more than 30 seconds must not be promoted. The switch takes about 90 seconds."
    right = "A replica that lags by more than 30 seconds must not be promoted"
    assert violations_of(source, right) == violations_of(source, right.replace("30", "90")) == []
    (error,) = violations_of(source, right.replace("30", "12"))
    assert (error.severity, error.words) == ("error", "12 seconds")


def test_the_counted_thing_distinguishes_equal_numbers() -> None:
    for source, text, severities in [
        # It may count the same things, which only a judge can compare.
        ("The queue holds 30 items.", "The queue holds items for 30 days", ["warning"]),
        ("Die Frist beträgt 1 Kalendertag.", "Die Frist beträgt 1 Tag", []),
        ("The rate of failed jobs is 2 %.", "The rate of failed jobs is 2 jobs", ["error"]),
        ("A rate of 2 % was seen.", "A rate of 2 was seen", []),
        ("Die Quote stieg um 2 Prozentpunkte.", "Die Quote stieg um 3 Prozentpunkte", ["error"]),
    ]:
        assert [each.severity for each in violations_of(source, text)] == severities


NORTH = "The audit takes 30 days. The review lasts 40 days."


def test_feedback_names_the_source_number() -> None:
    for source, text, says in [
        (NORTH, "The audit takes 45 days", "says 30 days, not 45 days"),
        (
            "The yearly audit of 12 depots takes very long at night. The review lasts 40 days.",
            "The yearly audit of depots takes very long at night, 40 days",
            "",
        ),
        ("The cup is held July 19-22 at the club.", "The cup is held July 59-22 at the club", "59 is not in"),
        ("30 days is the notice.", "45 days is the notice", "says 30 days, not 45 days"),
        ("A room costs 140 euros a night.", "A room costs 150 euros a night", "says 140 euros, not 150 euros"),
        ("Plan 4-8 hours per week.", "Plan 4 to 9 hours per week", "says 8 hours, not 9 hours"),
        ("Plan at most 4-8 hours.", "Plan at most 5 to 8 hours", "says 4-8 hours, not 5 to 8 hours"),
        ("The room has 20 desks.", "The room has 30 people", "30 is not in"),
        ("押金为五十欧元。三十天内回复。", "押金为五十欧元，保留二十年", "二十年 is not in"),
        ("押金为五十欧元。三十天内回复。保险20年。", "押金为五十欧元，20年", ""),
        (
            "The pass is sold at the desk. The pass is sold at the gate. The pass costs 20 euros.",
            "The pass is sold for 30 euros",
            "says 20 euros, not 30 euros",
        ),
        (
            "The pass is sold at the desk. The pass is sold at the gate. The pass is sold on board. It is 20 euros.",
            "The pass is sold for 30 euros",
            "30 euros is not in",
        ),
    ]:
        details = [
            each.detail for each in violations_of(source, text) if "says" in each.detail or "is not in" in each.detail
        ]
        assert [says in each and each.endswith((says, "source [1]")) for each in details] == ([True] if says else [])


def test_an_unrelated_number_is_not_named_as_the_right_one() -> None:
    codes = "| Code | Status | Meaning |\n|---|---|---|\n| FH-1001 | 400 | The request is not valid JSON |"
    limits = "Each API key may make 600 requests a minute."
    for text, said in ((codes, "900 is not in source [1]"), (limits, "source [1] says 600, not 900")):
        source = Source(id=1, title="API", text=text)
        (violations_of,) = check(
            Draft(text="Each API key may make 900 requests a minute [1].", sources=(source,))
        ).errors
        assert violations_of.detail == said


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "There are 3 rooms and 12 desks. Two rooms have 8 desks.",
            "There are 12 rooms",
        ),  # small numbers come by chance
        ("There are 30 rooms and 40 desks. In all 40 were painted.", "40 rooms were painted"),
        ("There are 40 desks for visitors.", "There are 40 tables for visitors"),
        ("The Ulm office has 60 people. Of all, 250 employees are remote.", "The Ulm office has 60 employees"),
    ],
)
def test_a_number_that_may_mean_the_same_passes(source: str, text: str) -> None:
    assert [each for each in violations_of(source, text) if each.severity == "error" and "says" in each.detail] == []


def test_working_days_are_not_weeks() -> None:
    source = "Der Antrag ist mindestens fünf Arbeitstage vorher bei der Führungskraft zu stellen."
    assert violations_of(source, "Der Antrag ist mindestens fünf Tage vorher zu stellen") == []
    assert violations_of(source, "Der Antrag ist mindestens fünf Wochen vorher zu stellen") != []


def test_a_wrong_calculation_gives_one_finding() -> None:
    day, stay = (Source(id=n, title="", text=text) for n, text in ((1, "A day costs €75."), (2, "14 days at most.")))
    asked, text = "What do three days cost?", "Three days cost 3 × €75 = €235 [1][2]."
    verdict = check(Draft(text=text, question=asked, sources=(day, stay)))
    assert [(each.severity, each.detail) for each in verdict.violations] == [("error", "3 × €75 is 225")]


def test_the_feedback_names_a_date_of_the_same_kind() -> None:
    for source, text, detail in [
        ("In 2018 the office opened and a year later it moved.", "The office opened at 10:00", "10:00 is not in"),
        ("On 5 March 2024 the office opens at 09:00.", "The office opens at 10:00", "says 09:00, not 10:00"),
        ("The desk opens at 09:00 since 2021.", "The desk is open since 2023", "says 2021, not 2023"),
        ("The audit is on 5 March.", "The audit is on 5 March 2024", "5 March 2024 is not in"),
        ("5 March 2024 is the day of the audit.", "6 March 2024 is the day of the audit", "says 5 March 2024"),
    ]:
        (only,) = violations_of(source, text)
        assert detail in only.detail
