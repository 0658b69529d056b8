"""Apply a judge's opinions to the open claims of a verdict.

If in doubt, the claim fails. It is supported only if an opinion names existing lines, one in a source that it cites.
With any other opinion, or none, the claim is an error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from verification.markup.lines import source_lines
from verification.types import Claim, Source, Verdict, Violation

UNCONFIRMED: Final = "The judge could not confirm this sentence."
_MAX_INSTEAD_CHARS: Final = 200  # of what the sources say instead

Line = tuple[int, int]
"""A line of a source: the source's number, and the line's from 1. Line 0 is the title and the date."""
NO_LINE: Final[Line] = (-1, -1)
ClaimKey = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """An opinion on a claim. ``absent``: right because no source mentions it. ``instead``: what the sources say.

    ``empty``: it is absent because it states nothing, such as a greeting.
    """

    supported: bool
    lines: tuple[Line, ...] = ()
    absent: bool = False
    empty: bool = False
    instead: str = ""


def open_claims(verdict: Verdict) -> tuple[Claim, ...]:
    """The claims that only a judge can decide, in order."""
    return tuple(claim for claim in verdict.claims if claim.supported == "open")


def claims_to_judge(verdict: Verdict) -> tuple[Claim, ...]:
    """The open claims, and the quotations: their words are right, but a judge may object to their place."""
    return tuple(claim for claim in verdict.claims if claim.supported == "open" or claim.settled_by == "quotation")


def claim_key(claim: Claim) -> ClaimKey:
    """Key of an opinion, which is valid for the same words, under the same header, that cite the same sources."""
    return "\n".join(filter(None, (claim.head, claim.text))), claim.cited


def apply_judgements(
    verdict: Verdict, judgements: Mapping[ClaimKey, Judgement | None], sources: Sequence[Source]
) -> Verdict:
    """Return the verdict after the judge: each claim it was asked about is supported, refuted or unconfirmed.

    The last two are errors. ``judgements`` has None for a claim that got no usable opinion. A quotation is supported
    unless a judgement refutes it: its words are right, but the answer may be about something else. It gets the lines
    that the judge names, because its words may occur in several places.
    """
    lengths = {source.id: len(source_lines(source)) for source in sources}
    refuted = {key for key, judgement in judgements.items() if judgement and not judgement.supported}
    quoted = [claim for claim in verdict.claims if claim.settled_by == "quotation" and claim_key(claim) in refuted]
    decided = [*(claim for claim in open_claims(verdict) if claim_key(claim) in judgements), *quoted]
    named = {key: judgement.lines for key, judgement in judgements.items() if judgement and judgement.supported}
    claims = (
        replace(claim, lines=named.get(claim_key(claim), ())) if claim.settled_by == "quotation" else claim
        for claim in verdict.claims
    )
    settled = {claim: _settle(claim, judgements[claim_key(claim)], lengths) for claim in decided}
    faults = [violation for _, violation in settled.values() if violation]
    # The judge's decision settles a rule's suspicion about a claim.
    suspicions = [each for each in verdict.violations if each.rule == "claim_supported" and each.severity == "warning"]
    moot = [each for each in suspicions if any(claim.surrounds(each) for claim in decided)]
    violations = [*(each for each in verdict.violations if each not in moot), *faults]
    return replace(
        verdict,
        passed=verdict.passed and not faults,
        violations=tuple(sorted(violations, key=lambda each: (each.start, each.end, each.rule))),
        claims=tuple(settled.get(claim, (claim,))[0] for claim in claims),
    )


def only_unconfirmed(verdict: Verdict) -> bool:
    """Return True if unconfirmed claims are the only errors. They are cut out, without another attempt."""
    return bool(verdict.errors) and all(is_unconfirmed(error) for error in verdict.errors)


def without_unconfirmed(verdict: Verdict) -> Verdict:
    """The verdict for the feedback to the model, without unconfirmed claims, which it cannot fix."""
    return replace(verdict, violations=tuple(each for each in verdict.violations if not is_unconfirmed(each)))


def is_unconfirmed(violation: Violation) -> bool:
    """Return True if the judge gave no usable opinion on a claim, not one against it."""
    return violation.rule == "claim_supported" and violation.detail == UNCONFIRMED


def _settle(claim: Claim, judgement: Judgement | None, lengths: Mapping[int, int]) -> tuple[Claim, Violation | None]:
    """Return the claim with the judge's decision, and the violation if it is not supported."""
    whole = (0, claim.end - claim.start)
    cited = ", ".join(f"[{number}]" for number in claim.cited) or "the sources"
    lines = judgement.lines if judgement else ()
    # A claim is supported if all its lines exist, or if no source mentions the subject.
    unsound = any(not 0 <= line < lengths.get(source, 0) for source, line in lines)
    if judgement is None or (judgement.supported and (unsound or not (lines or judgement.absent))):
        return claim, claim.violation(whole, UNCONFIRMED, f"Say it in the words of {cited}, or leave it out.")
    named = [source for source, _ in judgement.lines]
    elsewhere = next((source for source in named if source not in claim.cited), None)
    if judgement.supported and (elsewhere is None or not claim.cited or any(source in claim.cited for source in named)):
        lines = () if judgement.absent else judgement.lines  # a line cannot show that a source lacks something
        absent = judgement.absent and not judgement.empty
        return replace(claim, supported="yes", settled_by="judge", lines=lines, absent=absent), None
    refuted = replace(claim, supported="no", settled_by="judge")
    if judgement.supported:
        return refuted, claim.violation(whole, f"[{elsewhere}] says this, not {cited}.", f"Cite [{elsewhere}] for it.")
    instead = " ".join(judgement.instead.split())[:_MAX_INSTEAD_CHARS]
    detail = f"The judge finds that {cited} does not say this{f': {instead}' if instead else '.'}"
    return refuted, claim.violation(whole, detail, f"State only what {cited} says, or leave the sentence out.")
