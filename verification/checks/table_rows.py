"""Finds a value that a claim gives to one row, column, labelled line or section, and its source to another one.

It speaks only where the claim names one of several alike things by the whole name that its source gives it, and the
claim's number, date or identifier stands with another one of them and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from verification.checks.rows import Group, Line, Span, groups
from verification.evidence.evidence import MOST, Cited, Evidence, Finding, Kind
from verification.evidence.passages import Passage
from verification.text.words import normalised, written
from verification.values.amounts import matches, same_kind
from verification.values.dates import agrees
from verification.values.numbers import Quantity

_EXCEPTS: Final = re.compile(
    r"\b(?:not?|never|neither|none|nobody|cannot|only|just|unless|except|without|but|instead|unlike|rather|while|whereas"
    r"|than(?! (?:\d|an? |one|two|three|four|five|six|seven|eight|nine|ten|twelve))"
    r"|nicht|nie|kein\w*|nur|außer|ohne|aber|als|statt|anstatt|sondern|während|pas|jamais|sauf|sans|mais|tandis|nunca|sin"
    r"|salvo|pero|sino|mientras|que|frente|tidak|kecuali|tanpa|tetapi|daripada)\b|n['’]t\b",
    re.IGNORECASE,
)


class _Mark(NamedTuple):
    """A number, date or identifier of the claim, and where its source has it."""

    kind: Kind
    start: int
    end: int
    quantity: Quantity | None
    places: tuple[int, ...]


def row_findings(evidence: Evidence) -> Iterator[Finding]:
    """The first thing of the claim that a source gives to another row, line or section than the claim does."""
    if not evidence.same_language:
        return
    found = [(cited, group) for cited in evidence.cited for group in groups(cited.passage)]
    if not found or _EXCEPTS.search(evidence.claim.text):
        return
    stems = [term.stem for term in evidence.claim.terms if term.stem]
    for cited, group in found:
        named = group.named(stems)
        if not named or len(named) == len(group.lines):
            continue
        finding = next(_misplaced(evidence, cited, group, named), None)
        if finding:
            yield finding
            return


def _misplaced(evidence: Evidence, cited: Cited, group: Group, named: Sequence[Line]) -> Iterator[Finding]:
    """A mark that stands with other lines of the group and nowhere else."""
    own = [span for line in named for span in line.spans]
    others = [span for line in group.lines for span in (*line.spans, line.label) if line not in named]
    for mark in _marks(evidence, cited):
        if not mark.places or any(_is_in(place, own) for place in mark.places):
            continue
        if not all(_is_in(place, others) for place in mark.places) or _is_of_a_named_row(evidence, cited, group, mark):
            continue
        there = _in_its_place(mark, cited.passage, group, named)
        if there:
            yield _finding(evidence, cited, mark, named[0], there)


def _is_of_a_named_row(evidence: Evidence, cited: Cited, group: Group, mark: _Mark) -> bool:
    """Whether the claim names the mark's row by another cell: "Ben has until 10 May"."""
    text = cited.passage.text
    rows = [line for line in group.lines if group.heads and any(_is_in(place, line.spans) for place in mark.places)]
    cells = [span for line in rows for span in line.spans if not any(_is_in(place, [span]) for place in mark.places)]
    names = [[word.casefold() for word in written(text[slice(*span)])] for span in cells]
    return any(name and not name[0].isdecimal() and evidence.claim.words.issuperset(name) for name in names)


def _is_in(place: int, spans: Iterable[Span]) -> bool:
    return any(start <= place < end for start, end in spans)


def _marks(evidence: Evidence, cited: Cited) -> Iterator[_Mark]:
    """The numbers, dates and identifiers of the claim that are known from this one source only."""
    claim, source = evidence.claim, cited.passage
    rest = [passage for passage in evidence.passages if passage is not source]
    for quantity in claim.quantities[:MOST]:
        if not quantity.weak and not any(matches(quantity, other) for passage in rest for other in passage.quantities):
            places = _counted(quantity, source.quantities)
            yield _Mark("number", quantity.start, quantity.end, quantity, places)
    for moment in claim.moments[:MOST]:
        if not any(agrees(moment, other) for passage in rest for other in passage.moments):
            places = tuple(other.start for other in source.moments if agrees(moment, other))
            yield _Mark("date", moment.start, moment.end, None, places)
    for identifier in claim.identifiers[:MOST]:
        name = normalised(identifier.text)
        if not any(name in passage.folded for passage in rest):
            places = tuple(each.start for each in source.identifiers if normalised(each.text) == name)
            yield _Mark("identifier", identifier.start, identifier.end, None, places)


def _counted(quantity: Quantity, others: Iterable[Quantity]) -> tuple[int, ...]:
    """Where the number stands in its own unit, or else in another one: 28 days are 4 weeks only where no days are."""
    found = [other for other in others if matches(quantity, other) and bool(other.unit) == bool(quantity.unit)]
    same = [other for other in found if other.unit == quantity.unit]
    return tuple(other.start for other in same or found)


def _in_its_place(mark: _Mark, source: Passage, group: Group, named: Sequence[Line]) -> str:
    """What the source says of the thing that the claim names: the cell of that column, or a number of the same kind."""
    if group.heads:
        columns = {
            index
            for line in group.lines
            for index, span in enumerate(line.spans)
            if any(_is_in(p, [span]) for p in mark.places)
        }
        return next((source.text[slice(*named[0].spans[index])].strip() for index in sorted(columns)), "")
    if mark.quantity is None:
        return named[0].name
    inside = [q for q in source.quantities if any(_is_in(q.start, line.spans) for line in named)]
    alike = next((q for q in inside if q.unit and same_kind(mark.quantity, q) and not q.weak), None)
    return source.text[alike.start : alike.end].strip() if alike else named[0].name


def _finding(evidence: Evidence, cited: Cited, mark: _Mark, line: Line, there: str) -> Finding:
    words = evidence.claim.text[mark.start : mark.end].strip()
    has = f"has {there} for {line.name}" if there != line.name else f"gives it to something else than {line.name}"
    return _against(cited, line, mark, f"{has}, not {words}")


def _against(cited: Cited, line: Line, mark: _Mark, says: str) -> Finding:
    return Finding(
        kind=mark.kind,
        severity="error",
        start=mark.start,
        end=mark.end,
        detail=f"source [{cited.id}] {says}",
        sure=False,  # which row a sentence is about is a matter of meaning: left to the judge where there is one
        remedy=f"Say of {line.name} only what source [{cited.id}] says of it, or drop the sentence.",
    )
