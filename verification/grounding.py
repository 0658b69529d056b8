"""Whether every claim stands in what it cites (``claim_supported``); a citation of another source is set right.

A claim is checked against all it cites together. Each finding says which source, and what stands there instead. Overlap
between different languages is never used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from verification.checks.dates import date_findings
from verification.checks.identifiers import code_findings, identifier_findings
from verification.checks.numbers import number_findings, rightly_calculated
from verification.checks.wording import quote_findings, wording_findings
from verification.claims.small_talk import announcement_end
from verification.evidence.evidence import SUPPORTED, Cited, Evidence, Finding, score
from verification.evidence.passages import Passage, analyse
from verification.evidence.verbatim import is_quoted, is_recited, is_row_read_out, unwrapped
from verification.markup.link_targets import normal
from verification.rules.citations import Citation, citations
from verification.rules.injection import orders_in, without_orders
from verification.text.language import detect
from verification.types import Claim, Draft, Repair, Source, Violation

_BORNE_OUT = 0.75  # of the words: a source that has fewer is not named as the right one
_FEWEST_STEMS = 2  # a single word stands in many sources
_DAY = len("2026-11-23")
_LONGEST_WORDS = 200
_MOST_CLAIMS = 50  # with a wrong citation: an answer with more is to be written anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """What the claims of one draft are checked against: its sources, what is known without them, its links."""

    sources: Mapping[int, Cited]
    known: tuple[Passage, ...]
    context: tuple[Passage, ...]
    urls: frozenset[str]
    said: tuple[str, str]  # the answer and the question
    judged: bool  # a judge will be asked about what stays open

    def real(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Those numbers that are sources, each once."""
        return tuple(number for number in dict.fromkeys(numbers) if number in self.sources)

    def read(self, claim: Claim) -> Passage:
        """The claim read; where neither it nor the answer tells its language, that of what it cites is taken."""
        cited = [self.sources[number].passage for number in self.real(claim.cited)]
        language = detect(claim.text) or detect(self.said[0]) or _shared(claim.text, cited) or detect(self.said[1])
        lead = announcement_end(claim.text)  # "Short answer:" stands in no source; blanked out, every offset stays
        return analyse(" " * lead + claim.text[lead:], language or next((passage.language for passage in cited), None))

    def quotes(self, evidence: Evidence) -> bool:
        """Whether a sentence of a cited source has the claim's words (all of them, where a judge could tell more).

        Or whether it stands there over the end of a line, or as the row of a table.
        """
        claim, told = evidence.claim.text, [hit.text for hit in evidence.hits]
        # A shortened sentence may have lost a condition: a judge could tell (docs/decisions/0031).
        if is_quoted(claim, told, whole=self.judged):
            return True
        texts = [source.passage.text for source in evidence.cited]
        return is_recited(claim, map(unwrapped, texts)) or is_row_read_out(claim, texts)

    def evidence(self, claim: Passage, numbers: Iterable[int]) -> Evidence:
        """The claim with the sources it is to be checked against."""
        cited = tuple(_like(claim, self.sources[number]) for number in numbers)
        return Evidence(claim=claim, cited=cited, known=self.known, context=self.context)

    def against(self, evidence: Evidence) -> Iterator[Finding]:
        """Everything that speaks against a claim, precise evidence first."""
        yield from number_findings(evidence)
        yield from date_findings(evidence)
        yield from quote_findings(evidence)
        yield from identifier_findings(evidence, self.urls)
        yield from wording_findings(evidence)

    def bearing_out(self, claim: Passage, but: Sequence[int]) -> tuple[int, ...]:
        """The numbers of those sources, ``but`` left out, that by themselves bear the claim out."""
        if len(claim.stems) < _FEWEST_STEMS:
            return ()
        return tuple(number for number in self.sources if number not in but and self._bears_out(claim, number))

    def _bears_out(self, claim: Passage, number: int) -> bool:
        evidence = self.evidence(claim, (number,))
        if not evidence.same_language or len(claim.stems & evidence.stems) < _BORNE_OUT * len(claim.stems):
            return False
        spoken_against = any(True for _ in self.against(evidence))  # the first finding is enough
        return not spoken_against and score(evidence, ()) >= SUPPORTED


def grounds(draft: Draft, text: str) -> Grounds:
    """What a draft offers to check ``text``, its answer, against."""
    calculated = rightly_calculated(analyse(text))  # known to its other sentences too: a sum may stand in a list below
    return Grounds(
        sources={
            # What a source orders the assistant is no evidence.
            source.id: Cited(id=source.id, passage=analyse(without_orders(source_text(source), orders)))
            for source, orders in zip(draft.sources, orders_in(draft.sources), strict=True)
        },
        known=tuple(analyse(known) for known in (draft.question, draft.known_text, calculated) if known.strip()),
        context=(analyse(draft.context),) if draft.context.strip() else (),
        urls=frozenset(normal(source.url) for source in draft.sources),
        said=(text, draft.question),
        judged=draft.judged,
    )


