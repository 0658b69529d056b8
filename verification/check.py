"""The table of rules, and the one way from a draft to a verdict.

Formatting is mended first, links and citations are set into one form, and the rules judge the very chunks that Slack
would get. ``check`` never raises on bad input: a crash of a rule, or of a step before the rules, is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from verification.claims.claims import claims as claims_of
from verification.evidence.evidence import SUPPORTED
from verification.grounding import Grounds, ground, grounds, recite
from verification.markup import chunks, mrkdwn
from verification.markup.link_targets import KnownLinks, show_as_code
from verification.markup.scanner import prose
from verification.rules import form
from verification.rules.citations import citation_resolves, cites_sources, normalise
from verification.rules.injection import no_injection
from verification.rules.mentions import no_broadcast
from verification.rules.relevance import addresses_question, coherent, minimum_length, not_empty
from verification.rules.secrets import no_secrets
from verification.types import Claim, Draft, Reading, Repair, RuleName, Source, Verdict, Violation

T = TypeVar("T")

_STEP: Final = re.compile(r"[ \t]*\d{1,3}[.)][ \t]")
_NO_WORDS: Final = re.compile(r"\[\d{1,12}\]|[*_|\s]+")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")  # UTF-8 has none (RFC 3629): no request could carry them
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# What cannot be seen inside a word or a number makes 15 of what reads as 1 and 5.
_PARTING: Final = re.compile("(?<=[A-Za-z0-9])[\u00ad\u200b\u2060\ufeff]+(?=[A-Za-z0-9])")
_LAYOUT: Final = str.maketrans("\n\t\r", "   ")
_CRASHED: Final = "The check itself failed on this text."

# Slack's documentation: 3,000 characters for a section block's text, 12,000 for all Markdown of one message.
CHUNK_LIMITS: Final = {"mrkdwn": 3000, "markdown": 12_000}

Found = tuple[Violation, ...]
OnCrash = Callable[[RuleName, Exception], None]
"""Told of each crash behind the wall, so that the caller can log it: this package has no log."""


def _form(reading: Reading) -> Found:
    """The form rules on the text and on each chunk; what only a chunk shows is placed in the text by its words."""
    dialect, limit = reading.draft.dialect, CHUNK_LIMITS[reading.draft.dialect]
    in_chunks = [each for chunk in reading.chunks for each in form.violations(chunk, dialect, limit=limit)]
    if reading.draft.repair and reading.chunks and not in_chunks:  # they are what is sent: then the text is right, too
        return tuple(_placed(each, reading.text) for each in form.leaked_tags(reading.draft.text))
    in_text = form.violations(reading.text, dialect, limit=0)
    known = {(each.rule, each.words) for each in in_text}
    only_there = (each for each in in_chunks if (each.rule, each.words) not in known)
    return (*in_text, *(_placed(each, reading.text) for each in only_there))


def _placed(found: Violation, text: str) -> Violation:
    """A chunk's violation with its span in the text: where its words stand, else the whole text."""
    at = text.find(found.words) if found.words else -1
    return replace(found, start=max(at, 0), end=at + len(found.words) if at >= 0 else len(text))


RULES: Final[Mapping[RuleName, Callable[[Reading], Found]]] = {
    "not_empty": not_empty,
    "minimum_length": minimum_length,
    "mrkdwn": _form,
    "no_broadcast": no_broadcast,
    "no_secrets": no_secrets,
    "no_injection": no_injection,
    "cites_sources": cites_sources,
    "citation_resolves": citation_resolves,
    "addresses_question": addresses_question,
    "coherent": coherent,
}
"""Every rule but ``claim_supported``, which also changes the claims. ``mrkdwn`` stands for the three form rules."""


