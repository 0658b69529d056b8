"""Setting a citation right: the fact is right, another source holds it. A step of its own, and recorded as such.

Promises: a citation is changed only if the cited sources do not bear the sentence out and exactly one other source does
so fully; nothing but the bracket changes. Must never touch a citation that several sentences share.
"""

from __future__ import annotations

from verification.answer import Claim, Draft, Repair
from verification.claims import citation_spans
from verification.evidence import Evidence
from verification.examination import bearing_out, evidence_for, examine, known_passages, read_claim
from verification.language import detect
from verification.score import SUPPORTED, score


def recite(draft: Draft, text: str, claims: tuple[Claim, ...]) -> tuple[str, tuple[Repair, ...]]:
    """``text`` with citations set right, and how many were; ``claims`` are those of ``text``, judged or not."""
    spoken = detect(text) or detect(draft.question)
    pieces: list[str] = []
    last, count = 0, 0
    for claim in claims:
        spans = citation_spans(claim.text)
        right = _right_source(claim, draft, spoken) if spans else None
        if right is None or claim.start < last:
            continue
        for index, (start, end) in enumerate(spans):
            pieces.append(text[last : claim.start + start] + (f"[{right}]" if index == 0 else ""))
            last = claim.start + end
        count += 1
    repairs = (Repair(kind="citation", count=count),) if count else ()
    return "".join([*pieces, text[last:]]), repairs


def _right_source(claim: Claim, draft: Draft, spoken: str | None) -> int | None:
    """The one source that bears the claim out where the cited ones do not; None if it is fine or unclear."""
    cited = [source for source in draft.sources if source.id in claim.cited]
    read = read_claim(claim, spoken, cited)
    if cited and _stands(evidence_for(read, cited, known_passages(draft)), draft):
        return None
    others = bearing_out(read, draft, claim.cited)
    return others[0] if len(others) == 1 else None


def _stands(evidence: Evidence, draft: Draft) -> bool:
    """True if nothing precise speaks against the claim and the cited sources hold enough of its words."""
    if any(finding.severity == "error" for finding in examine(evidence, draft)):
        return False
    return evidence.same_language and score(evidence, ()) >= SUPPORTED
