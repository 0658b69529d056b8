"""The span of time behind an amount that makes it a rate: "600 requests per minute", "12 a day", "5 euros monthly".

What may be an ordinal ("a second try") or a date ("a year ago") is no rate.
"""

from __future__ import annotations

import re

from verification.text.lexicon import compiled
from verification.values.units import UNITS, Unit

# "a second" is a time where nothing follows that it could be the second of.
_ENDS_THERE = r"(?=\s*(?:$|[.,;:!?)\[|]|(?:are|is|and|or|at|on|in|with)\b))"
_ADVERB = r"hourly|daily|weekly|monthly|quarterly|yearly|annually|täglich|wöchentlich|monatlich|jährlich"
_RATE = (
    r"(?:\s(?!(?:per|pro|par|por|an?|each|every|in|im|the|and|or|for|to|of)\b)[^\W\d_]+){0,2}"
    r"(?:\s?/\s?(?P<unit>{periods}|s|min|h|d)\b"
    r"|\s(?:per|an?|each|every|pro|je|im|in der|am|par|à la|al|a la|por|cada|setiap)"
    rf"\s(?P<every>(?:{{periods}}|night|nacht|nuit|noche|malam))(?<!\san second)(?:(?<!\sa second)|{_ENDS_THERE})\b"
    r"(?!\s(?:\d{4}|ago|later|earlier|before|after))"
    rf"|\s(?P<adverb>{_ADVERB})\b)"
)
_ADVERBS = {
    **dict.fromkeys(("night", "nacht", "nuit", "noche", "malam"), "day"),
    "hourly": "hour",
    "daily": "day",
    "weekly": "week",
    "monthly": "month",
    "quarterly": "quarters",
    "yearly": "year",
    "annually": "year",
    "täglich": "day",
    "wöchentlich": "week",
    "monatlich": "month",
    "jährlich": "year",
    "an": "ans",
    "quarter": "quarters",
}
_ADVERB_BEFORE = re.compile(rf"\b({_ADVERB})\s$", re.IGNORECASE)
_LEAD = 13  # the longest of them, the blank behind it, and the sign before it
_MONTH = 30.4375 * 86_400  # seconds: a twelfth of a year with its leap days


def is_span(unit: Unit) -> bool:
    """Whether a unit measures time."""
    return unit.dimension in {"time", "months"}


def seconds(period: Unit) -> float:
    """The length of a span of time; months are as long as they are on average."""
    return period.factor * (_MONTH if period.dimension == "months" else 1.0)


def period_before(text: str, start: int) -> Unit | None:
    """The span of time right before an amount: "monatlich 25 Euro"."""
    match = _ADVERB_BEFORE.search(text, max(0, start - _LEAD), start)
    return UNITS[_ADVERBS[match[1].casefold()]] if match else None


def period(text: str, end: int) -> Unit | None:
    """The span of time behind the amount that ends at ``end``; None without one."""
    match = compiled(_RATE).match(text, end)
    if match is None:
        return None
    word = (match["unit"] or match["every"] or match["adverb"]).casefold()
    return UNITS.get(_ADVERBS.get(word, word))


def rate_end(text: str, end: int) -> int:
    """Where the words for that span of time end; ``end`` without any."""
    match = compiled(_RATE).match(text, end)
    return match.end() if match else end
