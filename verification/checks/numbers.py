"""Checks that the numbers of a claim stand in what it cites, or could follow from it.

A number counts as known only in its unit: the digits alone are not enough.
"""

from __future__ import annotations

from collections.abc import Iterator

from verification.checks.derived import is_derivable
from verification.checks.equations import is_reckoned_with, wrong_results
from verification.evidence.evidence import MOST, SAME_SENTENCE, Certainty, Evidence, Finding, Hit
from verification.evidence.passages import Passage
from verification.values.amounts import matches, same_kind
from verification.values.numbers import ORDINALS, Quantity
from verification.values.units import UNITS, rate_end

_COUNTED = 5  # "the two", "three ways": the source lists what is counted and names no number
_SPEAKS_OF_IT = 0.5  # below it the next draft would copy the number of something else
_NEAR = 3  # sentences
_YEAR, _LEAST_YEAR, _NOON = UNITS["年"], 1000, 12


def number_findings(evidence: Evidence) -> Iterator[Finding]:
    """One finding for each number of the claim that the cited sources do not bear out."""
    mine = evidence.claim.quantities[:MOST]
    known = [quantity for quantity in mine if not quantity.weak and _is_known(quantity, evidence)]
    miscalculated = tuple(wrong_results(evidence))
    told = {finding.span[0] for finding in miscalculated}
    for quantity in mine:
        if quantity.start in told:  # what a source has instead is no help beside a calculation that is wrong
            continue
        converted = quantity.unit and any(matches(quantity, other) for other in known if other.unit)  # "23 lb (10 kg)"
        if not (quantity.weak or quantity in known or converted):
            yield _finding(quantity, evidence)
    yield from miscalculated


def _is_known(quantity: Quantity, evidence: Evidence) -> bool:
    # What stands near the claim need not be looked for in all of its sources.
    passages = (*evidence.near(), *evidence.passages)
    if any(matches(quantity, other) for passage in passages for other in passage.quantities):
        return True
    # The 22 of "59-22 at the club" where the source has the date "July 19-22 at the club".
    end = quantity.end + len(f" {quantity.noun}")
    return bool(quantity.noun) and not quantity.period and evidence.is_written_near(quantity.start, end)


def _finding(quantity: Quantity, evidence: Evidence) -> Finding:
    span, there = (quantity.start, quantity.end), _instead(quantity, evidence)
    certainty = _certainty(quantity, evidence, there)
    if there is None or certainty == "doubtful" or not _is_told_of_it(quantity, *there):
        return evidence.nowhere("number", span, certainty)
    hit, other = there
    said = hit.text[other.start : other.end].strip()
    if said == evidence.claim.text[slice(*span)]:  # then what differs is the time that they are given for
        said = hit.text[other.start : rate_end(hit.text, other.end)].strip()
        span = (span[0], rate_end(evidence.claim.text, span[1]))
    return evidence.instead("number", span, hit, said, certainty)


def _certainty(quantity: Quantity, evidence: Evidence, there: tuple[Hit, Quantity] | None) -> Certainty:
    near = [*(hit.passage for hit in evidence.hits[:_NEAR]), *evidence.told]
    is_date = quantity.noun in ORDINALS or quantity.readings[0] >= _LEAST_YEAR  # else it may be any hour by chance
    asked, answered = (
        any(matches(quantity, other) for passage in passages for other in passage.quantities)
        for passages in (evidence.known, evidence.context)
    )
    is_doubt = (
        asked
        or any(_is_part(quantity, passage) for passage in (evidence.passages if is_date else near))
        or is_reckoned_with(quantity, evidence.claim, alone=answered or there is None)
        or (there is None and _may_be_counted(quantity, evidence))
        or is_derivable(quantity, evidence)
    )
    if is_doubt:
        return "doubtful"
    return "certain" if there and there[0].share >= SAME_SENTENCE and evidence.same_language else "unfounded"


def _may_be_counted(quantity: Quantity, evidence: Evidence) -> bool:
    """True for a number that is denied or counts other things, and for a small one in words: it may count a list."""
    small = quantity.worded and quantity.readings[0] <= _COUNTED
    if quantity.unit is None and (small or evidence.denies(quantity.start)):
        return True
    bare = quantity._replace(unit=None, period=None)
    others = (other for cited in evidence.cited for other in cited.passage.quantities if not other.unit)
    return any(matches(bare, other) for other in others)


def _is_part(quantity: Quantity, passage: Passage) -> bool:
    """True for the eight of "at eight", the 18th and the 19th century where the passage has a time, a day, a year."""
    if quantity.unit not in {None, _YEAR}:
        return False
    if not quantity.readings[0].is_integer():  # "in 4.4." may be read as a day
        return any(f"{quantity.readings[0]:g}" == passage.text[m.start : m.end].rstrip(".") for m in passage.moments)
    if quantity.century:
        years = {year for other in passage.quantities if not other.unit for year in other.readings}
        years |= {moment.year for moment in passage.moments if moment.year}
        return any((year - 1) // 100 + 1 in quantity.readings for year in years)
    hours = {m.hour + after for m in passage.moments if m.hour is not None for after in ((0, 1) if m.minute else (0,))}
    parts = {part for moment in passage.moments for part in (moment.year, moment.day)} | hours
    return not parts.union(hour - _NOON for hour in hours).isdisjoint(quantity.readings)  # "half past eight" is 20:30


def _instead(quantity: Quantity, evidence: Evidence) -> tuple[Hit, Quantity] | None:
    """The number that stands in the place of this one: of the same kind, in the sentences nearest to the claim."""
    claimed = evidence.claim.quantities[:MOST]
    for hit in evidence.hits[:_NEAR]:
        for other in hit.passage.quantities:
            if same_kind(quantity, other) and not any(matches(mine, other) for mine in claimed):
                return hit, other
    return None


def _is_told_of_it(quantity: Quantity, hit: Hit, other: Quantity) -> bool:
    """Whether a number may be named as the right one: it says what it is of, or its sentence speaks of the claim's.

    The 400 of a table of codes in place of 900 requests would make a wrong answer of the next draft too.
    """
    return bool(other.unit) or other.noun == quantity.noun or hit.share >= _SPEAKS_OF_IT
