"""What is to come, told as done: "was switched off" where the page says "will be switched off".

Promises: a suspicion only, for the day may have come since; and only where the same verb stands in both, in the claim
as done and in the nearest sentence as still to come or as possible. English only. Bounded work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from verification.evidence.evidence import Evidence, Finding
from verification.text.words import stem

_DONE: Final = re.compile(
    r"\b(?:was|were|(?:has|have|had)(?: already| now| since)? been|(?:has|have) already) (?:\w+ly )?(?P<verb>\w{3,})",
    re.IGNORECASE,
)
_TO_COME: Final = re.compile(
    r"\b(?:(?:will|shall|may|might|could|going to|yet to)(?: be)?|to be|(?:has|have)(?: not|n['’]t) been"
    r"|not yet(?: been)?) (?:\w+ly )?(?P<verb>\w{3,})",
    re.IGNORECASE,
)
_OPEN: Final = re.compile(
    r"\b(?:will|shall|may|might|could|would|to be|not|never|yet|plan\w*|schedul\w*|expect\w*|propos\w*|suppos\w*|due|if"
    r"|when|unless)\b|n['’]t\b",
    re.IGNORECASE,
)
_TELLING: Final = frozenset({"was", "were", "been", "already"})
_NEAR: Final = 0.6


def tense_findings(evidence: Evidence) -> Iterator[Finding]:
    """The first verb of the claim that its source has as still to come."""
    claim, hit = evidence.claim, evidence.best
    if _TELLING.isdisjoint(claim.words):
        return
    if claim.language not in {"en", None} or hit is None or hit.share < _NEAR:
        return
    done = _DONE.search(claim.text)
    if done is None or _OPEN.search(claim.text):
        return
    to_come = {stem(match["verb"].casefold(), "en") for match in _TO_COME.finditer(hit.text)} - {""}
    said = {stem(match["verb"].casefold(), "en") for match in _DONE.finditer(hit.text)}
    if stem(done["verb"].casefold(), "en") not in to_come - said:
        return
    yield Finding(
        kind="relation",
        severity="warning",
        start=done.start(),
        end=done.end(),
        detail=f"source [{hit.source.id}] has this as still to come, or as possible: {hit.text[:200]}",
        remedy=f"Say it in the tense of source [{hit.source.id}].",
    )
