"""What a claim shifts against the sentences it rests on: a relation, a duty, a rank, a denial, the order of roles.

Promises: suspicions only, for the same can be said with other words; looks at claims that take most of their words from
a source and at a bounded number of sentences and words. Languages written without blanks are left to other checks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from verification.checks.negation import NO_MORE, UNTIL
from verification.evidence.antonyms import DENIALS, HAVING_OPPOSITES, ONLY, OPPOSITES, PREFIXES, RELATING, RELATIONS
from verification.evidence.evidence import Evidence, Finding, Hit, Kind
from verification.text.words import Term, stem, stem_list

_TAKEN = 0.6
_NEAR, _NEAREST = 0.5, 3
_MOST_WORDS = 80
_MOSTLY = 0.8
_REACH = 5
_LETTERS = 4
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
    if _may_relate(evidence.claim.words, near, language):
        yield from _related(evidence, near, RELATIONS[language])
    if _is_rearranged(evidence.claim.stems, near[0].stems):
        yield from _exchanged(evidence, near[0])


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
    if not new:
        return
    denying = DENIALS[language]
    found = next((word for word in sorted(new) if word in denying or _is_prefixed(word, evidence, language)), "")
    # "Not until" and "no more than" deny nothing.
    if not found or NO_MORE.search(evidence.claim.text) or not UNTIL.isdisjoint(evidence.claim.words):
        return
    theirs = hit.words
    # Two turns say the same again: "not open" where the sentence has "closed".
    turned = any(not OPPOSITES[language][word].isdisjoint(theirs) for word in new & HAVING_OPPOSITES[language])
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
    if len(word) < _LETTERS or word in _EXCEPTING or stem(word, language) in evidence.stems:
        return False
    known = evidence.words - _EXCEPTING  # "unless" is not the contrary of "less"
    return any(
        (word.startswith(prefix) and len(word) - len(prefix) >= _LETTERS and word[len(prefix) :] in known)
        or prefix + word in known
        for prefix in PREFIXES[language]
    )


_Table = dict[str, tuple[tuple[str, str], ...]]
"""For each word of relation its kinds and what it says of each."""


def _may_relate(words: frozenset[str], near: Sequence[Hit], language: str) -> bool:
    """Whether a near sentence has a word of relation that says another thing than one of these: most have not."""
    table, relating = RELATIONS[language], RELATING[language]
    mine = {relation for word in words & relating for relation in table[word]}
    if not mine:
        return False
    theirs = {relation for hit in near for word in hit.words & relating for relation in table[word]}
    return any(kind == other and value != said for kind, value in mine for other, said in theirs)


def _related(evidence: Evidence, near: Sequence[Hit], table: _Table) -> Iterator[Finding]:
    """A word of relation where each near sentence that relates the same word has another of the kind."""
    claimed = list(_governed(evidence.claim.text, evidence.claim.terms[:_MOST_WORDS], table))
    governed = {one.stem for one in claimed}
    near = [hit for hit in near if not governed.isdisjoint(hit.stems)]
    theirs = [list(_governed(hit.text, hit.terms[:_MOST_WORDS], table)) for hit in near]
    for one in claimed:
        same = [(hit, other) for hit, found in zip(near, theirs, strict=True) for other in found if _is_of(one, other)]
        if same and same[0][0].share >= _TAKEN and not any(other.value == one.value for _, other in same):
            hit, other = same[0]
            said = hit.text[other.start : other.end]
            words = evidence.claim.text[one.start : one.end]
            detail = f"source [{hit.source.id}] says {said!r} where the answer says {words!r}"
            yield _finding(hit, "relation", (one.start, one.end), detail)
            return


def _is_of(one: _Governed, other: _Governed) -> bool:
    return one.kind == other.kind and one.stem == other.stem


def _governed(text: str, terms: Sequence[Term], table: _Table) -> Iterator[_Governed]:
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


def _is_rearranged(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    """Whether a claim has the words of a sentence and hardly leaves one out."""
    return len(mine) >= _MOSTLY * len(theirs) and mine <= theirs


def _exchanged(evidence: Evidence, hit: Hit) -> Iterator[Finding]:
    """Who does and who is done to exchanged: of the same words three stand in opposite order."""
    if _PASSIVE.isdisjoint(evidence.claim.words) != _PASSIVE.isdisjoint(hit.words):
        return
    mine = stem_list(chain.from_iterable(evidence.claim.sentence_words), evidence.claim.language)[:_MOST_WORDS]
    theirs = stem_list(hit.source.passage.sentence_words[hit.place], hit.source.passage.language)[:_MOST_WORDS]
    # A word that stands there twice ("the incident lead", "the security lead") has no one place.
    counts, counted = Counter(mine), Counter(theirs)
    places = {found: index for index, found in enumerate(theirs)}
    order = [places.get(found, -1) for found in mine if counts[found] == 1 and counted[found] <= 1]
    if len(set(order)) == len(order) and _falls(order):
        words = [term for term in evidence.claim.terms if term.stem][:_MOST_WORDS]
        detail = f"source [{hit.source.id}] has these words in another order: {hit.text[:200]}"
        yield _finding(hit, "relation", (words[0].start, words[-1].end), detail)


def _falls(order: Sequence[int]) -> bool:
    """Whether three of the places, one after another, go backwards."""
    highest = list(accumulate(order, max))
    lowest = list(accumulate(reversed(order), min))[::-1]
    return any(above > place > below for above, place, below in zip(highest, order[1:], lowest[2:], strict=False))
