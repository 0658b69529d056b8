"""Finds names that stand in the place of another name of the source, and names that no source has.

A name that is merely absent is a suspicion. German nouns and the first word of a sentence have capitals anyway: they
count only where a source shows them to be names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from verification.evidence.evidence import MOST, Evidence, Finding, Hit
from verification.evidence.passages import joined
from verification.text.words import Term

_NEAR_ENOUGH = 0.5
_FEWEST = 2
_NEARLY_ALL = 0.8
_ARTICLES = frozenset({"the", "a", "an", "le", "la", "les", "un", "une", "el", "los", "las", "una"})


def name_findings(evidence: Evidence) -> Iterator[Finding]:
    """One finding for each run of capitalised words that nobody has, and one for a name that took another's place."""
    if not evidence.same_language or evidence.claim.language in {"de", "ja", "zh"}:
        return
    if exchanged := _exchanged(evidence):
        yield exchanged
    if all(any(stem in passage.stems for passage in evidence.passages) for stem in evidence.claim.capitals):
        return
    mine = evidence.claim.terms
    for first, last in islice(_absent(mine, evidence), MOST):
        yield _finding(evidence, mine, first, last)


def _absent(mine: Sequence[Term], evidence: Evidence) -> Iterator[tuple[int, int]]:
    """Runs of unknown names as first and last index."""
    opening = {_first_in(mine, start) for start, _ in evidence.claim.spans}
    claim = evidence.claim
    elsewhere = [(found.start, found.end) for found in claim.identifiers[:MOST]]
    elsewhere += [(found.start, found.end) for found in claim.moments[:MOST]]
    index = 0
    while index < len(mine):
        last = index
        while last < len(mine) and last not in opening and _is_unknown_name(mine[last], evidence):
            last += 1
        if last > index and not any(start <= mine[index].start < end for start, end in elsewhere):
            yield index, last - 1
        index = max(last, index + 1)


def _exchanged(evidence: Evidence) -> Finding | None:
    """A name of the sources in the place of another: of all else that the claim says, they speak of that other one."""
    hit = evidence.best
    if hit is None or evidence.claim.capitals <= hit.stems:
        return None
    names = evidence.claim.capitals - hit.stems
    if not names <= joined([cited.passage.capitals for cited in evidence.cited]) or any(
        names & passage.stems for passage in evidence.known
    ):
        return None
    rest = evidence.claim.stems - names
    if len(rest) < _FEWEST or len(rest & hit.stems) < _NEARLY_ALL * len(rest):
        return None
    mine = evidence.claim.terms
    first = next((index for index, term in enumerate(mine) if term.capital and term.stem in names), None)
    if first is None or any(
        found.start <= mine[first].start < found.end for found in evidence.claim.identifiers[:MOST]
    ):
        return None
    last = first
    while last + 1 < len(mine) and mine[last + 1].capital and mine[last + 1].stem in names:
        last += 1
    there = _in_place(hit, mine, first, last)
    others = [held for held in evidence.hits if names & held.stems and 2 * len(rest & held.stems) >= len(rest)]
    if not there or others:
        return None
    return _finding_instead(evidence, hit, (mine[first].start, mine[last].end), there)


def _finding_instead(evidence: Evidence, hit: Hit, span: tuple[int, int], there: str) -> Finding:
    words = evidence.claim.text[slice(*span)]
    return Finding(
        kind="name",
        severity="error",
        start=span[0],
        end=span[1],
        detail=f"source [{hit.source.id}] has {there} there, not {words}",
        remedy=f"Write {there} as source [{hit.source.id}] has it, or drop the sentence.",
        # The first word of a sentence or an item has a capital letter whether it is a name or not.
        sure=any(letter.isalnum() for letter in evidence.claim.text[: span[0]]),
    )


def _first_in(terms: Sequence[Term], start: int) -> int:
    return next((i for i, term in enumerate(terms) if term.start >= start), -1)


def _is_unknown_name(term: Term, evidence: Evidence) -> bool:
    if not term.capital or not term.stem:
        return False
    if any(term.stem in passage.stems or term.word in passage.stems for passage in evidence.passages):
        return False
    return term.word not in evidence.words and term.word not in _initials(evidence)


def _initials(evidence: Evidence) -> str:
    """The initials of the sources' capitalised words in order: LA is no new name where Los Angeles stands."""
    return " ".join(cited.passage.initials for cited in evidence.cited)


def _finding(evidence: Evidence, mine: Sequence[Term], first: int, last: int) -> Finding:
    start, end = mine[first].start, mine[last].end
    words = evidence.claim.text[start:end]
    for hit in evidence.hits[:2]:
        there = _in_place(hit, mine, first, last) if hit.share >= _NEAR_ENOUGH else ""
        if there:
            return _finding_instead(evidence, hit, (start, end), there)
    return Finding(
        kind="name",
        severity="warning",
        start=start,
        end=end,
        detail=f"{words} is not named in {evidence.sources_named()}",
        remedy=f"Make sure that {words} is what the source speaks of, or leave the name out.",
    )


def _in_place(hit: Hit, mine: Sequence[Term], first: int, last: int) -> str:
    """The other name between the neighbours that this one has in the claim; empty if there is none."""
    text, theirs = hit.text, hit.terms
    said = {term.stem for term in mine}
    before = mine[first - 1] if first else None
    after = mine[last + 1] if last + 1 < len(mine) else None
    for index, term in enumerate(theirs):
        if not term.capital or not term.stem or term.stem in said:
            continue
        stop = index
        while stop + 1 < len(theirs) and theirs[stop + 1].capital and theirs[stop + 1].stem not in said:
            stop += 1
        if (before or after) and _led_alike(theirs, index, mine, first) and _neighbour(theirs, stop + 1, after):
            return text[term.start : theirs[stop].end]
    return ""


def _led_alike(theirs: Sequence[Term], index: int, mine: Sequence[Term], first: int) -> bool:
    """Whether the same word stands before both; before an article as well: "by the" is not "of the"."""
    before = mine[first - 1] if first else None
    if before and before.word in _ARTICLES and first > 1 and not _neighbour(theirs, index - 2, mine[first - 2]):
        return False
    return _neighbour(theirs, index - 1, before)


def _neighbour(theirs: Sequence[Term], index: int, expected: Term | None) -> bool:
    if expected is None:
        return not 0 <= index < len(theirs)
    return 0 <= index < len(theirs) and theirs[index].word == expected.word
