"""The table of rules, and the one way from a draft to a verdict.

Formatting is mended first, links and citations are set into one form, and the rules judge the very chunks that Slack
would get. ``check`` never raises on bad input: a crash of a rule, or of a step before the rules, is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from verification.claims import claims as claiming
from verification.draft_view import CHECK_FAILED, Reading, failed_check, sendable
from verification.evidence.score import SUPPORTED
from verification.grounding import ground as grounding
from verification.grounding.examine import Grounds, grounds
from verification.grounding.recite import recite
from verification.markup import chunks, mrkdwn
from verification.markup.link_targets import known_links, show_as_code
from verification.markup.scanner import prose
from verification.rules import form
from verification.rules.citations import citation_resolves, cites_sources, normalise
from verification.rules.coherence import coherent
from verification.rules.injection import no_injection
from verification.rules.mentions import no_broadcast
from verification.rules.relevance import addresses_question, minimum_length, not_empty
from verification.rules.secrets import no_secrets
from verification.types import Claim, Draft, Repair, RuleName, Severity, Source, Verdict, Violation

T = TypeVar("T")

_STEP: Final = re.compile(r"[ \t]*\d{1,3}[.)][ \t]")
_NO_WORDS: Final = re.compile(r"\[\d{1,12}\]|[*_|\s]+")
Step = Callable[[str], tuple[str, tuple[Repair, ...]]]

CHUNK_LIMITS: Final = {"mrkdwn": 3000, "markdown": 12_000}
"""Characters of one chunk: a section block's text, or all Markdown of one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: its name, the severity its crash counts with, and the function that finds its violations."""

    name: RuleName
    severity: Severity
    find: Callable[[Reading], tuple[Violation, ...]]


def _form(reading: Reading) -> tuple[Violation, ...]:
    """The form rules on the text and on each chunk; what only a chunk shows is placed in the text by its words.

    A repaired text whose chunks are right is right itself: what is sent are the chunks.
    """
    dialect, limit = reading.draft.dialect, CHUNK_LIMITS[reading.draft.dialect]
    in_chunks = [each for chunk in reading.chunks for each in form.violations(chunk, dialect, limit=limit)]
    if reading.draft.repair and reading.chunks and not in_chunks:
        return tuple(_placed(each, reading.text) for each in form.leaked_tags(reading.draft.text))
    found = list(form.violations(reading.text, dialect, limit=0))
    known = {(each.rule, each.words) for each in found}
    for each in in_chunks:
        if (each.rule, each.words) not in known:
            known.add((each.rule, each.words))
            found.append(_placed(each, reading.text))
    return tuple(found)


def _placed(found: Violation, text: str) -> Violation:
    """A chunk's violation with its span in the text: where its words stand, else the whole text."""
    at = text.find(found.words) if found.words else -1
    return replace(found, start=max(at, 0), end=at + len(found.words) if at >= 0 else len(text))


RULES: Final[tuple[Rule, ...]] = (
    Rule(name="not_empty", severity="error", find=not_empty),
    Rule(name="minimum_length", severity="warning", find=minimum_length),
    Rule(name="mrkdwn", severity="error", find=_form),
    Rule(name="no_broadcast", severity="error", find=no_broadcast),
    Rule(name="no_secrets", severity="error", find=no_secrets),
    Rule(name="no_injection", severity="error", find=no_injection),
    Rule(name="cites_sources", severity="error", find=cites_sources),
    Rule(name="citation_resolves", severity="error", find=citation_resolves),
    Rule(name="addresses_question", severity="warning", find=addresses_question),
    Rule(name="coherent", severity="warning", find=coherent),
)
"""Every rule but ``claim_supported``, which also changes the claims. ``mrkdwn`` stands for the three form rules."""


OnCrash = Callable[[RuleName, Exception], None]
"""Told of each crash behind the wall, so that the caller can log it: this package has no log."""


def _unheard(_rule: RuleName, _error: Exception) -> None:
    """The listener of a caller that has no log either."""


