"""Checks that the numbers of a claim stand in what it cites, or follow from it.

A number counts as known only in its unit: the digits alone are not enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from verification.checks.arithmetic import follows, may_follow
from verification.checks.equations import wrong_results
from verification.evidence.evidence import MOST, Evidence, Finding, Hit
from verification.evidence.passages import Passage
from verification.text.words import stem
from verification.values.amounts import matches, same_kind
from verification.values.numbers import Quantity, with_period
from verification.values.units import UNITS

_COUNTED = 5
_SAME_SENTENCE = 0.75
_SPEAKS_OF_IT = 0.5
_AT_HOUR = re.compile(
    r"\b(?:at|by|until|from|between|before|after|um|ab|von|zwischen|bis|gegen|à|dès|las|pukul|jam)\s$"
    r"|\b(?:from \w{1,6} to|between \w{1,6} and|zwischen \w{1,6} und)\s$",
    re.IGNORECASE,
)
_LEAD = 24  # of "zwischen fünf und " and the like
_MINUTES_PAST = {
    "half past": 30,
    "quarter past": 15,
    "quarter to": -15,
    "halb": -30,
    "viertel nach": 15,
    "viertel vor": -15,
}
_PAST = re.compile(rf"\b({'|'.join(_MINUTES_PAST)})\s$", re.IGNORECASE)
_HALF_A_DAY = 720  # minutes
_LATE = re.compile(
    r"\s(?:\w+\s)?(?:\w+\s)?(?:p\.?m|evening|night|afternoon|abends|nachmittags|nachts|soir|après-midi|noche"
    r"|tarde|malam|sore)\b",
    re.IGNORECASE,
)
_OF_ALL = re.compile(
    r"\b(?:all|both|the|these|those|alle|die|diese|les|ces|tous|los|las|estos|todos|ini|itu)\s$", re.IGNORECASE
)
_LISTED = re.compile(
    r"(?:of|or|and|to|times|mal|fois|veces|kali|ways?|options?|steps?|things?|reasons?|kinds?|types?|parts?|points?"
    r"|cases?|methods?|sorts?|rules?"
    r"|conditions?|exceptions?|requirements?|levels?|phases?|stages?|groups?|items?|places?|roles?|teams?|people|persons?"
    r"|members?|names?|players?|categor\w+|approaches|possibilities|arten|optionen|möglichkeiten|schritte\w*|dinge"
    r"|gründe|teile|punkte|fälle|regeln|bedingungen|stufen|phasen|gruppen|orte|rollen|personen|leute|mitglieder|namen"
    r"|façons|étapes|choses|raisons|sortes|parties|règles|conditions|personnes|membres|noms|formas|opciones|pasos|cosas"
    r"|razones|tipos|partes|puntos|casos|reglas|condiciones|personas|miembros|nombres|cara|opsi|langkah|hal|alasan|jenis"
    r"|bagian|poin|aturan|syarat|orang|anggota|nama)$",
)
_YEAR = UNITS["年"]


def number_findings(evidence: Evidence) -> Iterator[Finding]:
    """One finding for each number of the claim that the cited sources do not bear out."""
    mine = evidence.claim.quantities[:MOST]
    if all(_is_in_best(quantity, evidence) for quantity in mine):
        return
    known = [quantity for quantity in mine if quantity.weak or _is_known(quantity, evidence)]
    starts = {quantity.start for quantity in known}
    for quantity in mine:
        is_known = quantity.start in starts
        if is_known and _is_misplaced(quantity, evidence):
            # One that only a near number bears out ("more than 83" for 90) stands nowhere, then.
            found = _finding(quantity, evidence)
            yield replace(found, severity="warning") if _is_exact(quantity, evidence) else found
        if is_known or any(_converts(quantity, other) for other in known) or follows(quantity, evidence):
            continue
        yield _finding(quantity, evidence)
    yield from wrong_results(evidence)


def _is_in_best(quantity: Quantity, evidence: Evidence) -> bool:
    """Whether the sentence nearest to the claim has the number: most stand there."""
    if evidence.best is None:
        return False
    return any(matches(quantity, other) for other in evidence.best.passage.quantities)


def _is_exact(quantity: Quantity, evidence: Evidence) -> bool:
    """True if the number itself, not only one near it, stands in what is cited or known."""
    unbound = quantity._replace(bound="")
    return any(matches(unbound, other) for passage in evidence.passages for other in passage.quantities)


def _is_misplaced(quantity: Quantity, evidence: Evidence) -> bool:
    """True if the number stands elsewhere, and the sentence that says nearly all the same has another in its place."""
    hit = evidence.best
    if quantity.weak or quantity.worded or hit is None or hit.share < _SAME_SENTENCE or not evidence.same_language:
        return False
    # The sentence alone is soon read; the whole source only where the number is not in it.
    if any(matches(quantity, other) for other in hit.passage.quantities):
        return False
    inside = [q for q in hit.source.passage.quantities if hit.start <= q.start < hit.end]
    if any(matches(quantity, other) for other in inside) or follows(quantity, evidence):
        return False
    claimed = evidence.claim.quantities[:MOST]
    return any(same_kind(quantity, other) and not any(matches(q, other) for q in claimed) for other in inside)


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
    """True for the eight of "opens at eight" where the passage has eight o'clock, in the same half of the day."""
    if quantity.unit:
        return False
    minutes = _minutes_past(text, quantity)
    if minutes is not None:
        times = {(60 * int(value) + minutes) % _HALF_A_DAY for value in quantity.readings}
        return any(
            (60 * moment.hour + (moment.minute or 0)) % _HALF_A_DAY in times
            for moment in passage.moments
            if moment.hour is not None
        )
    if not _AT_HOUR.search(text, max(0, quantity.start - _LEAD), quantity.start):
        return False
    late = bool(_LATE.match(text, quantity.end))
    return any(
        moment.hour in {value, value + 12} and (moment.hour >= 12 or not late)  # noqa: PLR2004  # noon
        for moment in passage.moments
        if moment.hour is not None and not moment.minute
        for value in quantity.readings
    )


