"""Powers and rates: what follows or precedes a number and changes what it measures."""

import pytest

from verification.check import check
from verification.evidence.passages import analyse
from verification.types import Draft, Source
from verification.values.quantity_words import UNITS


def test_a_power_is_read_as_one_number() -> None:
    for text, readings, dimension in [
        ("10² rows", (100.0,), None),
        ("2¹⁰ bytes", (1024.0,), "bytes"),
        ("10^6 rows", (1e6,), None),
        ("10⁻³ rows", (0.001,), None),
        ("30² days", (30.0,), "time"),  # the mark of a note
        ("2⁴⁰ bytes", (2.0**40,), "bytes"),
        ("10⁴¹ rows", (10.0,), None),
        ("100 kg2.", (100.0,), "mass"),
        ("10⁹⁹ rows", (10.0,), None),
        ("100 m²", (100.0,), "length 2"),
        ("100 m2.", (100.0,), "length 2"),
        ("100 m 2", (100.0,), "length"),
        ("5 m³", (5.0,), "length 3"),
        ("5 m3", (5.0,), "length 3"),
        ("100 mètres carrés", (100.0,), "length 2"),
        ("100 Quadratmeter", (100.0,), "length 2"),
        ("100 kg²", (100.0,), None),
    ]:
        quantity = analyse(text, "en").quantities[0]
        assert quantity.readings == readings
        assert (quantity.unit.dimension if quantity.unit else None) == dimension


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        ("The table holds 10² rows.", "The table holds 100 rows [1].", "The table holds 10³ rows [1]."),
        ("The hall measures 100 m².", "The hall measures 100 m2 [1].", "The hall measures 100 m³ [1]."),
        ("The park measures 2 km².", "The park measures 2,000,000 m² [1].", "The park measures 2 km³ [1]."),
    ],
)
def test_a_different_power_is_an_error(source: str, right: str, wrong: str) -> None:
    pages = (Source(id=1, title="", text=source),)
    assert check(Draft(text=right, sources=pages)).passed
    assert not check(Draft(text=wrong, sources=pages)).passed


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("600 requests per minute", "minute"),
        ("600 requests/s", "s"),
        ("12 a night", "day"),
        ("12 euros monthly", "month"),
        ("12 euros im Quartal", "quarters"),
        ("12 par an", "ans"),
        ("12 a second.", "second"),
        ("monatlich 12 Euro", "month"),
        ("paid weekly 12 euros", "week"),
        ("12 rows a year ago", None),
        ("12 a second try", None),
        ("12 and a day", None),
        ("einmalig 12 Euro", None),
    ],
)
def test_the_period_of_a_rate_is_read_before_or_after_it(text: str, unit: str | None) -> None:
    assert analyse(text, "en").quantities[0].period == (UNITS[unit] if unit else None)
