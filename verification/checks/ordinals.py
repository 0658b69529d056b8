"""The rank that a claim gives something: the 3rd Earl where the source has the 7th, a first album for a second.

Promises: an error only where a sentence near the claim ranks the same thing otherwise and no source, nor the question,
has the claim's rank or number anywhere. A rank says nothing by itself ("first, stop it"). Bounded work per claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from verification.evidence.evidence import Evidence, Finding, Hit
from verification.evidence.passages import Passage
from verification.text.words import Term
from verification.values.number_words import COUNTING, ONES, WEAK_WORDS

_NEAREST = 3
_MOST = 20
_REACH = 3
_DIGITS = re.compile(r"(\d{1,2})(?:st|nd|rd|th)")
_BREAK = re.compile(r"[.,;:!?()\n]")
_RANKS = {word: value for word, value in WEAK_WORDS.items() if word not in COUNTING | ONES | {"eins"}}
_RANK_WORDS = frozenset(_RANKS)
_IN_DIGITS = re.compile(r"\d(?:st|nd|rd|th)\b", re.IGNORECASE)


class _Ranked(NamedTuple):
    """A rank, the stems of the words behind it, and the span of both."""

    value: float
    stems: frozenset[str]
    start: int
    end: int


def ordinal_findings(evidence: Evidence) -> Iterator[Finding]:
    """One finding for each rank in whose place a near sentence has another."""
    claim = evidence.claim
    ranks = not _RANK_WORDS.isdisjoint(claim.words) or _IN_DIGITS.search(claim.text)
    if not ranks or not evidence.same_language:
        return
    near = [(hit, list(_ranked(hit.text, hit.terms))) for hit in evidence.hits[:_NEAREST]]
    compared = {quantity.start for quantity in claim.quantities if not quantity.weak}  # "17th century", "3rd"
    for mine in list(_ranked(claim.text, claim.terms))[:_MOST]:
        if mine.start in compared:
            continue
        other = next(((hit, theirs) for hit, ranks in near for theirs in ranks if mine.stems & theirs.stems), None)
        if other and not any(_has(passage, mine.value) for passage in evidence.passages):
            yield _finding(evidence, mine, *other)


def _ranked(text: str, terms: Sequence[Term]) -> Iterator[_Ranked]:
    """Each rank with the first words of a subject behind it, within the same part of the sentence."""
    for index, term in enumerate(terms):
        digits = _DIGITS.fullmatch(term.word)
        value = float(digits[1]) if digits else _RANKS.get(term.word)
        if value is None:
            continue
        end, stems = term.end, set[str]()
        for following in terms[index + 1 : index + 1 + _REACH]:
            if _BREAK.search(text, end, following.start) or (stems and not following.stem):
                break
            end = following.end
            stems |= {following.stem} - {""}
        if stems:
            yield _Ranked(value, frozenset(stems), term.start, end)


def _has(passage: Passage, value: float) -> bool:
    """Whether the passage has this rank, or this number, anywhere; the rank of "mobile-first" is no number."""
    if any(value in quantity.readings for quantity in passage.quantities):
        return True
    return any(ranked.value == value for ranked in _ranked(passage.text, passage.terms))


def _finding(evidence: Evidence, mine: _Ranked, hit: Hit, theirs: _Ranked) -> Finding:
    said = hit.text[theirs.start : theirs.end]
    words = evidence.claim.text[mine.start : mine.end]
    return Finding(
        kind="number",
        severity="error",
        start=mine.start,
        end=mine.end,
        detail=f"source [{hit.source.id}] says {said!r}, not {words!r}",
        remedy=f"Say {said!r} as source [{hit.source.id}] has it, or drop the sentence.",
    )
