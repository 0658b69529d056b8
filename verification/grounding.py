"""Does what the answer claims stand in what it cites (``claim_supported``)?

Promises: a claim is checked against all it cites together; only precise evidence (numbers, dates, quotes, identifiers,
URLs, a name or a negation in the place of another) is an error, word overlap is a suspicion and no more. Each finding
says which source and what stands there instead. Must never use overlap between different languages. Pure and linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from verification.answer import Claim, Draft, Source, Violation
from verification.date_check import date_findings
from verification.evidence import Cited, Evidence, Finding
from verification.identifier_check import identifier_findings, known_urls
from verification.number_check import number_findings
from verification.passages import Passage, analyse
from verification.quotes import quote_findings

_SUSPICIOUS = 0.5
_LONGEST_WORDS = 200


def ground(draft: Draft, text: str, claims: tuple[Claim, ...]) -> tuple[tuple[Claim, ...], tuple[Violation, ...]]:
    """The claims with ``supported`` and ``score`` filled in, and what was found against them.

    ``claims`` carry spans of ``text``. A claim that cites nothing that exists is "suspicious": other rules fail it.
    """
    sources = {source.id: source for source in draft.sources}
    known = _known(draft)
    judged: list[Claim] = []
    violations: list[Violation] = []
    for claim in claims:
        evidence = _evidence(claim, sources, known)
        if evidence is None:
            judged.append(replace(claim, supported="suspicious", score=0.0))
            continue
        findings = tuple(examine(evidence, draft))
        judged.append(_judged(claim, evidence, findings))
        violations.extend(_violation(claim, finding, text) for finding in findings)
    return tuple(judged), tuple(violations)


def _known(draft: Draft) -> tuple[Passage, ...]:
    return tuple(analyse(text) for text in (draft.question, draft.known_text) if text.strip())


def source_text(source: Source) -> str:
    """All of a source that the model saw and may state: its title and its text."""
    return f"{source.title}\n{source.text}" if source.title else source.text


def _evidence(claim: Claim, sources: Mapping[int, Source], known: tuple[Passage, ...]) -> Evidence | None:
    cited = tuple(
        Cited(id=number, passage=analyse(source_text(sources[number]))) for number in claim.cited if number in sources
    )
    return Evidence(claim=analyse(claim.text), cited=cited, known=known) if cited else None


def examine(evidence: Evidence, draft: Draft) -> Iterator[Finding]:
    """Everything that speaks against the claim, precise evidence first."""
    yield from number_findings(evidence)
    yield from date_findings(evidence)
    yield from quote_findings(evidence)
    yield from identifier_findings(evidence, known_urls(source.url for source in draft.sources))


def _judged(claim: Claim, evidence: Evidence, findings: tuple[Finding, ...]) -> Claim:
    score = evidence.recall if evidence.same_language else 0.75
    if any(finding.severity == "error" for finding in findings):
        return replace(claim, supported="no", score=round(min(score, 0.2), 3))
    if findings or score < _SUSPICIOUS:
        return replace(claim, supported="suspicious", score=round(score, 3))
    return replace(claim, supported="yes", score=round(score, 3))


def _violation(claim: Claim, finding: Finding, text: str) -> Violation:
    start, end = claim.start + finding.start, claim.start + finding.end
    return Violation(
        rule="claim_supported",
        severity=finding.severity,
        start=start,
        end=end,
        words=text[start : min(end, start + _LONGEST_WORDS)],
        detail=finding.detail,
        remedy=finding.remedy,
    )
