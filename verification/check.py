"""The table of rules, and the one path from a draft to a verdict.

Repair, including that of links and citations, comes first. Then each claim is checked against its sources
(``claim_supported``), and the other rules check the text and the exact chunks that Slack would get.
``check`` never raises on bad input: if a rule, or a step before the rules, crashes, the draft has an error.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, TypeVar

from verification.claims.claims import claims as claims_of
from verification.evidence.evidence import SUPPORTED
from verification.evidence.verbatim import continues_paragraph
from verification.grounding import Basis, check_claims, fix_citations, read_basis
from verification.markup.chunks import CHUNK_LIMITS, split_chunks
from verification.markup.lines import ends_in_colon
from verification.markup.mrkdwn import remove_unencodable, remove_unsendable, repair
from verification.markup.scanner import prose
from verification.markup.serialised import unwrap
from verification.rules.injection import no_injection
from verification.rules.references import (
    KnownLinks,
    citation_resolves,
    cites_sources,
    no_broadcast,
    normalise_citations,
    show_as_code,
)
from verification.rules.secrets import no_secrets
from verification.rules.writing import addresses_question, coherent, minimum_length, not_empty, well_formed
from verification.types import Claim, Draft, Reading, Repair, RuleName, Source, Verdict, Violation

T = TypeVar("T")

_NUMBERED_STEP: Final = re.compile(r"[ \t]*\d{1,3}[.)][ \t]")
_CITATIONS_AND_MARKS: Final = re.compile(r"\[\d{1,12}\]|[*_|\s]+")
_CRASHED: Final = "The check itself failed on this text."

Violations = tuple[Violation, ...]
OnCrash = Callable[[RuleName, Exception], None]
"""Callback for each crash, so that the caller can log it: this package has no log."""


RULES: Final[Mapping[RuleName, Callable[[Reading], Iterator[Violation]]]] = {
    "not_empty": not_empty,
    "minimum_length": minimum_length,
    "mrkdwn": well_formed,
    "no_broadcast": no_broadcast,
    "no_secrets": no_secrets,
    "no_injection": no_injection,
    "cites_sources": cites_sources,
    "citation_resolves": citation_resolves,
    "addresses_question": addresses_question,
    "coherent": coherent,
}
"""All rules except ``claim_supported``, which also changes the claims.

