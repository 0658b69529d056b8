"""Checks that the dates and times of a claim stand in what it cites, in any spelling.

Nothing is resolved against today: a date that the sources do not write is not theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from verification.evidence.evidence import MOST, Evidence, Finding
from verification.evidence.passages import Passage
from verification.text.lexicon import compiled
from verification.values.dates import Moment, agrees

_NEGATED = r"\b(?:{exceptions})\b|n’t\b|ない|ません|不|没"
_SEASON = re.compile(r"\b(\d{4})\s?[-–/]\s?$")
# "November 2018 and a year later" is November 2019.
_YEARS_AWAY = r"\b(?:years?|Jahre?|ans?|años?) (?:{years_away})\b|\b(?:following|next|previous) year\b"
_NEAR = 3
_SAME_SENTENCE = 0.75  # of the words: at 0.6 it failed right answers


def date_findings(evidence: Evidence) -> Iterator[Finding]:
    """One finding for each date or time of the claim that the cited sources do not bear out."""
    mine = evidence.claim.moments[:MOST]
    seen: set[tuple[int, int]] = set()
    for moment in mine:
        span = (moment.start, moment.end)
        readings = [other for other in mine if (other.start, other.end) == span]
        # Two readings of 03/04/2021 need one to fit; the two days of "3-5 March" need both.
        ambiguous = len({reading.month for reading in readings}) > 1
        meant = readings if ambiguous else [moment]
        fits = [_is_near(reading, evidence) or _is_known(reading, evidence.passages) for reading in meant]
        if any(fits) and span not in seen and (there := _elsewhere(moment, evidence)):
            seen.add(span)
            yield _finding(moment, evidence, there)
        if any(fits) or span in seen or _is_years_away(moment, evidence) or _ends_a_season(moment, evidence.claim.text):
            continue
        seen.add(span)
        yield _finding(moment, evidence)


def _ends_a_season(moment: Moment, text: str) -> bool:
    """True for the second year of "1904-1905": the first one was checked."""
    match = _SEASON.search(text, max(0, moment.start - 7), moment.start)
    return moment.is_year and match is not None and int(match[1]) + 1 == moment.year


def _is_years_away(moment: Moment, evidence: Evidence) -> bool:
    """True for a date so many years from another one as a sentence near the claim says that pass."""
    if moment.year is None or moment.month is None:
        return False
    for hit in evidence.hits[:_NEAR]:
        if compiled(_YEARS_AWAY).search(hit.text):
            spans = {1, *(quantity.readings[0] for quantity in hit.passage.quantities)}  # "a year" is no number
            others = (o for o in hit.passage.moments if (o.month, o.day) == (moment.month, moment.day))
            if any(other.year and abs(moment.year - other.year) in spans for other in others):
                return True
    return False


def _is_near(moment: Moment, evidence: Evidence) -> bool:
    """Whether a sentence near the claim has the date with all its parts."""
    # What makes eight o'clock morning or evening may stand outside of the words.
    written = moment.hour is None and evidence.is_written_near(moment.start, moment.end)
    return written or any(
        agrees(moment, other) and (moment.year is None or other.year is not None)
        for passage in evidence.near()
        for other in passage.moments
    )


def _is_known(moment: Moment, passages: tuple[Passage, ...]) -> bool:
    year_is_named = any(moment.year in passage.years for passage in passages)
    if moment.is_year and _is_number(moment, passages):
        return True
    for passage in passages:
        for other in passage.moments:
            # A date without its year is this date only if the year stands somewhere near.
            missing_year = moment.year is not None and other.year is None
            if agrees(moment, other) and not (missing_year and not year_is_named):
                return True
    return False


def _is_number(moment: Moment, passages: tuple[Passage, ...]) -> bool:
    return any(moment.year in quantity.readings for passage in passages for quantity in passage.quantities)


def _elsewhere(moment: Moment, evidence: Evidence) -> tuple[int, str] | None:
    """The date that the sentence which says nearly all the same has in the place of this one, if it does."""
    hit = evidence.best
    if hit is None or hit.share < _SAME_SENTENCE or (moment.day is None and moment.hour is None):
        return None
    claimed = evidence.claim.moments[:MOST]
    if not evidence.same_language or any(agrees(mine, other) for mine in claimed for other in hit.passage.moments):
        return None
    there = next((other for other in hit.passage.moments if _is_alike(moment, other)), None)
    return (hit.source.id, hit.text[there.start : there.end].strip()) if there else None


def _is_alike(moment: Moment, other: Moment) -> bool:
    """Whether both are times of day, or both days."""
    return _kind(moment) == _kind(other) and (moment.day is None) == (other.day is None)


def _finding(moment: Moment, evidence: Evidence, there: tuple[int, str] | None = None) -> Finding:
    words = evidence.claim.text[moment.start : moment.end].strip()
    is_elsewhere = there is not None
    there = there or _instead(moment, evidence)
    if moment.weekday is not None and compiled(_NEGATED).search(evidence.claim.text):
        there = None  # "no releases on Fridays" may follow from the days that there are
    # A month or day of the week alone may be meant otherwise; it is evidence only if the source names another one.
    precise = moment.day is not None or moment.year is not None or moment.hour is not None or there is not None
    if there:
        source, said = there
        detail = f"source [{source}] says {said}, not {words}"
        remedy = f"Replace {words} by {said} as source [{source}] has it, or drop the sentence."
    else:
        detail = f"{words} does not stand in {evidence.sources_named()}"
        remedy = f"Drop {words}, or cite the source that states it."
    return Finding(
        kind="date",
        severity="error" if precise else "warning",
        start=moment.start,
        end=moment.end,
        detail=detail,
        remedy=remedy,
        sure=is_elsewhere
        or (there is not None and evidence.best is not None and evidence.best.share >= _SAME_SENTENCE),
    )


def _instead(moment: Moment, evidence: Evidence) -> tuple[int, str] | None:
    """The date of the same kind in the sentences nearest to the claim, and the source that has it."""
    for hit in evidence.hits[:3]:
        for other in hit.source.passage.moments:
            inside = hit.start <= other.start < hit.end
            if (
                inside
                and _kind(other) == _kind(moment)
                and not any(agrees(m, other) for m in evidence.claim.moments[:MOST])
            ):
                return hit.source.id, hit.source.passage.text[other.start : other.end].strip()
    return None


def _kind(moment: Moment) -> str:
    if moment.weekday is not None:
        return "weekday"
    if moment.hour is not None and moment.month is None:
        return "time"
    return "year" if moment.is_year else "date"
