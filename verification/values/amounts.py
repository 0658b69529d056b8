"""Decide if two numbers give the same amount: in every reading, across units and times, as precisely as written.

A number without a known unit matches any number of its value, unless it counts something else. Converted and rounded
amounts may differ accordingly.
"""

import math
from collections.abc import Iterable

from verification.values.numbers import Quantity
from verification.values.units import CURRENCIES, OTHER_COINS, UNITS, Unit, is_span, seconds

_APPROXIMATE = 0.1  # "about 10,000" for 10,432
# Converting miles to kilometres or pounds to kilograms rounds; days to hours does not.
_MEASURED = frozenset({"length", "length 2", "length 3", "mass", "volume"})
_DEGREES = frozenset({"celsius", "fahrenheit"})
_MIN_UNIT_LETTERS = 3  # many words end in a shorter unit
_DAY = UNITS["day"].factor
_ROUND_SHARE = 0.006  # 66.6 % is two thirds
_ROUND_RATE = 0.02  # 1,200 a year is 23 a week
_MONTH_DAYS = (28, 30, 31)


def matches(claimed: Quantity, other: Quantity) -> bool:
    """Return True if the two give the same amount. A number without a unit matches any, unless it counts things."""
    if claimed.period and other.period:
        return _is_same_rate(claimed, claimed.period, other, other.period)
    if claimed.unit is None or other.unit is None:
        told_apart = (
            _counts_other_things(claimed, other)
            or _is_other_money(claimed, other)
            or _is_count_not_share(claimed, other)
        )
        return not told_apart and _is_any_close(claimed, claimed.readings, other.readings)
    if claimed.unit.dimension == other.unit.dimension:
        return _is_same_measure(claimed, claimed.unit, other, other.unit)
    if {claimed.unit.dimension, other.unit.dimension} == {"time", "months"}:
        return _is_same_duration(claimed, other)
    return {claimed.unit.dimension, other.unit.dimension} == _DEGREES and _is_same_temperature(claimed, other)


def _is_same_measure(claimed: Quantity, unit: Unit, other: Quantity, its_unit: Unit) -> bool:
    """Compare amounts of one dimension. A converted amount is rounded, and so is the 33 % of a third."""
    if unit.factor != its_unit.factor and unit.dimension in _MEASURED:
        claimed = claimed._replace(bound="~")
    mine, theirs = claimed.amounts(), other.amounts()
    if other.worded and unit.dimension == "ratio" and is_share(mine[0], theirs[0]):
        return True
    return _is_any_close(claimed, mine, theirs)


def _is_same_temperature(claimed: Quantity, other: Quantity) -> bool:
    """Compare 68 °F with 20 °C, in either direction, rounded to a degree."""
    cold, warm = (claimed, other) if claimed.unit and claimed.unit.dimension == "celsius" else (other, claimed)
    return any(abs((f - 32) * 5 / 9 - c) <= 1 for c in cold.readings for f in warm.readings)


def _counts_other_things(claimed: Quantity, other: Quantity) -> bool:
    """Return True for "3 people" against "3 months". "30 Kalendertage" are days all the same."""
    if claimed.unit is None or not other.noun or not is_span(claimed.unit):
        return False
    return not any(
        unit == claimed.unit
        and len(word) >= _MIN_UNIT_LETTERS
        and (other.noun.endswith(word) or other.noun[:4] == word[:4])
        for word, unit in UNITS.items()
    )


def _is_count_not_share(claimed: Quantity, other: Quantity) -> bool:
    """Return True for "2 items" against 2 %. "2 points" may be percentage points."""
    if other.unit is None or other.unit.dimension != "ratio" or claimed.unit is not None:
        return False
    noun = claimed.noun
    return len(noun) > _MIN_UNIT_LETTERS and noun.endswith("s") and not noun.startswith(("per", "point"))


def _is_other_money(claimed: Quantity, other: Quantity) -> bool:
    """Return True for "140 pounds" against 140 euros."""
    if other.unit is None or claimed.noun not in OTHER_COINS:
        return False
    return other.unit.dimension in CURRENCIES - {"GBP"}


