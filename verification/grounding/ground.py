"""Checks that what the answer claims stands in what it cites (``claim_supported``).

A claim is checked against all it cites together. Each finding says which source, and what stands there instead. Overlap
between different languages is never used.
"""

from __future__ import annotations

from dataclasses import replace

from verification.checks.code import code_findings
from verification.evidence.evidence import Evidence, Finding
from verification.evidence.score import SUPPORTED, score
from verification.grounding.examine import Grounds
from verification.types import Claim, Violation

_LONGEST_WORDS = 200


def ground(grounds: Grounds, claims: tuple[Claim, ...]) -> tuple[tuple[Claim, ...], tuple[Violation, ...]]:
    """The claims settled as far as rules can settle them, and what was found against them.

    Spans of what is found are those of the claims. A claim that cites nothing that exists stays open: other rules fail
    it.
    """
    found = [_checked(grounds, claim) for claim in claims]
    return tuple(claim for claim, _ in found), tuple(violation for _, against in found for violation in against)


_Grounded = tuple[Claim, list[Violation]]
"""A claim as it was judged, and what was found against it."""


def _checked(grounds: Grounds, claim: Claim) -> _Grounded:
    cited = grounds.real(claim.cited)
    if not cited:
        return replace(claim, score=0.0), []
    if not claim.code and grounds.recites(claim, cited):
        return _quotation(claim), []
    evidence = grounds.evidence(grounds.read(claim), cited)
    if claim.code:
        findings = tuple(map(grounds.weighed, code_findings(evidence, grounds.texts, grounds.urls)))
        judged = _judged(claim, 1.0, findings, quoted=evidence.has_lines)
        return judged, [_violation(judged, finding, ()) for finding in findings]
    findings = grounds.against(evidence)
    return _grounded(grounds, _judged(claim, score(evidence, findings), findings), evidence, findings)


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
    doubtful = not findings and (not evidence.same_language or claim.score < SUPPORTED)
    elsewhere = grounds.bearing_out(evidence.claim, claim.cited) if refuted or doubtful else ()
    if doubtful and elsewhere:
        return [_told_elsewhere(claim, evidence, elsewhere)]
    return [_violation(claim, finding, elsewhere) for finding in findings]


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
