"""How likely a claim is borne out by what it cites, as one number: word overlap, names, what was found against it.

It ranks and measures; no claim fails for its score. Words of another language do not enter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from verification.evidence.evidence import Evidence, Finding, Hit
from verification.evidence.passages import PREFIX, joined, prefixes

SUPPORTED = 0.43
"""The score from which a claim counts as supported when nothing better was fitted (balanced accuracy, no judge)."""

_ACROSS_LANGUAGES = 0.75  # words tell nothing there: neither supported for sure nor in doubt
_LIKE = 0.8  # what a word counts that only begins like one of the source
_WINDOW = 3  # sentences that stand in one place
_CLOSELY = 2  # sentences round which the words are looked for in one place
_CLOSE_READING, _SHORT_SOURCE = 0.35, 20
_PER_NAME, _MOST_NAMES = 0.15, 2
_REFUTED, _TURNED, _DOUBTED, _SPEAKS_OF_ITSELF, _ASKS = 0.15, 0.4, 0.8, 0.5, 0.4
_SELF = "i i'm i've i'd i'll my me mine myself ich mir mich mein meine je j'ai moi mon ma mes yo mi mis saya aku"
_FIRST_PERSON = frozenset(_SELF.split())


def score(evidence: Evidence, findings: Iterable[Finding], *, refuted: bool = False) -> float:
    """The score of a claim, given what was found against it; ``refuted``: with certainty."""
    value = _overlap(evidence) * _room(evidence) if evidence.same_language else _ACROSS_LANGUAGES
    found = tuple(findings)
    if refuted:
        value *= _REFUTED
    if any(finding.kind == "polarity" for finding in found):
        value *= _TURNED
    if any(finding.kind in {"number", "date", "identifier"} for finding in found):
        value *= _DOUBTED
    if _speaks_of_itself(evidence):
        value *= _SPEAKS_OF_ITSELF
    if "?" in evidence.claim.text:
        value *= _ASKS
    return round(max(0.0, value), 3)


def _room(evidence: Evidence) -> float:
    """Less than 1 for a short source: what a claim adds to a sentence or two stands nowhere else in it."""
    return 1 - _CLOSE_READING * math.exp(-len(evidence.stems) / _SHORT_SOURCE)


def _speaks_of_itself(evidence: Evidence) -> bool:
    """True if the claim says "I" and no source does: what the writer thinks stands in no document."""
    return bool(evidence.claim.words & _FIRST_PERSON) and not evidence.words & _FIRST_PERSON


def _overlap(evidence: Evidence) -> float:
    """The share of the claim's words in the sources: of all of it, of its worst sentence, and of all in one place."""
    stems = evidence.claim.stems
    if not stems:
        return 1.0
    known = evidence.stems
    whole = worst = 1.0
    if not stems <= known:
        whole = _share(stems, known, evidence.prefixes)
        worst = min([_share(held, known, evidence.prefixes) for held in evidence.claim.sentence_stems if held])
    near = [window for hit in evidence.hits[:_CLOSELY] for window in _round(hit)]
    nearest = max([_share(stems, window, prefixes(window)) for window in near], default=0.0)
    absent = sum(1 for name in evidence.claim.capitals if name not in known and name[:PREFIX] not in evidence.prefixes)
    return (whole + 2 * worst + nearest) / 4 - _PER_NAME * min(_MOST_NAMES, absent)


def _share(stems: frozenset[str], known: frozenset[str], alike: frozenset[str]) -> float:
    """The share of the stems that are known; one that begins like a known one counts nearly as much."""
    shared = stems & known
    if len(shared) == len(stems):
        return 1.0
    begun = sum(1 for stem in stems - shared if stem[:PREFIX] in alike)
    return (len(shared) + _LIKE * begun) / len(stems)


def _round(hit: Hit) -> Iterator[frozenset[str]]:
    """The stems of each few neighbouring sentences that the sentence is one of."""
    stems = hit.source.passage.sentence_stems
    first = max(0, hit.place - _WINDOW + 1)
    return (joined(stems[index : index + _WINDOW]) for index in range(first, hit.place + 1))