``mrkdwn`` also reports ``no_markdown_bold`` and ``no_blockquotes``.
"""


@dataclass(slots=True)
class _Wall:
    """A wall (docs/architecture.md): if a step crashes, its rule counts as failed, and the caller continues."""

    on_crash: OnCrash | None
    failures: list[Violation] = field(default_factory=list)

    def around(self, rule: RuleName, step: Callable[..., T], *args: object) -> T | None:
        """Return the result of the step, or None after a crash."""
        try:
            return step(*args)
        except Exception as error:  # noqa: BLE001 - a wall: a crash of a rule fails the answer, not the caller
            remedy = "Write the answer more simply: short sentences, plain lists."
            self.failures.append(Violation(rule=rule, severity="error", detail=_CRASHED, remedy=remedy))
            if self.on_crash:
                self.on_crash(rule, error)
            return None


def check(draft: Draft, on_crash: OnCrash | None = None) -> Verdict:
    """Return the verdict on a draft. Spans refer to ``Verdict.text``. A crash is an error, never a pass.

    ``on_crash`` gets the rule and the exception of each crash, for the log. It must not raise.
    """
    wall = _Wall(on_crash)
    text, count = remove_unsendable(draft.text)
    question, known = remove_unsendable(draft.question)[0], remove_unsendable(draft.known_text)[0]
    sources = tuple(map(_clean_source, draft.sources))
    clean = replace(draft, text=text, question=question, known_text=known, sources=sources)
    removed = (Repair(kind="control", count=count),) if count else ()
    text, repairs = _repair_text(clean, wall)
    reading, unsupported, moved = _check_against_sources(clean, text, wall)
    broken = [each for name, rule in RULES.items() for each in wall.around(name, lambda: [*rule(reading)]) or ()]  # noqa: B023 - called at once
    if removed and not draft.repair:
        detail = "The text contains control characters or halves of characters."
        broken.append(replace(reading.violation("mrkdwn", (0, len(text)), detail, "Write plain text."), words=""))
    violations = dict.fromkeys([*wall.failures, *broken, *unsupported])
    return Verdict(
        passed=not any(each.severity == "error" for each in violations),
        text=reading.text,
        chunks=reading.chunks,
        violations=tuple(sorted(violations, key=lambda each: (each.start, each.end, each.rule))),
        repairs=(*removed, *repairs, *moved) if draft.repair else (),
        claims=reading.claims,
    )


def is_better(a: Verdict, b: Verdict) -> bool:
    """Return True if the first verdict is better: a pass first, then fewer errors, then fewer refuted claims."""

    def rank(verdict: Verdict) -> tuple[bool, bool, int, int, int]:
        hopeless = any(each.rule == "not_empty" or each.detail == _CRASHED for each in verdict.errors)
        unrefuted = sum(1 for claim in verdict.claims if claim.supported != "no")
        return verdict.passed, not hopeless, -len(verdict.errors), unrefuted, -len(verdict.violations)

    return rank(a) > rank(b)


@lru_cache(maxsize=256)  # an answer's attempts have the same sources
def _clean_source(source: Source) -> Source:
    clean = remove_unencodable
    return replace(source, title=clean(source.title), url=clean(source.url), text=clean(source.text))


def _repair_text(draft: Draft, wall: _Wall) -> tuple[str, tuple[Repair, ...]]:
    """Repair the text, then its links, then its citations. Return it unchanged if repair is off."""
    citable = () if draft.own_words or draft.unsourced else draft.sources
    steps: tuple[tuple[RuleName, Callable[..., tuple[str, tuple[Repair, ...]]], tuple[object, ...]], ...] = (
        ("mrkdwn", unwrap, ()),
        ("mrkdwn", repair, (draft.dialect,)),
        ("citation_resolves", show_as_code, (KnownLinks(draft),)),
        ("citation_resolves", normalise_citations, (citable,)),
    )
    text = draft.text
    repairs: tuple[Repair, ...] = ()
    for rule, step, arguments in steps if draft.repair else ():
        text, made = wall.around(rule, step, text, *arguments) or (text, ())
        repairs += made
    return text, repairs


def _check_against_sources(draft: Draft, text: str, wall: _Wall) -> tuple[Reading, Violations, tuple[Repair, ...]]:
    """Check the claims against the sources, and correct wrong citations if that gives a better verdict."""
    exempt = draft.own_words or draft.unsourced or not draft.sources  # they are sent with a label that says so
    basis = None if exempt else wall.around("claim_supported", read_basis, draft, text)
    reading, violations = _build_reading(draft, text, basis, wall)
    # A judge finds the right source more reliably than a count of shared words.
    if basis is None or not draft.repair or draft.has_judge:
        return reading, violations, ()
    ids, suspects = {source.id for source in draft.sources}, _suspect_claims(reading, violations)
    movable = [each for each in suspects if each.cited and ids.issuperset(each.cited)]
    moved, repairs = wall.around("claim_supported", fix_citations, basis, text, movable) or (text, ())
    if repairs:
        other, other_violations = _build_reading(draft, moved, basis, wall)
        other_suspects = _suspect_claims(other, other_violations)
        # Otherwise citations moved to pages with the same numbers.
        if (_count_errors(other_violations), len(other_suspects)) < (_count_errors(violations), len(suspects)):
            return other, other_violations, repairs
    return reading, violations, ()


def _count_errors(violations: Violations) -> int:
    return sum(1 for each in violations if each.severity == "error")


def _suspect_claims(reading: Reading, violations: Violations) -> list[Claim]:
    """Return claims with a violation, or with few words in common with their sources."""
    return [each for each in reading.claims if each.score < SUPPORTED or any(map(each.surrounds, violations))]


def _may_mislead(quotation: Claim, before: str, text: str, sources: Sequence[Source]) -> bool:
    """Return True if a quotation may be right in its words and wrong in its place (docs/decisions/0031).

    It does not prove the order of steps, nor what a lead-in says of the lines below it, nor that the answer is about
    what its source speaks of there.
    """
    if ends_in_colon(quotation.text) or _NUMBERED_STEP.match(text, text.rfind("\n", 0, quotation.start) + 1):
        return True
    cited = (source.text for source in sources if source.id in quotation.cited)
    return not quotation.code and continues_paragraph(quotation.text, before, cited)


def _build_reading(draft: Draft, text: str, basis: Basis | None, wall: _Wall) -> tuple[Reading, Violations]:
    """Build the reading for the rules. After a crash they read all text as prose without claims, the strictest view."""
    # The title of a source in an introduction ("Quoted from Expenses 2024:") states nothing new either.
    known_text = "\n".join([draft.question, draft.known_text, *(source.title for source in draft.sources)])
    found = wall.around("claim_supported", lambda: claims_of(text, known_text, has_judge=draft.has_judge)) or ()
    claims = tuple(each for each in found if _CITATIONS_AND_MARKS.sub(" ", each.text).strip() not in draft.left_out)
    limit = CHUNK_LIMITS[draft.dialect]
    chunks = wall.around("mrkdwn", split_chunks, text, draft.sources, draft.dialect, limit) or ()
    plain = wall.around("mrkdwn", prose, text) or text
    checked = wall.around("claim_supported", check_claims, basis, claims) if basis else None
    claims, violations = checked or (claims, ())
    if basis and basis.has_judge:
        befores = ("", *(each.text for each in claims))
        claims = tuple(
            replace(each, supported="open", settled_by="nobody")
            if each.settled_by == "quotation" and _may_mislead(each, before, text, draft.sources)
            else each
            for each, before in zip(claims, befores, strict=False)
        )
    return Reading(draft=draft, text=text, chunks=chunks, prose=plain, claims=claims), violations