def _is_same_rate(claimed: Quantity, period: Unit, other: Quantity, its_period: Unit) -> bool:
    """Compare rates: 1,200 a year is 100 a month."""
    claimed_seconds, other_seconds = seconds(period), seconds(its_period)
    claimed_bare, other_bare = claimed._replace(period=None), other._replace(period=None)
    if claimed_seconds == other_seconds:
        return matches(claimed_bare, other_bare)
    if (claimed.unit and claimed.unit.dimension) != (other.unit and other.unit.dimension):
        return False
    # Rates across periods are rounded, such as weeks in a month.
    return any(
        math.isclose(a / claimed_seconds, b / other_seconds, rel_tol=_ROUND_RATE)
        for a in claimed.amounts()
        for b in other.amounts()
    )


def _is_same_duration(claimed: Quantity, other: Quantity) -> bool:
    """Compare days with months and years. A month has 28, 30 or 31 days, a year 52 weeks to 366 days."""
    time, months = (claimed, other) if claimed.unit and claimed.unit.dimension == "time" else (other, claimed)
    return any(
        days in {length * b for length in _MONTH_DAYS} or 7 * 52 * b <= 12 * days <= 366 * b
        for days in (amount / _DAY for amount in time.amounts())
        for b in months.amounts()
    )


def _is_any_close(claimed: Quantity, mine: Iterable[float], theirs: Iterable[float]) -> bool:
    others = tuple(theirs)
    return any(_is_close(claimed, a, b) for a in mine for b in others)


def _is_close(claimed: Quantity, mine: float, theirs: float) -> bool:
    if math.isclose(mine, theirs):
        return True
    if claimed.bound == "~":
        return math.isclose(mine, theirs, rel_tol=_APPROXIMATE)
    if claimed.bound == ">":
        return mine < theirs <= mine * 1.25
    if claimed.bound == "<":
        return mine * 0.8 <= theirs < mine
    return claimed.scaled and _round_like(theirs, mine) == mine


def _round_like(value: float, like: float) -> float:
    """Round ``value`` to the number of significant digits of ``like`` (two at least)."""
    digits = max(2, len(f"{like:.6e}".partition("e")[0].rstrip("0").replace(".", "")))
    return float(f"{value:.{digits - 1}e}")


def is_same_kind(quantity: Quantity, other: Quantity) -> bool:
    """Return True if both measure the same: equal dimension, or no known unit on either side and no other noun."""
    if quantity.unit or other.unit:
        dimension = quantity.unit.dimension if quantity.unit else ""
        other_dimension = other.unit.dimension if other.unit else ""
        return dimension == other_dimension or {dimension, other_dimension} == {"time", "months"}
    return not quantity.noun or not other.noun or quantity.noun[:4] == other.noun[:4]


def is_share(said: float, value: float) -> bool:
    """Return True for 33 % against a third. 0 % and 100 % must be exact."""
    if math.isclose(said, value) or said in {0, 100}:
        return math.isclose(said, value)
    return round(value, _count_decimals(said)) == said or math.isclose(said, value, rel_tol=_ROUND_SHARE)


def is_result(said: Quantity, value: float, unit: Unit | None = None) -> bool:
    """Return True if the number equals ``value`` as precisely as it is written. A value may have no unit."""
    if said.unit and unit:
        if said.unit.dimension != unit.dimension:
            return False
        value *= unit.factor / said.unit.factor
    if said.unit and said.unit.dimension == "ratio" and said.bound != "~":
        return any(is_share(reading * said.unit.factor, value) for reading in said.readings)
    return any(
        math.isclose(reading, value, rel_tol=_APPROXIMATE if said.bound == "~" else 1e-9)
        or (math.isclose(reading, value, rel_tol=_ROUND_SHARE) and reading == round(value, _count_decimals(reading)))
        for reading in said.readings
    )


def _count_decimals(number: float) -> int:
    return len(f"{number:.10g}".partition(".")[2])