class _Wall:
    """The rules' wall: a step that crashes counts as a failed check of its rule, and the caller goes on."""

    def __init__(self, on_crash: OnCrash) -> None:
        self.failures: list[Violation] = []
        self._on_crash = on_crash

    def around(self, rule: RuleName, step: Callable[[], T], otherwise: T) -> T:
        """What the step gives; after a crash ``otherwise``."""
        try:
            return step()
        except Exception as error:  # noqa: BLE001 - one of the four walls: a crash of a rule fails the answer, not the caller
            self.failures.append(failed_check(rule))
            self._on_crash(rule, error)
            return otherwise


def check(draft: Draft, on_crash: OnCrash = _unheard) -> Verdict:
    """The verdict on a draft. Spans refer to ``Verdict.text``; a crash inside is an error, never a pass.

    ``on_crash`` is told the rule and the exception of each crash, for the log; it must not raise.
    """
    wall = _Wall(on_crash)
    clean, removed = _sendable(draft)
    text, repairs = _prepared(clean, wall)
    reading, claims, unsupported, moved = _judged(clean, text, wall)
    broken = [each for rule in RULES for each in _broken(rule, reading, wall)]
    if removed and not draft.repair:
        broken.append(_unsendable(text))
    found = dict.fromkeys([*wall.failures, *broken, *unsupported])
    return Verdict(
        passed=not any(each.severity == "error" for each in found),
        text=reading.text,
        chunks=reading.chunks,
        violations=tuple(sorted(found, key=lambda each: (each.start, each.end, each.rule))),
        repairs=(*removed, *repairs, *moved) if draft.repair else (),
        claims=claims,
    )


def better(a: Verdict, b: Verdict) -> bool:
    """Whether ``a`` verifies better than ``b``: it passes, or has fewer errors; then more claims that stand."""
    return _worth(a) > _worth(b)


def _worth(verdict: Verdict) -> tuple[bool, bool, int, int, int]:
    """What is compared, most important first; an empty text or one that could not be checked is worth least."""
    hopeless = any(each.rule == "not_empty" or each.detail == CHECK_FAILED for each in verdict.errors)
    standing = sum(1 for claim in verdict.claims if claim.supported != "no")
    return verdict.passed, not hopeless, -len(verdict.errors), standing, -len(verdict.violations)


def _broken(rule: Rule, reading: Reading, wall: _Wall) -> tuple[Violation, ...]:
    """The violations of one rule."""
    nothing: tuple[Violation, ...] = ()
    return wall.around(rule.name, lambda: rule.find(reading), nothing)


def _sendable(draft: Draft) -> tuple[Draft, tuple[Repair, ...]]:
    """The draft with only such letters as can be sent and encoded, and what had to go from its text."""
    text, removed = sendable(draft.text)
    sources = tuple(map(_sendable_source, draft.sources))
    question, known = sendable(draft.question)[0], sendable(draft.known_text)[0]
    return replace(draft, text=text, question=question, known_text=known, sources=sources), removed


def _sendable_source(source: Source) -> Source:
    """The source with only such letters; mostly it is the same."""
    title, url, text = sendable(source.title)[0], sendable(source.url)[0], sendable(source.text)[0]
    if title is source.title and url is source.url and text is source.text:
        return source
    return replace(source, title=title, url=url, text=text)


def _unsendable(text: str) -> Violation:
    return Violation(
        rule="mrkdwn",
        severity="error",
        end=len(text),
        detail="The text holds control characters or halves of characters.",
        remedy="Write plain text.",
    )


def _prepared(draft: Draft, wall: _Wall) -> tuple[str, tuple[Repair, ...]]:
    """The text after repair, links and citations, in this order; with repair off as it stands."""
    steps: tuple[tuple[RuleName, Step], ...] = (
        ("mrkdwn", lambda text: mrkdwn.repair(text, draft.dialect, mentions=draft.mentions)),
        ("citation_resolves", lambda text: show_as_code(text, known_links(draft))),
        (
            "citation_resolves",
            lambda text: normalise(text, () if draft.own_words or draft.unsourced else draft.sources),
        ),
    )
    text = draft.text
    repairs: tuple[Repair, ...] = ()
    for rule, step in steps if draft.repair else ():
        unchanged: tuple[str, tuple[Repair, ...]] = (text, ())
        text, made = wall.around(rule, partial(step, text), unchanged)
        repairs = (*repairs, *made)
    return text, repairs


