"""Whether a number or a name of a claim is given to what its source gives it to: 35 days are for daily backups.

Promises: a suspicion only, where the part of a sentence that speaks of the claim's subject has another number (or name)
and the part that has the claim's speaks of something else. Looks at a bounded number of sentences, parts and numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from verification.amounts import matches, same_kind
from verification.evidence import MOST, Evidence, Finding, Hit
from verification.numbers import Quantity
from verification.passages import Passage
from verification.words import Term

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
