"""The span of time behind an amount."""

from __future__ import annotations

import pytest

from verification.rates import period, rate_end
from verification.units import UNITS


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        (" requests per minute", "minute"),
        (" requests/s", "s"),
        (" a night", "day"),
        (" euros monthly", "month"),
        (" euros im Quartal", "quarters"),
        (" par an", "ans"),
        (" a second.", "second"),
    ],
)
def test_f9_an_amount_may_be_one_for_each_span_of_time(text: str, unit: str) -> None:
    assert period(text, 0) == UNITS[unit]
    assert rate_end(text, 0) == len(text.rstrip("."))


@pytest.mark.parametrize("text", [" a year ago", " a second try", " and a day", " rows", ""])
def test_f1_other_words_make_no_rate(text: str) -> None:
    assert period(text, 0) is None
    assert rate_end(text, 0) == 0
