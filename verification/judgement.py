"""What a judge said about the open claims of an answer, taken into its verdict (F5, F6).

Promises: fails closed. A claim counts as supported only if there is exactly one judgement of it, it says so, and its
line of evidence stands in a source that the claim cites; whatever else came, or came not, is an error of that claim.
Must never call a model: it only reads what one said. Pure and linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from verification.types import Claim, Source, Verdict, Violation

UNCONFIRMED: Final = "The judge could not confirm this sentence."

_LONGEST_WORDS: Final = 200
_LONGEST_REASON: Final = 200
_LEAST_LETTERS: Final = 8
_LEAST_LETTERS_CJK: Final = 4
_NO_WORD: Final = re.compile(r"[\W_]+")
_CJK: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
# A line of evidence may leave something out, or join a heading and a line below it.
_LEFT_OUT: Final = re.compile(r"\[\s*(?:\.{3}|…)\s*\]|\.{3}|…|\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One opinion. ``claim`` counts from 1 in the order of ``open_claims``; ``evidence`` is copied from a source."""

    claim: int
    supported: bool
    evidence: str = ""
    reason: str = ""


def open_claims(verdict: Verdict) -> tuple[Claim, ...]:
    """The claims that only a judge can decide, in the order in which they are put to it."""
    return tuple(claim for claim in verdict.claims if claim.supported == "open")


def judged(verdict: Verdict, judgements: Iterable[Judgement], sources: Sequence[Source]) -> Verdict:
    """The verdict after the judge: each open claim is borne out, refuted or could not be confirmed (both errors)."""
    said: dict[int, list[Judgement]] = {}
    for judgement in judgements:
        said.setdefault(judgement.claim, []).append(judgement)
    texts = {source.id: _words(f"{source.title}\n{source.text}") for source in sources}
    numbers = count(1)
    claims: list[Claim] = []
    found: list[Violation] = []
    for claim in verdict.claims:
        settled, violation = claim, None
        if claim.supported == "open":
            settled, violation = _settled(claim, said.get(next(numbers), []), texts)
        claims.append(settled)
        found += [violation] if violation else []
    return _decided(verdict, tuple(claims), found)


def carried(verdict: Verdict, before: Verdict) -> Verdict:
    """The verdict on a shortened text, with what the judge confirmed of its sentences when the text was whole."""
    confirmed = {
        (claim.text, claim.cited) for claim in before.claims if claim.settled_by == "judge" and claim.supported == "yes"
    }
    claims = tuple(
        replace(claim, supported="yes", settled_by="judge")
        if claim.supported == "open" and (claim.text, claim.cited) in confirmed
        else claim
        for claim in verdict.claims
    )
    return _decided(verdict, claims, [])


def only_unconfirmed(verdict: Verdict) -> bool:
    """Whether nothing but the judge's silence stands against the answer: that is cut out, not written again."""
    return bool(verdict.errors) and all(_is_unconfirmed(error) for error in verdict.errors)


def without_unconfirmed(verdict: Verdict) -> Verdict:
    """The verdict as the model is told it: what could not be confirmed is no fault that it could mend."""
    return replace(verdict, violations=tuple(each for each in verdict.violations if not _is_unconfirmed(each)))


def _is_unconfirmed(found: Violation) -> bool:
    return found.rule == "claim_supported" and found.detail == UNCONFIRMED


def _settled(claim: Claim, said: Sequence[Judgement], texts: dict[int, str]) -> tuple[Claim, Violation | None]:
    """The claim as the judge leaves it; two opinions on one claim are none."""
    opinion = said[0] if len(said) == 1 else None
    cited = ", ".join(f"[{number}]" for number in claim.cited) or "its sources"
    if opinion is None or (opinion.supported and not _stands(opinion.evidence, claim, texts)):
        remedy = f"Say it in the words of {cited}, or leave it out."
        return claim, _violation(claim, UNCONFIRMED, remedy)
    if opinion.supported:
        return replace(claim, supported="yes", settled_by="judge"), None
    remedy = f"State only what {cited} says, or leave the sentence out."
    reason = " ".join(opinion.reason.split())[:_LONGEST_REASON]
    detail = f"The judge finds that {cited} does not say this"
    return replace(claim, supported="no", settled_by="judge"), _violation(
        claim, f"{detail}: {reason}" if reason else f"{detail}.", remedy
    )


def _violation(claim: Claim, detail: str, remedy: str) -> Violation:
    return Violation(
        rule="claim_supported",
        severity="error",
        start=claim.start,
        end=claim.end,
        words=claim.text[:_LONGEST_WORDS],
        detail=detail,
        remedy=remedy,
    )


def _stands(evidence: str, claim: Claim, texts: dict[int, str]) -> bool:
    """Whether the line is long enough to be one, and each of its parts stands word for word in one cited source."""
    parts = [part for part in map(_words, _LEFT_OUT.split(evidence)) if part.strip()]
    letters = sum(len(part.replace(" ", "")) for part in parts)
    if letters < (_LEAST_LETTERS_CJK if _CJK.search(evidence) else _LEAST_LETTERS):
        return False
    return any(all(_holds(texts.get(number, ""), part) for part in parts) for number in claim.cited)


def _holds(text: str, part: str) -> bool:
    """Whole words; between Chinese or Japanese letters there are none."""
    return (part.strip() if _CJK.search(part) else part) in text


def _words(text: str) -> str:
    """The text as case-folded words with one space around each: marks, markup and line ends do not count."""
    return f" {_NO_WORD.sub(' ', text.casefold()).strip()} "


def _decided(verdict: Verdict, claims: tuple[Claim, ...], found: Sequence[Violation]) -> Verdict:
    """The verdict with these claims; the suspicions against a claim that is decided now are settled."""
    pairs = zip(verdict.claims, claims, strict=True)
    spans = {(new.start, new.end) for old, new in pairs if new.supported != old.supported}
    spans |= {(each.start, each.end) for each in found}
    kept = [each for each in verdict.violations if not _suspects(each, spans)]
    violations = tuple(sorted([*kept, *found], key=lambda each: (each.start, each.end, each.rule)))
    passed = not any(each.severity == "error" for each in violations)
    return replace(verdict, passed=passed, violations=violations, claims=claims)


def _suspects(found: Violation, spans: set[tuple[int, int]]) -> bool:
    if found.rule != "claim_supported" or found.severity != "warning":
        return False
    return any(start <= found.start and found.end <= end for start, end in spans)
