"""A claim that has nothing at all in common with what it cites: no word, no part of a word, no number.

Promises: an error only where claim and sources are surely in one language and the claim has several words of its own;
one word, one beginning of a word or one number in common is enough to leave it to the score, which may only suspect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from verification.evidence import Evidence, Finding
from verification.language import detect
from verification.passages import PREFIX

_FEWEST = 5
_PART = 4
_DIGITS = re.compile(r"\d+")
_UNPARTED = frozenset({None, "ja", "zh"})


def overlap_findings(evidence: Evidence) -> Iterator[Finding]:
    """One error where not a single word of the claim stands in any source it cites, else nothing."""
    claim = evidence.claim
    if evidence.recall or len(claim.stems) < _FEWEST or not _is_read_alike(evidence) or _is_linked(evidence):
        return
    start = len(claim.text) - len(claim.text.lstrip())
    yield Finding(
        kind="overlap",
        severity="error",
        start=start,
        end=len(claim.text.rstrip()),
        detail=f"not one word of this sentence stands in {evidence.sources_named()}",
        remedy="Drop the sentence, or cite the source that states it.",
    )


def _is_read_alike(evidence: Evidence) -> bool:
    """Whether claim and sources are surely in one language, and one that parts its words; the claim shows its own."""
    mine = detect(evidence.claim.text)
    return mine not in _UNPARTED and all(cited.passage.language == mine for cited in evidence.cited)


def _is_linked(evidence: Evidence) -> bool:
    """Whether a beginning of a word, a word within another ("building", "bodybuilding") or a number is in common."""
    claim = evidence.claim
    if any(stem[:PREFIX] in evidence.prefixes for stem in claim.stems):
        return True
    parts = [stem for stem in claim.stems if len(stem) >= _PART] + _DIGITS.findall(claim.text)
    return any(part in cited.passage.folded for cited in evidence.cited for part in parts)
