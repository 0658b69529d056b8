"""What a claim shifts against the sentences it rests on: a relation, a duty, a rank, a denial, the order of roles.

Promises: suspicions only, for the same can be said with other words; looks at claims that take most of their words from
a source and at a bounded number of sentences and words. Languages written without blanks are left to other checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from verification.evidence import Evidence, Finding, Hit, Kind
from verification.opposites import DENYING, NEGATIONS, ONLY, OPPOSITES, PREFIXES, RELATIONS
from verification.polarity import NO_MORE, UNTIL
from verification.words import Term, stem

_TAKEN = 0.6
_NEAR, _NEAREST = 0.5, 3
_MOST_WORDS = 80
_MOSTLY = 0.8
_REACH = 5
_LETTERS = 4
_REVERSED = 3
_BREAK = re.compile(r"[.,;:!?()\n]")
_PASSIVE = frozenset({"by", "von", "vom", "durch", "par", "por", "oleh"})
_EXCEPTING = frozenset({"unless", "except", "außer", "sauf", "salvo", "kecuali", "but"})


class _Governed(NamedTuple):
    """A word of relation and the stem it governs; ``start`` and ``end`` span both."""

    kind: str
    stem: str
    value: str
    start: int
    end: int


def shift_findings(evidence: Evidence) -> Iterator[Finding]:
    """At most one suspicion of each sort: a denial, a relation, an order of roles."""
    language = evidence.claim.language or "en"
    if not evidence.same_language or language not in RELATIONS or evidence.recall < _TAKEN:
        return
    near = [hit for hit in evidence.hits[:_NEAREST] if hit.share >= _NEAR]
    if not near:
        return
    yield from _denials(evidence, near[0], language)
    terms = evidence.claim.terms[:_MOST_WORDS]
    theirs = [hit.terms[:_MOST_WORDS] for hit in near]
    yield from _related(evidence, terms, near, theirs, language)
    yield from _exchanged(evidence, terms, near[0], theirs[0])


def _finding(hit: Hit, kind: Kind, span: tuple[int, int], detail: str) -> Finding:
    start, end = span
    return Finding(
        kind=kind,
        severity="warning",
        start=start,
        end=end,
        detail=detail,
        remedy=f"Say it as source [{hit.source.id}] does: {hit.text[:200]}",
    )


def _denials(evidence: Evidence, hit: Hit, language: str) -> Iterator[Finding]:
    """A word of negative force that no source has, while the nearest sentence denies and excepts nothing."""
    new = evidence.claim.words - evidence.words
    denying = DENYING[language] | NEGATIONS[language]
    found = next((word for word in sorted(new) if word in denying or _is_prefixed(word, evidence, language)), "")
    # "Not until" and "no more than" deny nothing.
    if not found or NO_MORE.search(evidence.claim.text) or not UNTIL.isdisjoint(evidence.claim.words):
        return
    theirs = hit.source.passage.words_of(hit.sentence)
    # Two turns say the same again: "not open" where the sentence has "closed".
    turned = any(not OPPOSITES[language][word].isdisjoint(theirs) for word in new & OPPOSITES[language].keys())
    if turned or not theirs.isdisjoint(denying | ONLY[language] | _EXCEPTING) or any(map(_is_short, theirs)):
        return
    term = next((term for term in evidence.claim.terms if term.word == found), None)
    if term:
        detail = f"{found!r} stands nowhere in {evidence.sources_named()}"
        yield _finding(hit, "polarity", (term.start, term.end), detail)


def _is_short(word: str) -> bool:
    return word.endswith(("n't", "n’t"))


def _is_prefixed(word: str, evidence: Evidence, language: str) -> bool:
    """Whether the word and one of the sources differ by a negative prefix: unsuitable and suitable."""
    if len(word) < _LETTERS or stem(word, language) in evidence.stems:
        return False
    known = evidence.words
    return any(
        (word.startswith(prefix) and len(word) - len(prefix) >= _LETTERS and word[len(prefix) :] in known)
        or prefix + word in known
        for prefix in PREFIXES[language]
    )


def _related(
    evidence: Evidence, mine: Sequence[Term], near: Sequence[Hit], terms: Sequence[Sequence[Term]], language: str
) -> Iterator[Finding]:
    """A word of relation where each near sentence that relates the same word has another of the kind."""
    table = RELATIONS[language]
    claimed = list(_governed(evidence.claim.text, mine, table))
    if not claimed:
        return
    theirs = [list(_governed(hit.source.passage.text, words, table)) for hit, words in zip(near, terms, strict=True)]
    for one in claimed:
        same = [(hit, other) for hit, found in zip(near, theirs, strict=True) for other in found if _is_of(one, other)]
        if same and same[0][0].share >= _TAKEN and not any(other.value == one.value for _, other in same):
            hit, other = same[0]
            said = hit.source.passage.text[other.start : other.end]
            words = evidence.claim.text[one.start : one.end]
            detail = f"source [{hit.source.id}] says {said!r} where the answer says {words!r}"
            yield _finding(hit, "relation", (one.start, one.end), detail)
            return


def _is_of(one: _Governed, other: _Governed) -> bool:
    return one.kind == other.kind and one.stem == other.stem


def _governed(text: str, terms: Sequence[Term], table: dict[str, tuple[tuple[str, str], ...]]) -> Iterator[_Governed]:
    """Each word of relation with the first word of the subject behind it, within the same part of the sentence."""
    for index, term in enumerate(terms):
        for kind, value in table.get(term.word, ()):
            end = term.end
            for following in terms[index + 1 : index + 1 + _REACH]:
                if _BREAK.search(text, end, following.start):
                    break
                end = following.end
                if following.stem:
                    yield _Governed(kind, following.stem, value, term.start, end)
                    break


def _exchanged(evidence: Evidence, mine: Sequence[Term], hit: Hit, theirs: Sequence[Term]) -> Iterator[Finding]:
    """Who does and who is done to exchanged: the words of the sentence and hardly another, three in opposite order."""
    words = [term for term in mine if term.stem]
    mostly = len(evidence.claim.stems) >= _MOSTLY * len(hit.sentence.stems)
    if len(words) < _REVERSED or not mostly or not evidence.claim.stems <= hit.sentence.stems:
        return
    if _is_passive(mine) != _is_passive(theirs):
        return
    places: dict[str, int] = {}
    for index, term in enumerate(theirs):
        places.setdefault(term.stem, index)
    order = [places.get(term.stem, -1) for term in words]
    if len(set(order)) == len(order) and _falls(order):
        detail = f"source [{hit.source.id}] has these words in another order: {hit.text[:200]}"
        yield _finding(hit, "relation", (words[0].start, words[-1].end), detail)


def _is_passive(terms: Iterable[Term]) -> bool:
    return any(term.word in _PASSIVE for term in terms)


def _falls(order: Sequence[int]) -> bool:
    """Whether three of the places, one after another, go backwards."""
    longest: list[int] = []
    for index, place in enumerate(order):
        longest.append(1 + max((longest[i] for i in range(index) if order[i] > place), default=0))
    return max(longest) >= _REVERSED
