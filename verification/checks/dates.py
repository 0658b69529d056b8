"""Checks that the dates and times of a claim stand in what it cites, in any spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator

from verification.checks.derived import is_derivable_moment
from verification.evidence.evidence import MOST, SAME_SENTENCE, Certainty, Evidence, Finding, Hit
from verification.values.dates import Moment, agrees
from verification.values.units import UNITS

_SEASON = re.compile(r"\b(\d{4})\s?[-–/]\s?$")
_NEAR = 3  # sentences
_HOUR = UNITS["h"]


def date_findings(evidence: Evidence) -> Iterator[Finding]:
    """One finding for each date or time of the claim that the cited sources do not bear out."""
    mine = evidence.claim.moments[:MOST]
    seen: set[tuple[int, int]] = set()
    for moment in mine:
        span = (moment.start, moment.end)
        readings = [other for other in mine if (other.start, other.end) == span]
        # Two readings of 03/04/2021 need one to fit; the two days of "3-5 March" need both.
        ambiguous = len({reading.month for reading in readings}) > 1
        fits = any(_is_known(reading, evidence) for reading in (readings if ambiguous else [moment]))
        if not (fits or span in seen or _ends_a_season(moment, evidence.claim.text)):
            seen.add(span)
            yield _finding(moment, evidence)


def _ends_a_season(moment: Moment, text: str) -> bool:
    """True for the second year of "1904-1905": the first one was checked."""
    match = _SEASON.search(text, max(0, moment.start - 7), moment.start)
    return moment.is_year and match is not None and int(match[1]) + 1 == moment.year


def _is_known(moment: Moment, evidence: Evidence) -> bool:
    # What makes eight o'clock morning or evening may stand outside of the words.
    if moment.hour is None and evidence.is_written_near(moment.start, moment.end):
        return True
    passages = evidence.passages
    # A year in Chinese numerals is read as a number.
    if moment.is_year and any(moment.year in q.readings for passage in passages for q in passage.quantities):
        return True
    # A date without its year is this date only if the year stands somewhere near.
    year_is_named = moment.year is None or any(
        moment.year == other.year for passage in passages for other in passage.moments
    )
    return any(
        agrees(moment, other) and (year_is_named or other.year is not None)
        for passage in passages
        for other in passage.moments
    )


def _instead(moment: Moment, evidence: Evidence) -> tuple[Hit, Moment] | None:
    """The date of the same kind in the sentences nearest to the claim."""
    claimed = evidence.claim.moments[:MOST]
    for hit in evidence.hits[:_NEAR]:
        for other in hit.passage.moments:
            if _kind(other) == _kind(moment) and not any(agrees(mine, other) for mine in claimed):
                return hit, other
    return None


def _finding(moment: Moment, evidence: Evidence) -> Finding:
    span, there = (moment.start, moment.end), _instead(moment, evidence)
    certainty = _certainty(moment, evidence, there)
    if there is None or certainty == "doubtful":
        return evidence.nowhere("date", span, certainty)
    hit, other = there
    return evidence.instead("date", span, hit, hit.text[other.start : other.end].strip(), certainty)


def _certainty(moment: Moment, evidence: Evidence, there: tuple[Hit, Moment] | None) -> Certainty:
    # A month or day of the week alone may be meant otherwise, and what is denied follows from the days that there are.
    precise = moment.day is not None or moment.year is not None or moment.hour is not None
    if not precise and (there is None or evidence.denies(moment.start)):
        return "doubtful"
    told = (other for passage in evidence.told for other in passage.moments)
    if any(agrees(moment, other) and (moment.year is None or other.year is not None) for other in told):
        return "doubtful"
    if _is_written_otherwise(moment, evidence) or is_derivable_moment(moment, evidence):
        return "doubtful"
    return "certain" if there and there[0].share >= SAME_SENTENCE and evidence.same_language else "unfounded"


def _is_written_otherwise(moment: Moment, evidence: Evidence) -> bool:
    """True for 4 December where the passage has 04/12, and for 12:00 where it has "at 12" or "12 h"."""
    if moment.day is None or moment.month is None:
        return not moment.minute and any(
            quantity.readings[0] in {moment.hour, (moment.hour or 0) % 12 or None}
            for passage in evidence.passages
            for quantity in passage.quantities
            if quantity.unit in {None, _HOUR}
        )
    day, month = moment.day, moment.month
    pattern = rf"(?<![\d/.-])(?:0?{day}[/.-]0?{month}|0?{month}[/.-]0?{day})(?![\d/-])"
    return any(re.search(pattern, passage.text) for passage in evidence.passages)


def _kind(moment: Moment) -> str:
    if moment.weekday is not None:
        return "weekday"
    if moment.hour is not None and moment.month is None:
        return "time"
    return "year" if moment.is_year else "date"
