"""Decide whether two numbers give the same amount: in all readings, across units and periods, as precisely as written.

A number without a known unit matches any number of its value, unless it counts something else. Converted and rounded
amounts may differ accordingly.
"""

import math
from itertools import product

from verification.values.numbers import Quantity
from verification.values.quantity_words import CURRENCIES, OTHER_COINS, UNITS, Unit, is_span, seconds

_APPROXIMATE = 0.1  # "about 10,000" for 10,432
# Converting miles to kilometres or pounds to kilograms rounds; days to hours does not.
_MEASURED = frozenset({"length", "length 2", "length 3", "mass", "volume"})
_DEGREES = frozenset({"celsius", "fahrenheit"})
_MIN_UNIT_LETTERS = 3  # many words end in a shorter unit
_DAY, _PERCENT = UNITS["day"].factor, UNITS["%"]
_ROUND_SHARE = 0.006  # 66.6 % is two thirds
_ROUND_RATE = 0.02  # 1,200 a year is 23 a week
_MONTH_DAYS = (28, 30, 31)


def matches(claimed: Quantity, other: Quantity) -> bool:
    """Return True if both give the same amount. A number without a unit matches any unit, unless it counts things."""
    if claimed.period and other.period:
        return _is_same_rate(claimed, claimed.period, other, other.period)
    if claimed.unit is None or other.unit is None:
        parts = [part for part in other.readings if 0 < part < 1] if claimed.unit == _PERCENT else []
        if parts and any(is_share(claimed.readings[0], 100 * part) for part in parts):
            return True  # 33 % for 1/3, 50 % for 0.5
        is_close = any(_is_close(claimed, *pair) for pair in product(claimed.readings, other.readings))
        return is_close and not _counts_other_things(claimed, other)
    dimensions = {claimed.unit.dimension, other.unit.dimension}
    if dimensions == {"time", "months"}:
        return _is_same_duration(claimed, other)
    if dimensions == _DEGREES:
        celsius, fahrenheit = (claimed, other) if claimed.unit.dimension == "celsius" else (other, claimed)
        either_sign = {sign * reading for reading in celsius.readings for sign in (1, -1)}  # −5 is read as 5
        return any(abs((f - 32) * 5 / 9 - c) <= 1 for c in either_sign for f in fahrenheit.readings)
    # A converted amount is rounded, and so is the 33 % of a third.
    if claimed.unit.factor != other.unit.factor and claimed.unit.dimension in _MEASURED:
        claimed = claimed._replace(bound="~")
    is_third = other.worded and dimensions == {"ratio"} and is_share(claimed.amounts()[0], other.amounts()[0])
    amounts = product(claimed.amounts(), other.amounts())
    return len(dimensions) == 1 and (is_third or any(_is_close(claimed, *pair) for pair in amounts))


def _counts_other_things(claimed: Quantity, other: Quantity) -> bool:
    """Return True for "3 people" against "3 months", "140 pounds" against 140 euros, and "2 items" against 2 %."""
    if claimed.unit and other.noun and is_span(claimed.unit):
        alike = (word for word, unit in UNITS.items() if unit == claimed.unit and len(word) >= _MIN_UNIT_LETTERS)
        # "30 Kalendertage" are days all the same.
        return not any(other.noun.endswith(word) or other.noun[:4] == word[:4] for word in alike)
    noun, unit = claimed.noun, other.unit
    if unit and unit.dimension == "ratio" and claimed.unit is None:  # "2 points" may be percentage points
        return len(noun) > _MIN_UNIT_LETTERS and noun.endswith("s") and not noun.startswith(("per", "point"))
    return unit is not None and noun in OTHER_COINS and unit.dimension in CURRENCIES - {"GBP"}


def _is_same_rate(claimed: Quantity, period: Unit, other: Quantity, its_period: Unit) -> bool:
    """Compare rates: 1,200 a year is 100 a month. Rates across periods are rounded, such as weeks in a month."""
    mine, theirs = seconds(period), seconds(its_period)
    if mine == theirs:
        return matches(claimed._replace(period=None), other._replace(period=None))
    same_dimension = (claimed.unit and claimed.unit.dimension) == (other.unit and other.unit.dimension)
    pairs = product(claimed.amounts(), other.amounts())
    return same_dimension and any(math.isclose(a / mine, b / theirs, rel_tol=_ROUND_RATE) for a, b in pairs)


def _is_same_duration(claimed: Quantity, other: Quantity) -> bool:
    """Compare days with months and years. A month has 28, 30 or 31 days, a year 52 weeks to 366 days."""
    time, months = (claimed, other) if claimed.unit and claimed.unit.dimension == "time" else (other, claimed)
    return any(
        days in {length * b for length in _MONTH_DAYS} or 7 * 52 * b <= 12 * days <= 366 * b
        for days in (amount / _DAY for amount in time.amounts())
        for b in months.amounts()
    )


def _is_close(claimed: Quantity, mine: float, theirs: float) -> bool:
    if math.isclose(mine, theirs):
        return True
    if claimed.bound == "~":
        return math.isclose(mine, theirs, rel_tol=_APPROXIMATE)
    if claimed.bound in {"<", ">"}:
        return mine < theirs <= mine * 1.25 if claimed.bound == ">" else mine * 0.8 <= theirs < mine
    # A scaled number such as 1.2k is rounded to its own digits, two at least.
    digits = max(2, len(f"{mine:.6e}".partition("e")[0].rstrip("0").replace(".", "")))
    return claimed.scaled and float(f"{theirs:.{digits - 1}e}") == mine


def is_same_kind(quantity: Quantity, other: Quantity) -> bool:
    """Return True if both measure the same thing: equal dimension, or no known unit and no different noun."""
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
