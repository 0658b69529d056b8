"""Checks that the numbers of a claim stand in what it cites, or follow from it.

A number counts as known only in its unit: the digits alone are not enough.
"""

from __future__ import annotations

from collections.abc import Iterator

from verification.checks.arithmetic import follows, may_follow
from verification.checks.equations import wrong_results
from verification.evidence.evidence import MOST, Evidence, Finding, Hit
from verification.evidence.passages import Passage
from verification.text.lexicon import compiled
from verification.values.amounts import matches, same_kind
from verification.values.numbers import Quantity, with_period
from verification.values.units import UNITS

_COUNTED = 5  # "the two", "three ways": the source lists what is counted and names no number
_SAME_SENTENCE = 0.75  # of the words, digits among them: without these it failed right answers
_SPEAKS_OF_IT = 0.5  # below it the next draft would copy the number of something else
_AT_HOUR = (
    r"\b(?:{at_hour})\s$|\b(?:from \w{1,6} to|between \w{1,6} and|zwischen \w{1,6} und)\s$|\b(?P<beside>{past_hour})\s$"
)
_LATE = r"\s(?:\w+\s){0,2}(?:p\.?m|{late})\b"
_NOON, _DAY = 12, 24  # hours: "at 8" may be in the evening, "at 20" is not in the morning
_LEAD = 24  # of "zwischen fünf und " and the like
_YEAR = UNITS["年"]


def number_findings(evidence: Evidence) -> Iterator[Finding]:
    """One finding for each number of the claim that the cited sources do not bear out."""
    mine = evidence.claim.quantities[:MOST]
    if all(_is_in_best(quantity, evidence) for quantity in mine):
        return
    known = [quantity for quantity in mine if quantity.weak or _is_known(quantity, evidence)]
    starts = {quantity.start for quantity in known}
    for quantity in mine:
        if quantity.start in starts and not _is_misplaced(quantity, evidence):
            continue
        if not (any(_converts(quantity, other) for other in known if other != quantity) or follows(quantity, evidence)):
            yield _finding(quantity, evidence)
    yield from wrong_results(evidence)


def _is_in_best(quantity: Quantity, evidence: Evidence) -> bool:
    """Whether the sentence nearest to the claim has the number: most stand there."""
    if evidence.best is None:
        return False
    return any(matches(quantity, other) for other in evidence.best.passage.quantities)


def _is_misplaced(quantity: Quantity, evidence: Evidence) -> bool:
    """True if the number stands elsewhere, and the sentence that says nearly all the same has another in its place."""
    hit = evidence.best
    if quantity.weak or quantity.worded or hit is None or hit.share < _SAME_SENTENCE or not evidence.same_language:
        return False
    theirs = hit.passage.quantities
    claimed = evidence.claim.quantities[:MOST]
    if any(matches(quantity, other) for other in theirs):
        return False
    return any(same_kind(quantity, other) and not any(matches(q, other) for q in claimed) for other in theirs)


def _converts(quantity: Quantity, known: Quantity) -> bool:
    """True for the second of "23 lb (10 kg)" where the source has the first."""
    return quantity.unit is not None and known.unit is not None and not known.weak and matches(quantity, known)


def _is_known(quantity: Quantity, evidence: Evidence) -> bool:
    # What stands near the claim need not be looked for in all of its sources.
    if any(matches(quantity, other) for passage in evidence.near() for other in passage.quantities):
        return True
    if _is_written_near(quantity, evidence):
        return True
    passages = evidence.passages
    return any(matches(quantity, other) for passage in passages for other in passage.quantities) or any(
        _is_year(quantity, passage)
        or _is_day(quantity, passage)
        or _is_century(quantity, passage)
        or _is_hour(quantity, passage, evidence.claim.text)
        for passage in passages
    )


def _is_written_near(quantity: Quantity, evidence: Evidence) -> bool:
    """True for the 22 of "59-22 at the club" where the source has the date "July 19-22 at the club"."""
    end = quantity.end + len(f" {quantity.noun}")
    return bool(quantity.noun) and not quantity.period and evidence.is_written_near(quantity.start, end)


def _is_hour(quantity: Quantity, passage: Passage, text: str) -> bool:
    """True for the eight of "opens at eight" where the passage has eight o'clock, and for "half past" and the like."""
    told = compiled(_AT_HOUR).search(text, max(0, quantity.start - _LEAD), quantity.start)
    if quantity.unit or told is None:
        return False
    near = (-1, 0, 1) if told["beside"] else (0,)
    late = bool(compiled(_LATE).match(text, quantity.end))
    return any(
        (value + away - moment.hour) % (_NOON if value <= _NOON else _DAY) == 0
        for moment in passage.moments
        if moment.hour is not None and (told["beside"] or not moment.minute) and not (late and moment.hour < _NOON)
        for value in quantity.readings
        for away in near
    )


