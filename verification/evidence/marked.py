"""The words of a source that bear out a claim, for a person to see for themselves. Pure; it judges nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from verification.evidence.passages import analyse
from verification.text.words import terms

_LONGEST: Final = 420  # characters of a passage that is shown: some five lines in a dialog
_CITED: Final = re.compile(r"(?<!\s)\s*\[\d{1,12}\]")

Span = tuple[int, int]


class Marked(NamedTuple):
    """A passage, and the spans of the words in it that the claim has too. Both empty where they share none."""

    text: str
    spans: tuple[Span, ...]


def without_citations(claim: str) -> str:
    """The claim as a person reads it."""
    return _CITED.sub("", claim).strip()


def borne_out_by(claim: str, source: str) -> Marked:
    """The sentence of the source that shares most content words with the claim, with neighbours that share more."""
    read = analyse(source)
    wanted = frozenset(term.stem for term in terms(without_citations(claim), read.language) if term.stem)
    shared = [stems & wanted for stems in read.sentence_stems]
    if not any(shared):
        return Marked("", ())
    best = max(range(len(shared)), key=lambda index: len(shared[index]))
    first, last = _grown(best, read.spans, shared)
    return _marked(source[read.spans[first][0] : read.spans[last][1]].strip(), wanted, read.language)


def _grown(best: int, spans: Sequence[Span], shared: Sequence[frozenset[str]]) -> tuple[int, int]:
    """From the best sentence to its neighbours, as long as they add words and the passage stays short."""
    first = last = best
    known = shared[best]
    for step in (1, -1):
        following = best + step
        while 0 <= following < len(spans) and shared[following] - known:
            start, end = min(first, following), max(last, following)
            if spans[end][1] - spans[start][0] > _LONGEST:
                break
            first, last, known = start, end, known | shared[following]
            following += step
    return first, last


def _marked(passage: str, wanted: frozenset[str], language: str | None) -> Marked:
    """The passage, cut to what fits around its first shared word; words that stand side by side are one span."""
    found = [term for term in terms(passage, language) if term.stem in wanted]
    start = max(0, found[0].start - _LONGEST // 4) if len(passage) > _LONGEST else 0
    text = passage[start : start + _LONGEST]
    spans: list[Span] = []
    for term in found:
        begin, end = term.start - start, term.end - start
        if end > len(text):
            break
        if spans and begin <= spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((begin, end))
    return Marked(text, tuple(spans))