def _minutes_past(text: str, quantity: Quantity) -> int | None:
    """The minutes that "half past" and the like add to the hour behind them; None without any."""
    match = _PAST.search(text, max(0, quantity.start - _LEAD), quantity.start)
    return _MINUTES_PAST[match[1].casefold()] if match else None


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
        sure=there is not None and there[0].share >= _SAME_SENTENCE and evidence.same_language,
    )


def _may_be_right(quantity: Quantity, evidence: Evidence, *, instead: bool) -> bool:
    if not instead and (_may_be_counted(quantity, evidence) or _is_counted_there(quantity, evidence)):
        return True
    return may_follow(quantity, evidence)


def _is_counted_there(quantity: Quantity, evidence: Evidence) -> bool:
    """True if the sources have the number and count something with it: what, is for somebody else to compare."""
    bare = quantity._replace(unit=None, period=None)
    return any(matches(bare, other) for cited in evidence.cited for other in cited.passage.quantities if not other.unit)


def _may_be_counted(quantity: Quantity, evidence: Evidence) -> bool:
    """A small number in words without a unit often counts what the source merely lists."""
    small = quantity.worded and quantity.unit is None and quantity.readings[0] <= _COUNTED
    return small and not _is_more_than_named(quantity, evidence)


def _is_more_than_named(quantity: Quantity, evidence: Evidence) -> bool:
    """True for the two films of a source that names fewer; steps, people and the like are listed, not named."""
    claim = evidence.claim
    if not evidence.same_language or claim.language in {"ja", "zh"} or _LISTED.match(quantity.noun):
        return False
    if _OF_ALL.search(claim.text, max(0, quantity.start - 8), quantity.start):
        return False
    counted = stem(quantity.noun, claim.language or "en") if quantity.noun else ""
    named = sum(term.stem == counted for cited in evidence.cited for term in cited.passage.terms)
    return bool(counted) and named < quantity.readings[0]


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
