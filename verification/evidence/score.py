"""How likely a claim is borne out by what it cites, as one number: word overlap, names, what was found against it.

It ranks and measures; no claim fails for its score. Words of another language do not enter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from verification.evidence.evidence import Evidence, Finding
from verification.evidence.passages import PREFIX, WINDOW, Passage, prefixes

SUPPORTED = 0.43
"""The score from which a claim counts as supported when nothing better was fitted (balanced accuracy, no judge)."""

_ACROSS_LANGUAGES = 0.75
_LIKE = 0.8
_CLOSELY = 2
_CLOSE_READING, _SHORT_SOURCE = 0.35, 20
_PER_NAME, _MOST_NAMES = 0.15, 2
_REFUTED, _TURNED, _DOUBTED, _SPEAKS_OF_ITSELF, _ASKS = 0.15, 0.4, 0.8, 0.5, 0.4
_SELF = "i i'm i've i'd i'll my me mine myself ich mir mich mein meine je j'ai moi mon ma mes yo mi mis saya aku"
_FIRST_PERSON = frozenset(_SELF.split())


def score(evidence: Evidence, findings: Iterable[Finding]) -> float:
    """The score of a claim, given what was found against it."""
    value = _overlap(evidence) * _room(evidence) if evidence.same_language else _ACROSS_LANGUAGES
    found = tuple(findings)
    if any(finding.severity == "error" for finding in found):
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
    """The share of the claim's words in the sources: of all of it, of its worst sentence, and within one window."""
    stems = evidence.claim.stems
    if not stems:
        return 1.0
    known = evidence.stems
    whole = worst = 1.0
    if not stems <= known:
        whole = _share(stems, known, evidence.prefixes)
        worst = min([_share(held, known, evidence.prefixes) for held in evidence.claim.sentence_stems if held])
    absent = sum(1 for name in evidence.claim.capitals if name not in known and name[:PREFIX] not in evidence.prefixes)
    return (whole + 2 * worst + _window(evidence)) / 4 - _PER_NAME * min(_MOST_NAMES, absent)


def _share(stems: frozenset[str], known: frozenset[str], alike: frozenset[str]) -> float:
    """The share of the stems that are known; one that begins like a known one counts nearly as much."""
    shared = stems & known
    if len(shared) == len(stems):
        return 1.0
    begun = sum(1 for stem in stems - shared if stem[:PREFIX] in alike)
    return (len(shared) + _LIKE * begun) / len(stems)


def _window(evidence: Evidence) -> float:
    """The best share that a few neighbouring sentences of one source hold."""
    stems = evidence.claim.stems
    best = 0.0
    if any(len(stems) in held.values() for held in evidence.held):
        return 1.0
    for cited, held in zip(evidence.cited, evidence.held, strict=True):
        for index in _closest(cited.passage, stems, held):
            window = cited.passage.window(index)
            best = max(best, _share(stems, window, prefixes(window) if len(stems - window) else _NOTHING))
    return best


_NOTHING: frozenset[str] = frozenset()


def _closest(passage: Passage, stems: frozenset[str], held: dict[int, int]) -> list[int]:
    """Where the windows begin that hold most of the stems; those before it in the text first."""
    # No window holds more than its sentences do one by one; those that hold none may hold words that begin alike.
    most = dict.fromkeys(range(min(_CLOSELY, len(passage.spans))), 0)
    for place, count in held.items():
        for index in range(max(0, place - WINDOW + 1), place + 1):
            most[index] = most.get(index, 0) + count
    found: list[tuple[int, int]] = []
    for index in sorted(most, key=lambda index: (-most[index], index)):
        if len(found) >= _CLOSELY and sorted(found)[_CLOSELY - 1][0] < -most[index]:
            break
        found.append((-len(stems & passage.window(index)), index))
    return [index for _, index in sorted(found)[:_CLOSELY]]