def source_text(source: Source) -> str:
    """All of a source that the model saw and may state: its title, its text and the day of its last change."""
    return "\n".join(part for part in (source.title, source.text, source.updated_at[:_DAY]) if part)


def _shared(text: str, cited: Sequence[Passage]) -> str | None:
    """The language of a source that has most words of a text too short to tell its own."""
    words = analyse(text).words
    return next((passage.language for passage in cited if 2 * len(words & passage.words) > len(words)), None)


def _like(claim: Passage, cited: Cited) -> Cited:
    """A source too short to tell its language is taken to be in the claim's."""
    if cited.passage.language or not claim.language:
        return cited
    return Cited(id=cited.id, passage=analyse(cited.passage.text, claim.language))


def ground(grounds: Grounds, claims: tuple[Claim, ...]) -> tuple[tuple[Claim, ...], tuple[Violation, ...]]:
    """The claims settled as far as rules can settle them, and what was found against them, with the claims' spans."""
    found = [_checked(grounds, claim) for claim in claims]
    return tuple(claim for claim, _ in found), tuple(violation for _, against in found for violation in against)


def _checked(grounds: Grounds, claim: Claim) -> tuple[Claim, list[Violation]]:
    """A claim as it was judged, and what was found against it; nothing may speak against a quotation."""
    cited = grounds.real(claim.cited)
    if not cited:  # it stays open: that it cites nothing that exists is for other rules to fail
        return replace(claim, score=0.0), []
    texts = [grounds.sources[number].passage.text for number in cited]
    if not claim.code and is_recited(claim.text, texts, lambda url: normal(url) in grounds.urls):
        return _quotation(claim), []
    evidence = grounds.evidence(grounds.read(claim), cited)
    everything = (source.passage.text for source in grounds.sources.values())
    findings = tuple(code_findings(evidence, everything, grounds.urls) if claim.code else grounds.against(evidence))
    refuted = any(finding.is_error(judged=grounds.judged) for finding in findings)
    # Words tell nothing across languages; a source in the claim's own that says it all is worth a doubt.
    foreign = not findings and not evidence.same_language
    elsewhere = grounds.bearing_out(evidence.claim, cited) if (refuted or foreign) and not claim.code else ()
    if foreign and elsewhere:
        findings = (evidence.nowhere("overlap", (0, len(claim.text)), "doubtful"),)
    claim = replace(claim, score=1.0 if claim.code else score(evidence, findings, refuted=refuted))
    if refuted:
        claim = replace(claim, supported="no", settled_by="rule")
    elif not findings and (evidence.has_lines if claim.code else grounds.quotes(evidence)):
        claim = _quotation(claim)
    return claim, [_violation(grounds, claim, finding, elsewhere) for finding in findings]


def _quotation(claim: Claim) -> Claim:
    return replace(claim, supported="yes", settled_by="quotation")


def _violation(grounds: Grounds, claim: Claim, finding: Finding, elsewhere: tuple[int, ...]) -> Violation:
    """The finding as a violation; where another source bears the sentence out, the remedy names it."""
    start, end = finding.span
    remedy = f"Cite [{elsewhere[0]}] instead: that source bears this sentence out." if elsewhere else finding.remedy
    return Violation(
        rule="claim_supported",
        severity="error" if finding.is_error(judged=grounds.judged) else "warning",
        start=claim.start + start,
        end=claim.start + end,
        words=claim.text[start:end][:_LONGEST_WORDS],
        detail=finding.detail,
        remedy=remedy,
    )


def recite(grounds: Grounds, text: str, claims: tuple[Claim, ...]) -> tuple[str, tuple[Repair, ...]]:
    """``text`` with citations set right, and how many were; ``claims`` are those of ``text`` that are in doubt.

    A citation is set right where the fact is right and exactly one other source of the turn bears it out. Nothing but
    the bracket changes.
    """
    pieces: list[str] = []
    last, count = 0, 0
    marks = citations(text)
    for claim in claims[:_MOST_CLAIMS]:
        own = [mark for mark in marks if claim.start <= mark.start and mark.end <= claim.end]
        right = _right_source(grounds, claim, own) if claim.start >= last else None
        if right is None:
            continue
        for index, mark in enumerate(own):
            pieces.append(text[last : mark.start] + (f"[{right}]" if index == 0 else ""))
            last = mark.end
        count += 1
    repairs = (Repair(kind="citation_source", count=count),) if count else ()
    return "".join([*pieces, text[last:]]), repairs


def _right_source(grounds: Grounds, claim: Claim, own: list[Citation]) -> int | None:
    """The one source that bears the claim out; None if there is none, or several, or the claim shares its citation."""
    # A citation that several sentences share stays: it may be right for the others.
    if not own or {number for mark in own for number in mark.ids} != set(claim.cited):
        return None
    others = grounds.bearing_out(grounds.read(claim), claim.cited)
    return others[0] if len(others) == 1 else None