class _Wall:
    """The rules' wall: a step that crashes counts as a failed check of its rule, and the caller goes on."""

    def __init__(self, on_crash: OnCrash | None) -> None:
        self.failures: list[Violation] = []
        self._on_crash = on_crash

    def around(self, rule: RuleName, step: Callable[[], T]) -> T | None:
        """What the step gives; None after a crash."""
        try:
            return step()
        except Exception as error:  # noqa: BLE001 - one of the four walls: a crash of a rule fails the answer, not the caller
            remedy = "Write the answer more simply: short sentences, plain lists."
            self.failures.append(Violation(rule=rule, severity="error", detail=_CRASHED, remedy=remedy))
            if self._on_crash:
                self._on_crash(rule, error)
            return None


def check(draft: Draft, on_crash: OnCrash | None = None) -> Verdict:
    """The verdict on a draft. Spans refer to ``Verdict.text``; a crash inside is an error, never a pass.

    ``on_crash`` is told the rule and the exception of each crash, for the log; it must not raise.
    """
    wall = _Wall(on_crash)
    clean, removed = _sendable(draft)
    text, repairs = _prepared(clean, wall)
    reading, unsupported, moved = _judged(clean, text, wall)
    broken = [each for name, rule in RULES.items() for each in wall.around(name, partial(rule, reading)) or ()]
    if removed and not draft.repair:
        detail = "The text holds control characters or halves of characters."
        broken.append(
            Violation(rule="mrkdwn", severity="error", end=len(text), detail=detail, remedy="Write plain text.")
        )
    found = dict.fromkeys([*wall.failures, *broken, *unsupported])
    return Verdict(
        passed=not any(each.severity == "error" for each in found),
        text=reading.text,
        chunks=reading.chunks,
        violations=tuple(sorted(found, key=lambda each: (each.start, each.end, each.rule))),
        repairs=(*removed, *repairs, *moved) if draft.repair else (),
        claims=reading.claims,
    )


def better(a: Verdict, b: Verdict) -> bool:
    """Whether ``a`` verifies better than ``b``: it passes, or has fewer errors; then more claims that stand."""
    return _worth(a) > _worth(b)


def _worth(verdict: Verdict) -> tuple[bool, bool, int, int, int]:
    """What is compared, most important first; an empty text or one that could not be checked is worth least."""
    hopeless = any(each.rule == "not_empty" or each.detail == _CRASHED for each in verdict.errors)
    standing = sum(1 for claim in verdict.claims if claim.supported != "no")
    return verdict.passed, not hopeless, -len(verdict.errors), standing, -len(verdict.violations)


def sendable(text: str) -> tuple[str, tuple[Repair, ...]]:
    """The text without what no message can carry: lone surrogates become U+FFFD, control and hidden letters go."""
    if text.translate(_LAYOUT).isprintable():  # most texts: this is fast to tell
        return text, ()
    whole, replaced = _SURROGATE.subn("\ufffd", text)
    # One after the other: a control character may stand between a letter and what is hidden.
    bare, removed = _CONTROL.subn("", whole)
    clean, parting = _PARTING.subn("", bare)
    count = replaced + removed + parting
    return clean, (Repair(kind="control", count=count),) if count else ()


def _sendable(draft: Draft) -> tuple[Draft, tuple[Repair, ...]]:
    """The draft with only such letters as can be sent and encoded, and what had to go from its text."""
    text, removed = sendable(draft.text)
    sources = tuple(map(_sendable_source, draft.sources))
    question, known = sendable(draft.question)[0], sendable(draft.known_text)[0]
    return replace(draft, text=text, question=question, known_text=known, sources=sources), removed


def _sendable_source(source: Source) -> Source:
    title, url, text = (sendable(part)[0] for part in (source.title, source.url, source.text))
    return replace(source, title=title, url=url, text=text)


