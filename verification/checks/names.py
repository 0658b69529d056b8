"""Finds names that stand in the place of another name of the source.

German nouns have capitals anyway, and Chinese and Japanese words none: there no name is told from other words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from verification.evidence.evidence import MOST, Evidence, Finding, Hit
from verification.evidence.passages import joined
from verification.text.words import Term

_NEAR_ENOUGH = 0.5  # of the claim's words, where nobody has the name
_NEARLY_ALL = 0.8  # of all but the name, where the sources have it for somebody else: there chance is more likely
_FEWEST = 2
_ARTICLES = frozenset({"the", "a", "an", "le", "la", "les", "un", "une", "el", "los", "las", "una"})

Run = tuple[int, int]
"""The first and the last of several words of the claim that make one name."""


def name_findings(evidence: Evidence) -> Iterator[Finding]:
    """One finding for each name that nobody has, and for each that a sentence has another in the place of."""
    if not evidence.same_language or evidence.claim.language in {"de", "ja", "zh"} or evidence.best is None:
        return
    if evidence.claim.capitals <= evidence.best.stems:
        return
    mine = evidence.claim.terms
    for run in islice(_runs(evidence, evidence.best), MOST):
        stems = {term.stem for term in mine[run[0] : run[1] + 1]}
        absent = not any(stems & passage.stems for passage in evidence.passages)
        if absent and (_opens(evidence, run) or _is_value(evidence, mine[run[0]])):
            continue
        hits = [hit for hit in evidence.hits[:2] if hit.share >= _NEAR_ENOUGH] if absent else [evidence.best]
        instead = ((hit, there) for hit in hits if (there := _in_place(hit, mine, run)))
        if absent or _is_exchanged(evidence, evidence.best):
            found = next(instead, None)
            if found or absent:
                yield _finding(evidence, run, found)


def _runs(evidence: Evidence, hit: Hit) -> Iterator[Run]:
    """Neighbouring words with a capital that the sentence lacks; a name may have several."""
    claim = evidence.claim
    initials = " ".join(cited.passage.initials for cited in evidence.cited)  # LA is no new name beside Los Angeles
    first = -1
    for index, term in enumerate(claim.terms):
        is_name = term.capital and term.stem and term.stem not in hit.stems and term.word not in initials
        if is_name and first < 0:
            first = index
        is_last = index + 1 == len(claim.terms) or not claim.terms[index + 1].capital
        if first >= 0 and (is_last or not is_name):
            yield first, index if is_name else index - 1
            first = -1


def _is_value(evidence: Evidence, term: Term) -> bool:
    """Whether it stands in an identifier or a date: these have checks of their own."""
    spans = [(found.start, found.end) for found in evidence.claim.identifiers[:MOST]]
    spans += [(found.start, found.end) for found in evidence.claim.moments[:MOST]]
    return any(start <= term.start < end for start, end in spans)


def _opens(evidence: Evidence, run: Run) -> bool:
    """Whether a sentence begins with it: its first word has a capital letter whether it is a name or not."""
    start = evidence.claim.terms[run[0]].start
    opening = (
        next((t.start for t in evidence.claim.terms if t.start >= begin), -1) for begin, _ in evidence.claim.spans
    )
    return start in opening


def _is_exchanged(evidence: Evidence, hit: Hit) -> bool:
    """Whether the sources have the names, but speak with other ones of all else that the claim says."""
    names = evidence.claim.capitals - hit.stems
    known = joined([cited.passage.capitals for cited in evidence.cited])
    if not names <= known or any(names & passage.stems for passage in evidence.known):
        return False
    rest = evidence.claim.stems - names
    if len(rest) < _FEWEST or len(rest & hit.stems) < _NEARLY_ALL * len(rest):
        return False
    return not any(names & held.stems and 2 * len(rest & held.stems) >= len(rest) for held in evidence.hits)


def _finding(evidence: Evidence, run: Run, found: tuple[Hit, str] | None) -> Finding:
    start, end = evidence.claim.terms[run[0]].start, evidence.claim.terms[run[1]].end
    words = evidence.claim.text[start:end]
    if found is None:
        detail = f"{words} is not named in {evidence.sources_named()}"
        remedy = f"Make sure that {words} is what the source speaks of, or leave the name out."
        return Finding(kind="name", severity="warning", start=start, end=end, detail=detail, remedy=remedy)
    hit, there = found
    return Finding(
        kind="name",
        severity="error",
        start=start,
        end=end,
        detail=f"source [{hit.source.id}] has {there} there, not {words}",
        remedy=f"Write {there} as source [{hit.source.id}] has it, or drop the sentence.",
        sure=any(letter.isalnum() for letter in evidence.claim.text[:start]),  # else it may be no name at all
    )


def _in_place(hit: Hit, mine: Sequence[Term], run: Run) -> str:
    """The other name between the neighbours that this one has in the claim; empty if there is none."""
    first, last = run
    theirs = hit.terms
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
            return hit.text[term.start : theirs[stop].end]
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