def _is_century(quantity: Quantity, passage: Passage) -> bool:
    """True if the claim names a century ("the 15th century") that a year of the passage falls in."""
    if not quantity.century:
        return False
    return any(moment.year and (moment.year - 1) // 100 + 1 in quantity.readings for moment in passage.moments) or any(
        (year - 1) // 100 + 1 in quantity.readings
        for other in passage.quantities
        for year in other.readings
        if other.unit is None
    )


def _is_year(quantity: Quantity, passage: Passage) -> bool:
    """True for a year in words, such as 二〇二四年, that the passage has in digits."""
    said = quantity.readings if quantity.unit in {None, _YEAR} else ()
    return any(moment.year in said for moment in passage.moments)


def _is_day(quantity: Quantity, passage: Passage) -> bool:
    """True for "the 18th" where the passage has 18 September, and for 4.4 where "in 4.4." was read as a day."""
    said = passage.text
    if quantity.noun in {"st", "nd", "rd", "th"} and not quantity.century:
        return any(moment.day in quantity.readings for moment in passage.moments)
    if quantity.unit or quantity.readings[0].is_integer():
        return False
    return any(said[m.start : m.end].rstrip(".") == f"{quantity.readings[0]:g}" for m in passage.moments if m.day)


def _finding(quantity: Quantity, evidence: Evidence) -> Finding:
    words = evidence.claim.text[quantity.start : quantity.end]
    there = instead(quantity, evidence)
    where = evidence.sources_named()
    if there and _is_told_of_it(quantity, *there):
        hit, other = there
        said = hit.source.passage.text[other.start : other.end].strip()
        if said == words:  # then what differs is the time that they are given for
            said, words = with_period(hit.source.passage.text, other), with_period(evidence.claim.text, quantity)
        detail = f"source [{hit.source.id}] says {said}, not {words}"
        remedy = f"Replace {words} by {said} as source [{hit.source.id}] has it, or drop the sentence."
    else:
        detail = f"{words} does not stand in {where}"
        remedy = f"Drop {words}, or cite the source that states it."
    return Finding(
        kind="number",
        severity="warning" if _may_be_right(quantity, evidence, instead=there is not None) else "error",
        start=quantity.start,
        end=quantity.end,
        detail=detail,
        remedy=remedy,
        sure=there is not None
        and there[0].share >= _SAME_SENTENCE
        and evidence.same_language
        and not _is_told(quantity, evidence),
    )


def _is_told(quantity: Quantity, evidence: Evidence) -> bool:
    """True for the 180 of "who approves 180?": an answer may repeat it beside a limit of 50."""
    return any(matches(quantity, other) for passage in evidence.known for other in passage.quantities)


def _may_be_right(quantity: Quantity, evidence: Evidence, *, instead: bool) -> bool:
    if not instead and (_may_be_counted(quantity) or _is_counted_there(quantity, evidence)):
        return True
    return may_follow(quantity, evidence)


def _is_counted_there(quantity: Quantity, evidence: Evidence) -> bool:
    """True if the sources have the number and count something with it: what, is for somebody else to compare."""
    bare = quantity._replace(unit=None, period=None)
    return any(matches(bare, other) for cited in evidence.cited for other in cited.passage.quantities if not other.unit)


def _may_be_counted(quantity: Quantity) -> bool:
    """A small number in words without a unit often counts what the source merely lists."""
    return quantity.worded and quantity.unit is None and quantity.readings[0] <= _COUNTED


def instead(quantity: Quantity, evidence: Evidence) -> tuple[Hit, Quantity] | None:
    """The number that stands in the place of this one: same unit or noun, in the sentences nearest to the claim."""
    for hit in evidence.hits[:3]:
        inside = [q for q in hit.source.passage.quantities if hit.start <= q.start < hit.end]
        for other in inside:
            if same_kind(quantity, other) and not any(
                matches(mine, other) for mine in evidence.claim.quantities[:MOST]
            ):
                return hit, other
    return None


def _is_told_of_it(quantity: Quantity, hit: Hit, other: Quantity) -> bool:
    """Whether a number may be named as the right one: it says what it is of, or its sentence speaks of the claim's.

    The 400 of a table of codes in place of 900 requests would make a wrong answer of the next draft too.
    """
    return bool(other.unit) or other.noun == quantity.noun or hit.share >= _SPEAKS_OF_IT
