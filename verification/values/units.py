"""Units of measure, their powers, and the span of time that makes a rate. The words are data in ``units.toml``.

``UNITS`` maps a written unit (case-folded) to its dimension and its factor to that dimension's basic unit, ``SCALES`` a
scale word to its factor.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from verification.text.lexicon import beside, compiled


class Unit(NamedTuple):
    """``dimension`` names what is measured, ``factor`` is the size in the dimension's basic unit."""

    dimension: str
    factor: float


_DATA = beside(__file__)
OTHER_COINS = frozenset(_DATA["money"]["other"].split())
"""Words for money that is none of ``CURRENCIES`` or that may also be a weight: such an amount is not one in euros."""
_MONEY: dict[str, str] = {currency: words for currency, words in _DATA["money"].items() if currency != "other"}
CURRENCIES = frozenset(_MONEY)
UNITS: dict[str, Unit] = {
    word: Unit(dimension, float(factor))
    for dimension, family in _DATA["units"].items()
    for factor, words in family.items()
    for word in words.split()
} | {word: Unit(currency, 1) for currency, words in _MONEY.items() for word in words.split()}
SCALES: dict[str, float] = {word: float(factor) for factor, words in _DATA["scales"].items() for word in words.split()}
# Glued capital letters scale only after a number: "1.2M", "3B". Small "m" and "b" are metres and bytes, never scales.
GLUED_SCALES: dict[str, float] = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "bn": 1e9, "mn": 1e6}

_BASES = frozenset({2.0, 10.0})  # behind any other number a raised digit is the mark of a note
_MOST = 40
_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_PLAIN = str.maketrans(f"⁻{_DIGITS}", "-0123456789")
_EXPONENT = re.compile(rf"(?:⁻?[{_DIGITS}]{{1,2}}|\^-?\d{{1,2}}(?!\d))")
_SQUARE = re.compile(r"²|2(?![\d.,]*\d|\w)|\s(?:carrés?|cuadrados?|persegi)\b", re.IGNORECASE)
_CUBE = re.compile(r"³|3(?![\d.,]*\d|\w)|\s(?:cubes?|cúbicos?|kubik)\b", re.IGNORECASE)

# "a second" is a time where nothing follows that it could be the second of.
_ENDS_THERE = r"(?=\s*(?:$|[.,;:!?)\[|]|(?:are|is|and|or|at|on|in|with)\b))"
_ADVERB = r"hourly|daily|weekly|monthly|quarterly|yearly|annually|täglich|wöchentlich|monatlich|jährlich"
# "600 requests per minute", "12 a day"; an ordinal ("a second try") and a date ("a year ago") are none.
_RATE = (
    r"(?:\s(?!(?:per|pro|par|por|an?|each|every|in|im|the|and|or|for|to|of)\b)[^\W\d_]+){0,2}"
    r"(?:\s?/\s?(?P<unit>{periods}|s|min|h|d)\b"
    r"|\s(?:per|an?|each|every|pro|je|im|in der|am|par|à la|al|a la|por|cada|setiap)"
    rf"\s(?P<every>(?:{{periods}}|night|nacht|nuit|noche|malam))(?<!\san second)(?:(?<!\sa second)|{_ENDS_THERE})\b"
    r"(?!\s(?:\d{4}|ago|later|earlier|before|after))"
    rf"|\s(?P<adverb>{_ADVERB})\b)"
)
_PERIODS: dict[str, str] = {word: unit for unit, words in _DATA["periods"].items() for word in words.split()}
_ADVERB_BEFORE = re.compile(rf"\b({_ADVERB})\s$", re.IGNORECASE)
_LEAD = 13  # the longest of them, the blank behind it, and the sign before it
_MONTH = 30.4375 * 86_400  # seconds: a twelfth of a year with its leap days


def raised(text: str, end: int, readings: tuple[float, ...]) -> tuple[tuple[float, ...], int]:
    """The readings of a number that ends at ``end``, raised to the power written there, and where that ends."""
    match = _EXPONENT.match(text, end) if _BASES.issuperset(readings) else None
    exponent = int(match.group().lstrip("^").translate(_PLAIN)) if match else 0
    if match is None or abs(exponent) > _MOST:
        return readings, end
    return tuple(reading**exponent for reading in readings), match.end()


def raised_unit(text: str, end: int, unit: Unit) -> tuple[Unit, int]:
    """The unit that ends at ``end``, as a square or a cube where that is written there, and where it ends."""
    if unit.dimension != "length":  # 5 m² is no length
        return unit, end
    for power, pattern in ((2, _SQUARE), (3, _CUBE)):
        match = pattern.match(text, end)
        if match:
            return Unit(f"length {power}", unit.factor**power), match.end()
    return unit, end


def is_span(unit: Unit) -> bool:
    """Whether a unit measures time."""
    return unit.dimension in {"time", "months"}


def seconds(period: Unit) -> float:
    """The length of a span of time; months are as long as they are on average."""
    return period.factor * (_MONTH if period.dimension == "months" else 1.0)


def period_before(text: str, start: int) -> Unit | None:
    """The span of time right before an amount: "monatlich 25 Euro"."""
    match = _ADVERB_BEFORE.search(text, max(0, start - _LEAD), start)
    return UNITS[_PERIODS[match[1].casefold()]] if match else None


def period(text: str, end: int) -> Unit | None:
    """The span of time behind the amount that ends at ``end``; None without one."""
    match = compiled(_RATE).match(text, end)
    if match is None:
        return None
    word = (match["unit"] or match["every"] or match["adverb"]).casefold()
    return UNITS.get(_PERIODS.get(word, word))


def rate_end(text: str, end: int) -> int:
    """Where the words for that span of time end; ``end`` without any."""
    match = compiled(_RATE).match(text, end)
    return match.end() if match else end
