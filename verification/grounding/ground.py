"""Checks that what the answer claims stands in what it cites (``claim_supported``).

A claim is checked against all it cites together. Each finding says which source, and what stands there instead. Overlap
between different languages is never used.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from verification.checks.code import code_findings
from verification.evidence.evidence import Evidence, Finding
from verification.evidence.score import SUPPORTED, score
from verification.grounding.examine import Grounds
from verification.types import Claim, Violation

_LONGEST_WORDS = 200
_AT_ONCE = 64


def ground(grounds: Grounds, claims: tuple[Claim, ...]) -> tuple[tuple[Claim, ...], tuple[Violation, ...]]:
    """The claims settled as far as rules can settle them, and what was found against them.

    Spans of what is found are those of the claims. A claim that cites nothing that exists stays open: other rules fail
    it.
    """
    found: list[_Grounded] = []
    for start in range(0, len(claims), _AT_ONCE):
        found += _together(grounds, claims[start : start + _AT_ONCE])
    return tuple(claim for claim, _ in found), tuple(violation for _, against in found for violation in against)


_Grounded = tuple[Claim, list[Violation]]
"""A claim as it was judged, and what was found against it."""


def _together(grounds: Grounds, claims: tuple[Claim, ...]) -> list[_Grounded]:
    """Some claims, each step done for all of them before the next one: what has just run is quick to run again."""
    cited = [grounds.real(claim.cited) for claim in claims]
    told = [_told_at_once(grounds, claim, numbers) for claim, numbers in zip(claims, cited, strict=True)]
    left = [(claim, numbers) for claim, numbers, known in zip(claims, cited, told, strict=True) if known is None]
    passages = [grounds.read(claim) for claim, _ in left]
    evidence = [grounds.evidence(passage, numbers) for passage, (_, numbers) in zip(passages, left, strict=True)]
    findings = grounds.against(evidence)
    scores = [score(*each) for each in zip(evidence, findings, strict=True)]
    opinions = [_judged(claim, value, found) for (claim, _), value, found in zip(left, scores, findings, strict=True)]
    looked_at = map(partial(_grounded, grounds), opinions, evidence, findings)
    return [known or next(looked_at) for known in told]


def _told_at_once(grounds: Grounds, claim: Claim, cited: tuple[int, ...]) -> _Grounded | None:
    """A claim without sources, code, or one that is recited; None where the words must be looked at."""
    if not cited:
        return replace(claim, score=0.0), []
    if claim.code:
        evidence = grounds.evidence(grounds.read(claim), cited)
        findings = tuple(map(grounds.weighed, code_findings(evidence, grounds.texts, grounds.urls)))
        judged = _judged(claim, 1.0, findings, quoted=evidence.has_lines)
        return judged, [_violation(judged, finding, ()) for finding in findings]
    return (_quotation(claim), []) if grounds.recites(claim, cited) else None


def _grounded(grounds: Grounds, opinion: Claim, evidence: Evidence, findings: tuple[Finding, ...]) -> _Grounded:
    """What was found as violations; nothing may speak against a quotation."""
    against = _violations(grounds, opinion, evidence, findings)
    if any(each.severity == "error" for each in against):
        return replace(opinion, supported="no", settled_by="rule"), against
    return (opinion if against or not grounds.quotes(evidence) else _quotation(opinion)), against


def _quotation(claim: Claim) -> Claim:
    return replace(claim, supported="yes", settled_by="quotation")


def _judged(claim: Claim, value: float, findings: tuple[Finding, ...], *, quoted: bool = False) -> Claim:
    if any(finding.severity == "error" for finding in findings):
        return replace(claim, supported="no", settled_by="rule", score=value)
    return replace(_quotation(claim) if quoted and not findings else claim, score=value)


def _violations(grounds: Grounds, claim: Claim, evidence: Evidence, findings: tuple[Finding, ...]) -> list[Violation]:
    """The findings as violations; where another source bears the sentence out, the remedy names it."""
    refuted = any(finding.severity == "error" for finding in findings)
    elsewhere = grounds.bearing_out(evidence.claim, claim.cited) if refuted else ()
    found = [_violation(claim, finding, elsewhere) for finding in findings]
    if findings:
        return found
    if not evidence.same_language or claim.score < SUPPORTED:
        elsewhere = grounds.bearing_out(evidence.claim, claim.cited)
    else:
        elsewhere = grounds.bearing_out_better(evidence, claim.score)
    return [_told_elsewhere(claim, evidence, elsewhere)] if elsewhere else []


def _violation(claim: Claim, finding: Finding, elsewhere: tuple[int, ...]) -> Violation:
    remedy = finding.remedy
    if elsewhere:
        remedy = f"Cite [{elsewhere[0]}] instead: that source bears this sentence out."
    return Violation(
        rule="claim_supported",
        severity=finding.severity,
        start=claim.start + finding.start,
        end=claim.start + finding.end,
        words=claim.text[finding.start : finding.end][:_LONGEST_WORDS],
        detail=finding.detail,
        remedy=remedy,
    )


def _told_elsewhere(claim: Claim, evidence: Evidence, elsewhere: tuple[int, ...]) -> Violation:
    """A claim whose words stand in another source than the one it cites."""
    return Violation(
        rule="claim_supported",
        severity="warning",
        start=claim.start,
        end=claim.end,
        words=claim.text[:_LONGEST_WORDS],
        detail=f"little of this sentence stands in {evidence.sources_named()}",
        remedy=f"Cite [{elsewhere[0]}] instead: that source bears this sentence out.",
    )
