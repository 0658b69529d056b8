"""What a judge said about the open claims of an answer, taken into its verdict.

It fails closed: a claim is supported only by a judgement that names lines which exist, one of them in a source that the
claim cites. Whatever else came, or came not, is an error of that claim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from verification.types import Claim, Source, Verdict, Violation

UNCONFIRMED: Final = "The judge could not confirm this sentence."
_LONGEST: Final = 200  # letters of a claim, and of what the sources say instead

Line = tuple[int, int]
"""A line of a source: the source's number, and the line's from 1. Line 0 is the title and the date."""
NOWHERE: Final[Line] = (-1, -1)
ClaimKey = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One opinion on one claim. ``absent``: right because no source says anything of it. ``instead``: what they say."""

    supported: bool
    lines: tuple[Line, ...] = ()
    absent: bool = False
    instead: str = ""


def source_lines(source: Source) -> tuple[str, ...]:
    """The lines of a source as a judge sees them, by their numbers; empty ones are left out."""
    # A page's date may be what bears a claim out, so it stands where a line can be named.
    dated = f", updated {source.updated_at}" if source.updated_at else ""
    return (" ".join(f"{source.title}{dated}".split()), *filter(str.strip, source.text.splitlines()))


def open_claims(verdict: Verdict) -> tuple[Claim, ...]:
    """The claims that only a judge can decide, in the order of the text."""
    return tuple(claim for claim in verdict.claims if claim.supported == "open")


def key_of(claim: Claim) -> ClaimKey:
    """What an opinion on a claim holds for: the same words that cite the same sources."""
    return claim.text, claim.cited


def judged(verdict: Verdict, said: Mapping[ClaimKey, Judgement | None], sources: Sequence[Source]) -> Verdict:
    """The verdict after the judge: each open claim it was asked about is borne out, refuted or not confirmed.

    The last two are errors. ``said`` holds None where it was asked and said nothing that makes sense.
    """
    lengths = {source.id: len(source_lines(source)) for source in sources}
    asked = [claim for claim in open_claims(verdict) if key_of(claim) in said]
    settled = [
        _settled(claim, said[key_of(claim)], lengths) if claim in asked else (claim, None) for claim in verdict.claims
    ]
    found = [violation for _, violation in settled if violation]
    kept = [each for each in verdict.violations if not _is_suspicion(each, asked)]
    return replace(
        verdict,
        passed=verdict.passed and not found,
        violations=tuple(sorted([*kept, *found], key=lambda each: (each.start, each.end, each.rule))),
        claims=tuple(claim for claim, _ in settled),
    )


def only_unconfirmed(verdict: Verdict) -> bool:
    """Whether nothing but the judge's silence stands against the answer: that is cut out, not written again."""
    return bool(verdict.errors) and all(is_unconfirmed(error) for error in verdict.errors)


def without_unconfirmed(verdict: Verdict) -> Verdict:
    """The verdict as the model is told it: what could not be confirmed is no fault that it could mend."""
    return replace(verdict, violations=tuple(each for each in verdict.violations if not is_unconfirmed(each)))


def is_unconfirmed(found: Violation) -> bool:
    """Whether the judge said nothing of use about a claim, rather than something against it."""
    return found.rule == "claim_supported" and found.detail == UNCONFIRMED


def _is_suspicion(found: Violation, decided: Sequence[Claim]) -> bool:
    """Whether a rule only doubted what the judge has decided now."""
    if found.rule != "claim_supported" or found.severity != "warning":
        return False
    return any(claim.start <= found.start and found.end <= claim.end for claim in decided)


def _settled(claim: Claim, said: Judgement | None, lengths: Mapping[int, int]) -> tuple[Claim, Violation | None]:
    """The claim as the judge leaves it, and what there is against it."""
    cited = ", ".join(f"[{number}]" for number in claim.cited) or "the sources"
    if said is None or (said.supported and not _is_sound(said, lengths)):
        return claim, _violation(claim, UNCONFIRMED, f"Say it in the words of {cited}, or leave it out.")
    named = [source for source, _ in said.lines]
    elsewhere = next((source for source in named if source not in claim.cited), None)
    if said.supported and (elsewhere is None or not claim.cited or any(source in claim.cited for source in named)):
        return replace(claim, supported="yes", settled_by="judge"), None
    refuted = replace(claim, supported="no", settled_by="judge")
    if said.supported:
        return refuted, _violation(claim, f"[{elsewhere}] says this, not {cited}.", f"Cite [{elsewhere}] for it.")
    instead = " ".join(said.instead.split())[:_LONGEST]
    detail = f"The judge finds that {cited} does not say this{f': {instead}' if instead else '.'}"
    return refuted, _violation(claim, detail, f"State only what {cited} says, or leave the sentence out.")


def _is_sound(said: Judgement, lengths: Mapping[int, int]) -> bool:
    """Whether all its lines exist, and there are some where some are needed."""
    known = all(0 <= line < lengths.get(source, 0) for source, line in said.lines)
    return known and bool(said.lines or said.absent)


def _violation(claim: Claim, detail: str, remedy: str) -> Violation:
    found = Violation(rule="claim_supported", severity="error", start=claim.start, end=claim.end)
    return replace(found, words=claim.text[:_LONGEST], detail=detail, remedy=remedy)
