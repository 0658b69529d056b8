"""A number of the claim that its sources give to something else, while a sentence says the same with another number.

Promises: speaks only where a sentence counts the very thing that the claim counts, with another number, and nothing
that is cited counts it with the claim's number; that sentence holds all words of the claim, or the claim's number
clearly counts something else. Status 400 in a table of codes is then no 400 requests. Must never speak of a negated or
rounded number, nor where a label or a table's head may say what a bare number counts.

Whether a number or a name of a claim is given to what its source gives it to: 35 days are for daily backups.

Promises: a suspicion only, where the part of a sentence that speaks of the claim's subject has another number (or name)
and the part that has the claim's speaks of something else. Looks at a bounded number of sentences, parts and numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from verification.evidence.antonyms import NEGATIONS, negates
from verification.evidence.evidence import MOST, Evidence, Finding, Hit
from verification.evidence.passages import Passage, analyse
from verification.text.words import Term, stem
from verification.values.amounts import matches, same_kind
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


_NEAREST = 4
_MOST_PARTS = 24
_FULL_NAME = 2
_NEAR = 0.5
_JOINT = re.compile(r";|,\s")
_AND = "and while whereas but und während aber et tandis mais y mientras pero dan sedangkan tetapi"
_JOINING = frozenset(_AND.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A part of a sentence: its stems without those of numbers and names, its numbers, its names as sets of stems."""

    stems: frozenset[str]
    numbers: tuple[Quantity, ...]
    names: tuple[frozenset[str], ...]
    start: int
    end: int


def attribution_findings(evidence: Evidence) -> Iterator[Finding]:
    """The first number or name of the claim that its sources give to something else."""
    if not evidence.same_language or evidence.claim.language in {"ja", "zh"}:
        return
    hits = [hit for hit in evidence.hits[:_NEAREST] if hit.share >= _NEAR]
    if not (evidence.claim.quantities or evidence.claim.capitals) or not hits:
        return
    # Where there is but one part, nothing is given to another one.
    if len(hits) == 1 and _is_whole(hits[0]):
        return
    claimed = [part for part in _parts(evidence.claim, evidence.claim.terms) if part.numbers or part.names]
    nearest = _parts(hits[0].passage, hits[0].passage.terms) if claimed else []
    # What the nearest sentence gives to the very same is given to nothing else.
    claimed = [mine for mine in claimed if not any(_is_the_same(mine, part) for part in nearest)]
    if not claimed:
        return
    theirs = [(hit, part) for hit in hits for part in _parts(hit.passage, hit.passage.terms)][:_MOST_PARTS]
    for mine in claimed:
        found = _misplaced_number(mine, theirs, evidence) or _misplaced_name(mine, theirs, evidence)
        if found:
            yield found
            return


def _is_the_same(mine: _Part, part: _Part) -> bool:
    """Whether a part has all that this one has: its stems, its numbers and its names."""
    return (
        mine.stems <= part.stems
        and all(any(matches(quantity, other) for other in part.numbers) for quantity in mine.numbers)
        and all(any(name <= other for other in part.names) for name in mine.names)
    )


def _parts(passage: Passage, terms: Sequence[Term]) -> list[_Part]:
    """The parts of a sentence, cut at commas, semicolons and words like "and"."""
    text = passage.text
    may_part = "," in text or ";" in text
    cut: list[list[Term]] = [[]]
    for term in terms:
        last = cut[-1][-1].end if cut[-1] else term.start
        if cut[-1] and (term.word in _JOINING or (may_part and _JOINT.search(text, last, term.start))):
            cut.append([])
        cut[-1].append(term)
    return [_part(passage, part) for part in cut[:_MOST_PARTS] if part]


def _is_whole(hit: Hit) -> bool:
    """Whether the sentence is surely one part."""
    return _JOINING.isdisjoint(hit.words) and "," not in hit.text and ";" not in hit.text


def _part(passage: Passage, terms: Sequence[Term]) -> _Part:
    start, end = terms[0].start, terms[-1].end
    numbers = tuple(q for q in passage.quantities if start <= q.start < end)
    names = [] if passage.language == "de" else _names(passage, terms)
    apart = frozenset[str]().union(*names)
    others = [t for t in terms if not _belongs(t, numbers)] if numbers else terms
    stems = frozenset([t.stem for t in others if t.stem]) - apart
    return _Part(stems=stems, numbers=numbers, names=tuple(names), start=start, end=end)


def _belongs(term: Term, numbers: Sequence[Quantity]) -> bool:
    """Whether the word is part of a number or what it counts."""
    return any(q.start <= term.start < q.end or term.word == q.noun for q in numbers)


def _names(passage: Passage, terms: Sequence[Term]) -> list[frozenset[str]]:
    """The runs of words with capitals; the first word of a sentence is one only with another behind it."""
    capital = [term for term in terms if term.capital and term.stem]
    runs = [capital[:1]]
    for before, term in pairwise(capital):
        if passage.text[before.end : term.start] != " ":
            runs.append([])
        runs[-1].append(term)
    return [frozenset(t.stem for t in run) for run in runs if len(run) >= _FULL_NAME]


def _misplaced_number(mine: _Part, theirs: Sequence[tuple[Hit, _Part]], evidence: Evidence) -> Finding | None:
    claimed = evidence.claim.quantities[:MOST]
    for quantity in mine.numbers[:MOST]:
        holders = [part for _, part in theirs if any(matches(quantity, other) for other in part.numbers)]
        if quantity.weak or not holders:
            continue
        for hit, part in theirs:
            there = next((o for o in part.numbers if same_kind(quantity, o) and not o.weak), None)
            taken = any(matches(mine_too, o) for mine_too in claimed for o in part.numbers)
            if there and not taken and _speaks_rather(mine, part, holders):
                text = hit.passage.text
                return _finding(evidence, hit, (quantity.start, quantity.end), text[there.start : there.end])
    return None


def _misplaced_name(mine: _Part, theirs: Sequence[tuple[Hit, _Part]], evidence: Evidence) -> Finding | None:
    for name in mine.names:
        holders = [part for _, part in theirs if any(name <= other for other in part.names)]
        for hit, part in theirs if holders else ():
            others = [other for other in part.names if other.isdisjoint(evidence.claim.stems)]
            if others and part not in holders and _speaks_rather(mine, part, holders):
                return _finding(evidence, hit, (mine.start, mine.end), hit.passage.text[part.start : part.end])
    return None


def _speaks_rather(mine: _Part, part: _Part, holders: Sequence[_Part]) -> bool:
    """Whether ``part`` speaks of the claim's subject, and each that holds the value of nothing but something else."""
    return all(
        not mine.stems.isdisjoint(part.stems - holder.stems)
        and mine.stems.isdisjoint(holder.stems - part.stems)
        and bool(holder.stems - part.stems)
        for holder in holders
    )


def _finding(evidence: Evidence, hit: Hit, span: tuple[int, int], said: str) -> Finding:
    words = evidence.claim.text[span[0] : span[1]]
    return Finding(
        kind="relation",
        severity="warning",
        start=span[0],
        end=span[1],
        detail=f"source [{hit.source.id}] gives {said!r} where it speaks of this, and {words!r} to something else",
        remedy=f"Make sure that {words!r} belongs to what the sentence says it of: {hit.text[:200]}",
    )
