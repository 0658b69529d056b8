"""How often: "daily", "every six hours", "four times a year", compared with the sentence that speaks of the same.

Promises: a suspicion only, for rhythms are said in many ways; equal ones in other words (quarterly, four times a year)
are equal. Looks at the one sentence nearest to the claim. Bounded work.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import islice

from verification.evidence.evidence import MOST, Evidence, Finding
from verification.values.rates import seconds
from verification.values.units import UNITS

_MONTH = seconds(UNITS["month"])
_YEAR = 12 * _MONTH
_NEAR = 0.5
_TOLERANCE = 0.05
_COUNTS = {
    "once": 1,
    "twice": 2,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "eight": 8,
    "twelve": 12,
    "einmal": 1,
    "zweimal": 2,
    "dreimal": 3,
    "viermal": 4,
    "second": 2,
    "other": 2,
    "third": 3,
    "zwei": 2,
    "drei": 3,
    "vier": 4,
    "sechs": 6,
    "zweite": 2,
    "zweiten": 2,
    "zweiter": 2,
}
_ADVERBS = {
    "hourly": 3600.0,
    "daily": 86_400.0,
    "weekly": 604_800.0,
    "monthly": _MONTH,
    "quarterly": 3 * _MONTH,
    "yearly": _YEAR,
    "annually": _YEAR,
    "stündlich": 3600.0,
    "täglich": 86_400.0,
    "wöchentlich": 604_800.0,
    "monatlich": _MONTH,
    "vierteljährlich": 3 * _MONTH,
    "jährlich": _YEAR,
}
_WEEKDAYS = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:mon|diens|donners|frei|sams|sonn)tage?|mittwoche?"
_SPAN = r"hours?|days?|weeks?|months?|quarters?|years?|stunden?|tage?|wochen?|monate?|quartale?|jahre?"
# One of these words stands in every rhythm.
_TELLING = frozenset({"every", "each", "alle", "a", "per", "pro", "im", "am", *_ADVERBS})
_TELLING |= {f"jede{ending}" for ending in ("", "n", "r", "s")}
_WEEKDAY = re.compile(_WEEKDAYS, re.IGNORECASE)
_EVERY = re.compile(
    rf"\b(?:every|each|alle|jede[nrs]?)\s(?:(?P<number>\d{{1,3}}|[^\W\d_]+)\s)?(?P<every>{_SPAN}|{_WEEKDAYS})\b"
    rf"|\b(?P<times>\d{{1,3}}|[^\W\d_]+)(?:\s(?:times|mal))?\s(?:a|per|pro|im|am)\s(?P<per>{_SPAN})\b"
    rf"|\b(?P<adverb>{'|'.join(_ADVERBS)})\b",
    re.IGNORECASE,
)


def rhythm_findings(evidence: Evidence) -> Iterator[Finding]:
    """A suspicion for each rhythm of the claim where the nearest sentence has others and not this one."""
    if _TELLING.isdisjoint(evidence.claim.words):
        return
    hit = evidence.best
    if hit is None or hit.share < _NEAR or not evidence.same_language:
        return
    mine = list(islice(_rhythms(evidence.claim.text), MOST))
    theirs = [length for length, _, _ in islice(_rhythms(hit.text), MOST)] if mine else []
    for length, start, end in mine if theirs else ():
        if any(math.isclose(length, other, rel_tol=_TOLERANCE) for other in theirs):
            continue
        yield Finding(
            kind="number",
            severity="warning",
            start=start,
            end=end,
            detail=f"source [{hit.source.id}] says another rhythm: {hit.text[:200]}",
            remedy=f"Say how often as source [{hit.source.id}] does.",
        )


def _rhythms(text: str) -> Iterator[tuple[float, int, int]]:
    """The seconds between two times, and where it is said."""
    for match in _EVERY.finditer(text):
        seconds = _between(match)
        if seconds:
            yield seconds, *match.span()


def _between(match: re.Match[str]) -> float:
    if match["adverb"]:
        return _ADVERBS[match["adverb"].casefold()]
    span = _seconds(match["every"] or match["per"])
    if match["every"]:
        return span * (_count(match["number"]) or 0) if match["number"] else span
    times = _count(match["times"])
    return span / times if times else 0.0


def _count(word: str) -> int:
    return int(word) if word.isdecimal() else _COUNTS.get(word.casefold(), 0)


def _seconds(word: str) -> float:
    folded = word.casefold()
    if _WEEKDAY.fullmatch(word):
        return UNITS["week"].factor
    unit = UNITS.get(folded) or UNITS.get(f"{folded}s") or UNITS.get(f"{folded}n")
    return seconds(unit) if unit else 0.0
