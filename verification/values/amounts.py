"""Tells when two numbers say the same amount: in every reading, across units and times, as exactly as they are written.

A number without a known unit agrees with any of its value, unless it counts something else; what is converted or
written as round may differ by as much.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from verification.values.numbers import Quantity
from verification.values.units import CURRENCIES, OTHER_COINS, UNITS, Unit, is_span, seconds

_APPROXIMATE = 0.1  # "about 10,000" for 10,432
# Converting miles to kilometres or pounds to kilograms rounds; days to hours does not.
_MEASURED = frozenset({"length", "length 2", "length 3", "mass", "volume"})
_DEGREES = frozenset({"celsius", "fahrenheit"})
_TELLING_LETTERS = 3  # a shorter unit stands at the end of many a word
_DAY = UNITS["day"].factor
_ROUND_SHARE = 0.006  # 66.6 % are two thirds
_ROUND_RATE = 0.02  # 1,200 a year are 23 a week
_MONTH_DAYS = (28, 30, 31)


def matches(claimed: Quantity, other: Quantity) -> bool:
    """True if the two say the same amount; a number without a known unit agrees with any, unless it counts things."""
    if claimed.period and other.period:
        return _same_rate(claimed, claimed.period, other, other.period)
    if claimed.unit is None or other.unit is None:
        told_apart = _counts_things(claimed, other) or _is_other_money(claimed, other) or _is_no_share(claimed, other)
        return not told_apart and _any_close(claimed, claimed.readings, other.readings)
    if claimed.unit.dimension == other.unit.dimension:
        return _same_measure(claimed, claimed.unit, other, other.unit)
    if {claimed.unit.dimension, other.unit.dimension} == {"time", "months"}:
        return _same_span(claimed, other)
    return {claimed.unit.dimension, other.unit.dimension} == _DEGREES and _same_warmth(claimed, other)


def _same_measure(claimed: Quantity, unit: Unit, other: Quantity, its_unit: Unit) -> bool:
    """Amounts of one dimension: what is converted is round, and so is the 33 % of a third."""
    if unit.factor != its_unit.factor and unit.dimension in _MEASURED:
        claimed = claimed._replace(bound="~")
    mine, theirs = claimed.amounts(), other.amounts()
    if other.worded and unit.dimension == "ratio" and is_share(mine[0], theirs[0]):
        return True
    return _any_close(claimed, mine, theirs)


def _same_warmth(claimed: Quantity, other: Quantity) -> bool:
    """True for 68 °F where the source has 20 °C, and the other way round; rounded to a degree."""
    cold, warm = (claimed, other) if claimed.unit and claimed.unit.dimension == "celsius" else (other, claimed)
    return any(abs((f - 32) * 5 / 9 - c) <= 1 for c in cold.readings for f in warm.readings)


def _counts_things(claimed: Quantity, other: Quantity) -> bool:
    """True for "3 people" where the claim has "3 months"; "30 Kalendertage" are days all the same."""
    if claimed.unit is None or not other.noun or not is_span(claimed.unit):
        return False
    return not any(
        unit == claimed.unit
        and len(word) >= _TELLING_LETTERS
        and (other.noun.endswith(word) or other.noun[:4] == word[:4])
        for word, unit in UNITS.items()
    )


def _is_no_share(claimed: Quantity, other: Quantity) -> bool:
    """True for "2 items" where the source has 2 %; "2 points" may be percentage points."""
    if other.unit is None or other.unit.dimension != "ratio" or claimed.unit is not None:
        return False
    noun = claimed.noun
    return len(noun) > _TELLING_LETTERS and noun.endswith("s") and not noun.startswith(("per", "point"))


def _is_other_money(claimed: Quantity, other: Quantity) -> bool:
    """True for "140 pounds" where the source has 140 euros."""
    if other.unit is None or claimed.noun not in OTHER_COINS:
        return False
    return other.unit.dimension in CURRENCIES - {"GBP"}


def _same_rate(claimed: Quantity, period: Unit, other: Quantity, its_period: Unit) -> bool:
    """True if both say the same amount for the same time: 1,200 a year is 100 a month."""
    mine, theirs = seconds(period), seconds(its_period)
    bare, known = claimed._replace(period=None), other._replace(period=None)
    if mine == theirs:
        return matches(bare, known)
    if (claimed.unit and claimed.unit.dimension) != (other.unit and other.unit.dimension):
        return False
    # Weeks in months and the like are reckoned with round numbers.
    return any(
        math.isclose(a / mine, b / theirs, rel_tol=_ROUND_RATE) for a in claimed.amounts() for b in other.amounts()
    )


def _same_span(claimed: Quantity, other: Quantity) -> bool:
    """Days against months and years: a month is 28, 30 or 31 days, twelve are 52 weeks to the days of a leap year."""
    time, months = (claimed, other) if claimed.unit and claimed.unit.dimension == "time" else (other, claimed)
    return any(
        days in {length * b for length in _MONTH_DAYS} or 7 * 52 * b <= 12 * days <= 366 * b
        for days in (amount / _DAY for amount in time.amounts())
        for b in months.amounts()
    )


def _any_close(claimed: Quantity, mine: Iterable[float], theirs: Iterable[float]) -> bool:
    others = tuple(theirs)
    return any(_close(claimed, a, b) for a in mine for b in others)


def _close(claimed: Quantity, mine: float, theirs: float) -> bool:
    if math.isclose(mine, theirs):
        return True
    if claimed.bound == "~":
        return math.isclose(mine, theirs, rel_tol=_APPROXIMATE)
    if claimed.bound == ">":
        return mine < theirs <= mine * 1.25
    if claimed.bound == "<":
        return mine * 0.8 <= theirs < mine
    return claimed.scaled and _rounded(theirs, mine) == mine


def _rounded(value: float, like: float) -> float:
    """``value`` rounded to as many significant digits as ``like`` is written with (two at least)."""
    digits = max(2, len(f"{like:.6e}".partition("e")[0].rstrip("0").replace(".", "")))
    return float(f"{value:.{digits - 1}e}")


def same_kind(quantity: Quantity, other: Quantity) -> bool:
    """True if both measure the same: equal dimension, or no known unit on either side and the same noun if any."""
    if quantity.unit or other.unit:
        mine = quantity.unit.dimension if quantity.unit else ""
        theirs = other.unit.dimension if other.unit else ""
        return mine == theirs or {mine, theirs} == {"time", "months"}
    return not quantity.noun or not other.noun or quantity.noun[:4] == other.noun[:4]


def is_share(said: float, value: float) -> bool:
    """True for 33 % where the sources make it a third; none and all are never said of what is only nearly so."""
    if math.isclose(said, value) or said in {0, 100}:
        return math.isclose(said, value)
    return round(value, _decimals(said)) == said or math.isclose(said, value, rel_tol=_ROUND_SHARE)


def is_result(said: Quantity, value: float, unit: Unit | None = None) -> bool:
    """Whether the number is what ``value`` comes to, as exactly as it is written; a value may have no unit."""
    if said.unit and unit:
        if said.unit.dimension != unit.dimension:
            return False
        value *= unit.factor / said.unit.factor
    if said.unit and said.unit.dimension == "ratio" and said.bound != "~":
        return any(is_share(reading * said.unit.factor, value) for reading in said.readings)
    return any(
        math.isclose(reading, value, rel_tol=_APPROXIMATE if said.bound == "~" else 1e-9)
        or (math.isclose(reading, value, rel_tol=_ROUND_SHARE) and reading == round(value, _decimals(reading)))
        for reading in said.readings
    )


def _decimals(number: float) -> int:
    return len(f"{number:.10g}".partition(".")[2])
