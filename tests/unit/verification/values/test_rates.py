"""The span of time behind an amount."""

from __future__ import annotations

from verification.values.units import UNITS, rate_end, read_period, read_period_before


def test_an_amount_may_be_one_for_each_span_of_time() -> None:
    for text, unit in [
        (" requests per minute", "minute"),
        (" requests/s", "s"),
        (" a night", "day"),
        (" euros monthly", "month"),
        (" euros im Quartal", "quarters"),
        (" par an", "ans"),
        (" a second.", "second"),
    ]:
        assert read_period(text, 0) == UNITS[unit]
        assert rate_end(text, 0) == len(text.rstrip("."))


def test_other_words_make_no_rate() -> None:
    for text in [" a year ago", " a second try", " and a day", " rows", ""]:
        assert read_period(text, 0) is None
        assert rate_end(text, 0) == 0


def test_the_span_of_time_may_stand_before_the_amount() -> None:
    assert read_period_before("monatlich ", 10) == UNITS["month"]
    assert read_period_before("paid weekly ", 12) == UNITS["week"]
    assert read_period_before("einmalig ", 9) is read_period_before("", 0) is read_period_before("only ", 5) is None
