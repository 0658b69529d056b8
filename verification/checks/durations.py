"""Tells whether a span of time is the distance between two dates, years or times of day of the cited sources."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date
from itertools import combinations, pairwise

from verification.evidence.evidence import Evidence
from verification.evidence.passages import Passage
from verification.values.dates import Moment
from verification.values.numbers import Quantity
from verification.values.rates import is_span

_NEAR, _FARTHER = 3, 5  # sentences; the two times of an event stand farther apart than two dates
_MOST = 24  # every two of them are compared
_LONGEST_LINK = 7  # letters between the ends of a range: " until "
_ROUGHLY = 0.1  # "about two hours" may be 1:48
_SOME_YEAR = 2001  # any that is no leap year
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def is_between(quantity: Quantity, evidence: Evidence) -> bool:
    """True if the number is the distance between two years, dates or times of the cited sources."""
    if quantity.unit is None or not is_span(quantity.unit):
        return False
    if _is_span_of_days(quantity, evidence) or _is_span_of_hours(quantity, evidence):
        return True
    years = sorted({m.year for cited in evidence.cited for m in cited.passage.moments if m.year})[:_MOST]
    whole_years = {value / 12 for value in quantity.amounts()} if quantity.unit.dimension == "months" else set()
    return any(b - a in whole_years for a, b in combinations(years, 2))


def _is_span_of_days(quantity: Quantity, evidence: Evidence) -> bool:
    """True if the number is the days between two dates of sentences near the claim, the last one counted or not."""
    days = {round(amount / _DAY) for amount in quantity.amounts()}
    inside = [moment for hit in evidence.hits[:_NEAR] for moment in hit.passage.moments]
    ordinals = sorted({ordinal for moment in inside[:_MOST] for ordinal in _ordinal(moment)})
    return any(b - a in days or b - a + 1 in days for a, b in combinations(ordinals, 2))


def _ordinal(moment: Moment) -> Iterator[int]:
    """The day as a number, in some year where none is named; none for a date without a day or that does not exist."""
    if moment.month and moment.day:
        with suppress(ValueError):
            yield date(moment.year or _SOME_YEAR, moment.month, moment.day).toordinal()


def _is_span_of_hours(quantity: Quantity, evidence: Evidence) -> bool:
    """True if the number, with the minutes behind its hours, lies between two times of day."""
    if quantity.unit is None or quantity.unit.dimension != "time":
        return False
    said = _whole(quantity, evidence.claim.quantities[:_MOST])
    near = [moment for hit in evidence.hits[:_FARTHER] for moment in hit.passage.moments]
    times = {seconds for moment in near[:_MOST] for seconds in _seconds(moment)}
    spans = {abs(one - other) for one, other in combinations(times, 2)}
    spans |= {span for cited in evidence.cited for span in _ranges(cited.passage)}
    tolerance = _ROUGHLY if quantity.bound == "~" else 0.0
    return any(math.isclose(said, span, rel_tol=tolerance) for span in spans)


def _whole(quantity: Quantity, others: Iterable[Quantity]) -> float:
    """The seconds of all of "2 hours and 35 minutes", whichever of its two numbers is asked for."""
    said = quantity.amounts()[0]
    for other in others:
        gap = max(other.start - quantity.end, quantity.start - other.end)
        if other.unit and other.unit.dimension == "time" and 0 < gap <= _LONGEST_LINK and other.unit != quantity.unit:
            said += other.amounts()[0]
    return said


def _ranges(passage: Passage) -> Iterator[int]:
    """The seconds between the ends of what is written as a range of times."""
    for one, other in pairwise(passage.moments[:_MOST]):
        if 0 < other.start - one.end <= _LONGEST_LINK:
            yield from (abs(b - a) for a in _seconds(one) for b in _seconds(other))


def _seconds(moment: Moment) -> Iterator[int]:
    """The time of day in seconds; none for what is no time of day."""
    if moment.hour is not None and moment.month is None and moment.weekday is None:
        yield moment.hour * _HOUR + (moment.minute or 0) * _MINUTE
