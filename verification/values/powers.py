"""Powers: 10² is a hundred, and 5 m² is no length. Behind any other number a raised digit is the mark of a note."""

from __future__ import annotations

import re

from verification.values.units import Unit

_BASES = frozenset({2.0, 10.0})
_MOST = 40
_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_PLAIN = str.maketrans(f"⁻{_DIGITS}", "-0123456789")
_EXPONENT = re.compile(rf"(?:⁻?[{_DIGITS}]{{1,2}}|\^-?\d{{1,2}}(?!\d))")
_SQUARE = re.compile(r"²|2(?![\d.,]*\d|\w)|\s(?:carrés?|cuadrados?|persegi)\b", re.IGNORECASE)
_CUBE = re.compile(r"³|3(?![\d.,]*\d|\w)|\s(?:cubes?|cúbicos?|kubik)\b", re.IGNORECASE)


def raised(text: str, end: int, readings: tuple[float, ...]) -> tuple[tuple[float, ...], int]:
    """The readings of a number that ends at ``end``, raised to the power written there, and where that ends."""
    match = _EXPONENT.match(text, end) if _BASES.issuperset(readings) else None
    if match is None:
        return readings, end
    exponent = int(match.group().lstrip("^").translate(_PLAIN))
    if abs(exponent) > _MOST:
        return readings, end
    return tuple(reading**exponent for reading in readings), match.end()


def raised_unit(text: str, end: int, unit: Unit) -> tuple[Unit, int]:
    """The unit that ends at ``end``, as a square or a cube where that is written there, and where it ends."""
    if unit.dimension != "length":
        return unit, end
    for power, pattern in ((2, _SQUARE), (3, _CUBE)):
        match = pattern.match(text, end)
        if match:
            return Unit(f"length {power}", unit.factor**power), match.end()
    return unit, end
