"""Finds a number that the sources give to something else, while a sentence says the same with another number.

It speaks only where a sentence counts the very thing that the claim counts, with another number, and nothing cited
counts it with the claim's number. Status 400 in a table of codes is then no 400 requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from verification.evidence.antonyms import NEGATIONS, negates
from verification.evidence.evidence import MOST, Evidence, Finding, Hit
from verification.evidence.passages import Passage, analyse
from verification.text.words import stem
from verification.values.amounts import matches
from verification.values.numbers import Quantity, with_period
from verification.values.units import UNITS

_LOOKED_AT = 3
_FEWEST = 2
_ALIKE = 4
_BY_CHANCE = 12
_ROW_OR_ITEM = ("|", "-", "*", "•", "+")


def told_otherwise(quantity: Quantity, evidence: Evidence, hits: Iterable[Hit]) -> tuple[Hit, Quantity] | None:
    """The number that one of the sentences ``hits`` has in this one's place, if nothing cited has this one there."""
    if quantity.weak or quantity.bound or not (quantity.unit or quantity.noun) or _negates(evidence.claim):
        return None
    subject = _subject(evidence.claim)
    found = None
    for hit in islice(hits, _LOOKED_AT):
        if len(subject) < _FEWEST or not subject <= hit.stems:
            continue
        there = _in_its_place(quantity, evidence, hit.passage.quantities)
        if there is None:
            return None
        found = found or (hit, there)
    return found if found and not _is_counted(quantity, evidence) else None


def is_told_apart(quantity: Quantity) -> bool:
    """Whether a number is exact, large enough not to come up by chance, and says what it counts."""
    is_exact = not (quantity.weak or quantity.unit or quantity.bound or quantity.worded)
    return is_exact and len(quantity.noun) >= _ALIKE and quantity.readings[0] > _BY_CHANCE


def counted_otherwise(quantity: Quantity, evidence: Evidence) -> tuple[Hit, Quantity] | None:
    """The number that the sources count the same thing with, where they count only other things with the claim's."""
    if not is_told_apart(quantity) or _negates(evidence.claim):
        return None
    same = [other for passage in evidence.passages for other in passage.quantities if matches(quantity, other)]
    if not same or any(_may_count(quantity, other, evidence.claim) for other in same):
        return None
    best = evidence.best
    # "The office has 60 people" may well be told as "60 employees", whatever another sentence counts employees with.
    is_nearest = best is not None and any(matches(quantity, other) for other in best.passage.quantities)
    for hit in [best] if best and is_nearest else evidence.hits:
        for other in hit.passage.quantities:
            if other.noun and not (other.weak or other.bound) and _of_the_same(quantity, other, evidence.claim):
                return hit, other
    return None


def _may_count(quantity: Quantity, other: Quantity, claim: Passage) -> bool:
    """Whether a number may be of the same thing: it does not say clearly what else it is of."""
    says_of_what = len(other.noun) >= _ALIKE and stem(other.noun, claim.language)
    return other.unit is not None or not says_of_what or _of_the_same(quantity, other, claim)


def _in_its_place(quantity: Quantity, evidence: Evidence, inside: Iterable[Quantity]) -> Quantity | None:
    """Another number of the same thing, where the sentence has no number of the claim."""
    claimed, others = evidence.claim.quantities[:MOST], list(islice(inside, MOST))
    if any(matches(mine, other) for mine in claimed for other in others):
        return None
    return next((o for o in others if not (o.weak or o.bound) and _of_the_same(quantity, o, evidence.claim)), None)


def _of_the_same(quantity: Quantity, other: Quantity, claim: Passage) -> bool:
    """Whether both say what they are of, and it is the same."""
    if quantity.unit or other.unit:
        return bool(quantity.unit and other.unit and quantity.unit.dimension == other.unit.dimension)
    mine, theirs = (stem(noun, claim.language) for noun in (quantity.noun, other.noun))
    return bool(mine and theirs) and mine[:_ALIKE] == theirs[:_ALIKE]


def _is_counted(quantity: Quantity, evidence: Evidence) -> bool:
    """Whether what is cited, or known without it, has the number and may count the same thing with it."""
    bare = quantity._replace(unit=None, noun="", period=None)
    cited = {id(each.passage) for each in evidence.cited}
    return any(
        id(passage) not in cited
        or _of_the_same(quantity, other, evidence.claim)
        or _is_labelled(quantity, other, passage)
        for passage in evidence.passages
        for other in passage.quantities
        if matches(quantity, other) or matches(bare, other)
    )


def _is_labelled(quantity: Quantity, other: Quantity, passage: Passage) -> bool:
    """Whether the words before a number may say what it is of: "Days kept: 35", or the head of its table."""
    before = _label(passage, other.start)
    if quantity.unit is None:
        return stem(quantity.noun, passage.language) in before.stems
    return any(word in UNITS and UNITS[word].dimension == quantity.unit.dimension for word in before.words)


def _label(passage: Passage, position: int) -> Passage:
    """What stands before a number in its sentence; in a list or a table also the line that it begins with."""
    text = passage.text
    line = text.rfind("\n", 0, position) + 1
    if text[line:position].lstrip().startswith(_ROW_OR_ITEM):
        head, end, _ = text[text.rfind("\n\n", 0, line) + 1 : line].strip().partition("\n")
        return analyse(f"{head}{end}{text[line:position]}", passage.language)
    start = max((begin for begin, end in passage.spans if begin <= position < end), default=line)
    return analyse(text[start:position], passage.language)


def _subject(claim: Passage) -> frozenset[str]:
    """The stems of the claim but those of its numbers and of what they are given for."""
    counted = [(q.start, q.start + len(with_period(claim.text, q))) for q in claim.quantities[:MOST]]
    return frozenset(
        term.stem for term in claim.terms if term.stem and not any(a <= term.start < b for a, b in counted)
    )


def _negates(claim: Passage) -> bool:
    table = NEGATIONS.get(claim.language or "en", frozenset())
    return any(negates(term.word, table) for term in claim.terms)


def loose(evidence: Evidence) -> Iterator[Quantity]:
    """The numbers of the claim that the cited sentence nearest to it does not give to the same thing."""
    near = evidence.best.passage.quantities if evidence.best else ()
    for quantity in evidence.claim.quantities[:MOST]:
        if not any(_of_the_same(quantity, other, evidence.claim) and matches(quantity, other) for other in near):
            yield quantity


def finding_against(quantity: Quantity, evidence: Evidence, there: tuple[Hit, Quantity]) -> Finding:
    """The claim's number against the one that a source has in its place."""
    hit, other = there
    said, words = _told(hit.passage, other), _told(evidence.claim, quantity)
    is_cited = any(each.id == hit.source.id for each in evidence.cited)
    lacking = f"not {words}" if is_cited else f"and {evidence.sources_named()} has no {words}"
    return Finding(
        kind="number",
        severity="error",
        start=quantity.start,
        end=quantity.end,
        detail=f"source [{hit.source.id}] says {said}, {lacking}",
        remedy=f"Say {said} and cite [{hit.source.id}], or drop the sentence.",
    )


def _told(passage: Passage, quantity: Quantity) -> str:
    """The number with what it counts, as it is written."""
    if quantity.period or not quantity.noun:
        return with_period(passage.text, quantity)
    return passage.text[quantity.start : quantity.end + 1 + len(quantity.noun)]
