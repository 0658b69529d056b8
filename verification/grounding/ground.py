"""Checks that what the answer claims stands in what it cites (``claim_supported``).

A claim is checked against all it cites together. Each finding says which source, and what stands there instead. Overlap
between different languages is never used.
"""

from __future__ import annotations

from dataclasses import replace

from verification.checks.code import code_findings
from verification.evidence.evidence import Finding
from verification.evidence.score import score
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


def _checked(grounds: Grounds, claim: Claim) -> tuple[Claim, list[Violation]]:
    """A claim as it was judged, and what was found against it; nothing may speak against a quotation."""
    cited = grounds.real(claim.cited)
    if not cited:
        return replace(claim, score=0.0), []
    if not claim.code and grounds.recites(claim, cited):
        return _quotation(claim), []
    evidence = grounds.evidence(grounds.read(claim), cited)
    findings = tuple(code_findings(evidence, grounds.texts, grounds.urls)) if claim.code else grounds.against(evidence)
    elsewhere: tuple[int, ...] = ()
    if not (findings or claim.code or evidence.same_language) and (
        elsewhere := grounds.bearing_out(evidence.claim, cited)
    ):
        findings = (evidence.nowhere("overlap", (0, len(claim.text)), "doubtful"),)
    refuted = any(finding.is_error(judged=grounds.judged) for finding in findings)
    claim = replace(claim, score=1.0 if claim.code else score(evidence, findings, refuted=refuted))
    if refuted:
        claim = replace(claim, supported="no", settled_by="rule")
    elif not findings and (evidence.has_lines if claim.code else grounds.quotes(evidence)):
        claim = _quotation(claim)
    if refuted and not claim.code:
        elsewhere = grounds.bearing_out(evidence.claim, cited)
    return claim, [_violation(grounds, claim, finding, elsewhere) for finding in findings]


def _quotation(claim: Claim) -> Claim:
    return replace(claim, supported="yes", settled_by="quotation")


def _violation(grounds: Grounds, claim: Claim, finding: Finding, elsewhere: tuple[int, ...]) -> Violation:
    """The finding as a violation; where another source bears the sentence out, the remedy names it."""
    remedy = f"Cite [{elsewhere[0]}] instead: that source bears this sentence out." if elsewhere else finding.remedy
    return Violation(
        rule="claim_supported",
        severity="error" if finding.is_error(judged=grounds.judged) else "warning",
        start=claim.start + finding.start,
        end=claim.start + finding.end,
        words=claim.text[finding.start : finding.end][:_LONGEST_WORDS],
        detail=finding.detail,
        remedy=remedy,
    )