def _read(draft: Draft, text: str, wall: _Wall) -> Reading:
    """What the rules look at. A step that crashes leaves the strictest view: all text as prose, no claims."""
    limit = CHUNK_LIMITS[draft.dialect]
    no_chunks: tuple[str, ...] = ()
    no_claims: tuple[Claim, ...] = ()
    # The title of a source in an introduction ("Quoted from Expenses 2024:") states nothing new either.
    given = "\n".join([draft.question, draft.known_text, *(source.title for source in draft.sources)])

    def stated() -> tuple[Claim, ...]:
        found = claiming.claims(text, given, judged=draft.judged)
        return tuple(claim for claim in found if _NO_WORDS.sub(" ", claim.text).strip() not in draft.left_out)

    return Reading(
        draft=draft,
        text=text,
        chunks=wall.around("mrkdwn", lambda: chunks.split(text, draft.sources, draft.dialect, limit), no_chunks),
        prose=wall.around("mrkdwn", lambda: prose(text), text),
        claims=wall.around("claim_supported", stated, no_claims),
    )


Judged = tuple[Reading, tuple[Claim, ...], tuple[Violation, ...], tuple[Repair, ...]]


def _judged(draft: Draft, text: str, wall: _Wall) -> Judged:
    """What the rules look at, and what the sources say; a wrong citation is set right where that verifies better."""
    reading = _read(draft, text, wall)
    nowhere: Grounds | None = None
    offered = wall.around("claim_supported", lambda: _grounds(draft, text), nowhere)
    if offered is None:
        return reading, reading.claims, (), ()
    claims, found = _grounded(offered, reading, wall)
    doubtful = _misplaced(draft, claims, found)
    # A judge knows better than shared words which source says it.
    if not draft.repair or draft.judged or not doubtful:
        return reading, claims, found, ()
    unmoved: tuple[str, tuple[Repair, ...]] = (text, ())
    moved, repairs = wall.around("claim_supported", lambda: recite(offered, text, doubtful), unmoved)
    if repairs:
        other = _read(draft, moved, wall)
        others, left = _grounded(offered, other, wall)
        if _doubts(others, left) < _doubts(claims, found):
            return other, others, left, repairs
    return reading, claims, found, ()


def _misplaced(draft: Draft, claims: tuple[Claim, ...], found: tuple[Violation, ...]) -> tuple[Claim, ...]:
    """The claims whose citation may be a wrong one: not borne out, though what they cite is there."""
    known = {source.id for source in draft.sources}
    return tuple(claim for claim in _doubted(claims, found) if claim.cited and known.issuperset(claim.cited))


def _doubts(claims: tuple[Claim, ...], found: tuple[Violation, ...]) -> tuple[int, int]:
    """What a moved citation must lessen: errors first, then sentences that their sources do not bear out."""
    return sum(1 for each in found if each.severity == "error"), len(_doubted(claims, found))


def _doubted(claims: tuple[Claim, ...], found: tuple[Violation, ...]) -> list[Claim]:
    """The claims that something speaks against: a finding, or that few of their words stand in what they cite."""
    return [
        claim
        for claim in claims
        if claim.score < SUPPORTED or any(claim.start <= each.start and each.end <= claim.end for each in found)
    ]


def _grounds(draft: Draft, text: str) -> Grounds | None:
    """What the claims are checked against; None for text of one's own words and general answers: they are exempt."""
    return None if draft.own_words or draft.unsourced or not draft.sources else grounds(draft, text)


def _grounded(offered: Grounds, reading: Reading, wall: _Wall) -> tuple[tuple[Claim, ...], tuple[Violation, ...]]:
    """The claims with what the sources say to them."""
    unjudged: tuple[tuple[Claim, ...], tuple[Violation, ...]] = (reading.claims, ())
    claims, found = wall.around("claim_supported", lambda: grounding.ground(offered, reading.claims), unjudged)
    return (tuple(_with_its_place(claim, reading.text) for claim in claims) if offered.judged else claims), found


def _with_its_place(claim: Claim, text: str) -> Claim:
    """A numbered step also says when it comes: that it is quoted does not settle that, a judge does."""
    line = text[text.rfind("\n", 0, claim.start) + 1 : claim.end]
    if claim.settled_by != "quotation" or not _STEP.match(line):
        return claim
    return replace(claim, supported="open", settled_by="nobody")
