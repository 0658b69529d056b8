"""Does what the answer claims stand in what it cites (``claim_supported``)?

Promises: a claim is checked against all it cites together; only precise evidence (numbers, dates, quotes, identifiers,
URLs, a name or a negation in the place of another) is an error, word overlap is a suspicion and no more. Each finding
says which source and what stands there instead. Must never use overlap between different languages. Pure and linear.
"""

from __future__ import annotations

from dataclasses import replace

from verification.answer import Claim, Violation
from verification.code_check import code_findings
from verification.evidence import Evidence, Finding
from verification.examination import Grounds
from verification.score import SUPPORTED, score

_LONGEST_WORDS = 200


def ground(grounds: Grounds, claims: tuple[Claim, ...]) -> tuple[tuple[Claim, ...], tuple[Violation, ...]]:
    """The claims with ``supported`` and ``score`` filled in, and what was found against them.

    Spans of what is found are those of the claims. A claim that cites nothing that exists is "suspicious": other rules
    fail it.
    """
    judged: list[Claim] = []
    violations: list[Violation] = []
    for claim in claims:
        cited = grounds.real(claim.cited)
        if not cited:
            judged.append(replace(claim, supported="suspicious", score=0.0))
            continue
        if grounds.recites(claim, cited):
            judged.append(claim)  # as it came: supported, with the highest score
            continue
        evidence = grounds.evidence(grounds.read(claim), cited)
        if claim.code:
            findings = tuple(code_findings(evidence, grounds.texts, grounds.urls))
            judged.append(_judged(claim, 1.0, findings))
            violations.extend(_violation(judged[-1], finding, ()) for finding in findings)
            continue
        findings = tuple(grounds.against(evidence))
        opinion = _judged(claim, score(evidence, findings), findings)
        against = _violations(grounds, opinion, evidence, findings)
        # Words of another language say nothing, but another source that bears them out does.
        judged.append(replace(opinion, supported="suspicious") if against and opinion.supported == "yes" else opinion)
        violations.extend(against)
    return tuple(judged), tuple(violations)


def _judged(claim: Claim, value: float, findings: tuple[Finding, ...]) -> Claim:
    if any(finding.severity == "error" for finding in findings):
        return replace(claim, supported="no", score=value)
    if findings or value < SUPPORTED:
        return replace(claim, supported="suspicious", score=value)
    return replace(claim, supported="yes", score=value)


def _violations(grounds: Grounds, claim: Claim, evidence: Evidence, findings: tuple[Finding, ...]) -> list[Violation]:
    """The findings as violations; where another source bears the sentence out, the remedy names it."""
    refuted = any(finding.severity == "error" for finding in findings)
    elsewhere = grounds.bearing_out(evidence.claim, claim.cited) if refuted else ()
    found = [_violation(claim, finding, elsewhere) for finding in findings]
    if findings:
        return found
    # In another language nothing can be said of the words, unless another source bears them out.
    if not evidence.same_language or claim.score < SUPPORTED:
        elsewhere = grounds.bearing_out(evidence.claim, claim.cited)
        return [_far_off(claim, evidence, elsewhere)] if elsewhere or evidence.same_language else []
    elsewhere = grounds.bearing_out_better(evidence, claim.score)
    return [_far_off(claim, evidence, elsewhere)] if elsewhere else []


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


def _far_off(claim: Claim, evidence: Evidence, elsewhere: tuple[int, ...]) -> Violation:
    """A claim whose words hardly stand in its sources, or far better in another: only that other is evidence."""
    remedy = f"Keep closer to what {evidence.sources_named()} says, or cite the source that states it."
    if elsewhere:
        remedy = f"Cite [{elsewhere[0]}] instead: that source bears this sentence out."
    return Violation(
        rule="claim_supported",
        severity="error" if elsewhere and evidence.same_language else "warning",
        start=claim.start,
        end=claim.end,
        words=claim.text[:_LONGEST_WORDS],
        detail=f"little of this sentence stands in {evidence.sources_named()}",
        remedy=remedy,
    )