def _prepared(draft: Draft, wall: _Wall) -> tuple[str, tuple[Repair, ...]]:
    """The text after repair, links and citations, in this order; with repair off as it stands."""
    citable = () if draft.own_words or draft.unsourced else draft.sources
    steps: tuple[tuple[RuleName, Callable[[str], tuple[str, tuple[Repair, ...]]]], ...] = (
        ("mrkdwn", lambda text: mrkdwn.repair(text, draft.dialect)),
        ("citation_resolves", lambda text: show_as_code(text, KnownLinks(draft))),
        ("citation_resolves", lambda text: normalise(text, citable)),
    )
    text = draft.text
    repairs: tuple[Repair, ...] = ()
    for rule, step in steps if draft.repair else ():
        text, made = wall.around(rule, partial(step, text)) or (text, ())
        repairs += made
    return text, repairs


def _read(draft: Draft, text: str, wall: _Wall) -> Reading:
    """What the rules look at. A step that crashes leaves the strictest view: all text as prose, no claims."""
    limit = CHUNK_LIMITS[draft.dialect]
    # The title of a source in an introduction ("Quoted from Expenses 2024:") states nothing new either.
    given = "\n".join([draft.question, draft.known_text, *(source.title for source in draft.sources)])
    claims = wall.around("claim_supported", lambda: claims_of(text, given, judged=draft.judged)) or ()
    return Reading(
        draft=draft,
        text=text,
        chunks=wall.around("mrkdwn", lambda: chunks.split(text, draft.sources, draft.dialect, limit)) or (),
        prose=wall.around("mrkdwn", lambda: prose(text)) or text,
        claims=tuple(each for each in claims if _NO_WORDS.sub(" ", each.text).strip() not in draft.left_out),
    )


def _judged(draft: Draft, text: str, wall: _Wall) -> tuple[Reading, Found, tuple[Repair, ...]]:
    """What the rules look at, and what the sources say; a wrong citation is set right where that verifies better."""
    reading = _read(draft, text, wall)
    exempt = draft.own_words or draft.unsourced or not draft.sources  # they go out under a label that says so
    offered = None if exempt else wall.around("claim_supported", lambda: grounds(draft, text))
    if offered is None:
        return reading, (), ()
    reading, found = _grounded(offered, reading, wall)
    known = {source.id for source in draft.sources}
    doubtful = tuple(each for each in _doubted(reading, found) if each.cited and known.issuperset(each.cited))
    # A judge knows better than shared words which source says it.
    if not draft.repair or draft.judged or not doubtful:
        return reading, found, ()
    moved, repairs = wall.around("claim_supported", lambda: recite(offered, text, doubtful)) or (text, ())
    if repairs:
        other, left = _grounded(offered, _read(draft, moved, wall), wall)
        if _doubts(other, left) < _doubts(reading, found):  # else moves led to pages with the same numbers
            return other, left, repairs
    return reading, found, ()


def _doubts(reading: Reading, found: Found) -> tuple[int, int]:
    """What a moved citation must lessen: errors first, then sentences that their sources do not bear out."""
    return sum(1 for each in found if each.severity == "error"), len(_doubted(reading, found))


def _doubted(reading: Reading, found: Found) -> list[Claim]:
    """The claims that something speaks against: a finding, or that few of their words stand in what they cite."""
    return [
        claim
        for claim in reading.claims
        if claim.score < SUPPORTED or any(claim.start <= each.start and each.end <= claim.end for each in found)
    ]


def _grounded(offered: Grounds, reading: Reading, wall: _Wall) -> tuple[Reading, Found]:
    """The reading with what the sources say to its claims, and what speaks against them."""
    claims, found = wall.around("claim_supported", lambda: ground(offered, reading.claims)) or (reading.claims, ())
    if offered.judged:
        claims = tuple(_with_its_place(claim, reading.text) for claim in claims)
    return replace(reading, claims=claims), found


def _with_its_place(claim: Claim, text: str) -> Claim:
    """A numbered step also says when it comes: that it is quoted does not settle that, a judge does."""
    # Of 66 errors planted by a third hand both that passed had exchanged two quoted steps.
    line = text[text.rfind("\n", 0, claim.start) + 1 : claim.end]
    if claim.settled_by != "quotation" or not _STEP.match(line):
        return claim
    return replace(claim, supported="open", settled_by="nobody")
