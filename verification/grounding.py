"""Check every claim against its cited sources (``claim_supported``), and correct citations of the wrong source.

A claim is checked against all its sources together. A finding says which source says what instead. Word overlap
between different languages is never used.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from verification.checks.dates import date_findings
from verification.checks.identifiers import code_findings, identifier_findings
from verification.checks.numbers import equations, is_percent, number_findings
from verification.checks.wording import quote_findings, wording_findings
from verification.evidence.evidence import SUPPORTED, Cited, Evidence, Finding, score
from verification.evidence.passages import Passage, analyse
from verification.evidence.verbatim import is_quotation, is_verbatim_sentence
from verification.markup.links import normalise_url
from verification.markup.mrkdwn import remove_unsendable
from verification.markup.scanner import Edit, apply_edits, blank_spans
from verification.rules.injection import without_orders
from verification.rules.references import KnownLinks, citations
from verification.text.language import detect_language
from verification.types import Claim, Draft, Repair, Source, Violation

_MIN_WORD_SHARE = 0.75  # minimum share of the words for a source to be named as the right one
_MIN_STEMS = 2  # many sources share a single word
_DAY = len("2026-11-23")
_MAX_CLAIMS = 50  # wrong citations to correct; an answer with more needs another attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """The texts that the claims of one draft are checked against: sources, known text, context and links."""

    sources: Mapping[int, Cited]
    known: tuple[Passage, ...]
    context: tuple[Passage, ...]
    urls: frozenset[str]
    answer: str
    question: str
    has_judge: bool  # True if a judge will be asked about open claims

    def read_claim(self, claim: Claim) -> Passage:
        """Return the claim, without its opening, as a passage. Without a language of its own it gets the sources'."""
        language = detect_language(claim.text) or detect_language(self.answer)
        if language is None:  # the language of a source with most of the words, of the question, or of the first source
            cited = [self.sources[number].passage for number in claim.cited if number in self.sources]
            words = analyse(claim.text).words
            languages = [each.language for each in cited if 2 * len(words & each.words) > len(words)][:1]
            languages += [detect_language(self.question), *(each.language for each in cited[:1])]
            language = next(filter(None, languages), None)
        return analyse(blank_spans(claim.text, [(0, claim.opening)]), language)

    def evidence_for(self, claim: Passage, numbers: Sequence[int]) -> Evidence:
        """Return the claim with the sources it is checked against."""
        cited = [(number, self.sources[number].passage) for number in numbers]
        # If a source is too short to detect its language, use the claim's.
        known = [(number, each if each.language else analyse(each.text, claim.language)) for number, each in cited]
        others = tuple(source.passage for number, source in self.sources.items() if number not in numbers)
        sources = tuple(Cited(*each) for each in known)
        return Evidence(claim=claim, cited=sources, others=others, known=self.known, context=self.context)

    def findings_against(self, evidence: Evidence) -> Iterator[Finding]:
        """Yield all findings against a claim, the most precise kind first."""
        yield from number_findings(evidence)
        yield from date_findings(evidence)
        yield from quote_findings(evidence)
        yield from identifier_findings(evidence, self.urls)
        yield from wording_findings(evidence)

    def supporting_sources(self, claim: Passage, but: Sequence[int]) -> tuple[int, ...]:
        """The numbers of the sources, except ``but``, that each support the claim alone."""
        if len(claim.stems) < _MIN_STEMS:
            return ()

        def supports(evidence: Evidence) -> bool:
            if not evidence.same_language or len(claim.stems & evidence.stems) < _MIN_WORD_SHARE * len(claim.stems):
                return False
            return next(self.findings_against(evidence), None) is None and score(evidence) >= SUPPORTED

        return tuple(each for each in self.sources if each not in but and supports(self.evidence_for(claim, (each,))))


def read_basis(draft: Draft, text: str) -> Basis:
    """Build the basis that ``text``, the answer of the draft, is checked against."""
    answer = analyse(text)
    # Other sentences may use the results and percentages of correct calculations, such as a sum in a list below.
    right = [each for each in equations(answer) if each.is_right]
    reusable = [each.result for each in right] + [part for each in right for part in each.operands if is_percent(part)]
    calculated = "; ".join(text[each.start : each.end] for each in reusable if each)
    return Basis(
        sources={source.id: Cited(source.id, _read_source(source)) for source in draft.sources},
        known=tuple(analyse(known) for known in (draft.question, draft.known_text, calculated) if known.strip()),
        context=tuple(analyse(line) for line in draft.context.split("\n", 1) if line.strip()),  # today, earlier answers
        urls=KnownLinks(draft).source_urls,
        answer=text,
        question=draft.question,
        has_judge=draft.has_judge,
    )


@lru_cache(maxsize=256)  # an answer's attempts have the same sources
def _read_source(source: Source) -> Passage:
    """Return what the model saw and may state: title, text and last change. Orders to an assistant are not evidence."""
    text = without_orders(f"{source.title}\n{source.text}").strip("\n")
    return analyse(remove_unsendable("\n".join(filter(None, (text, source.updated_at[:_DAY]))))[0])


def check_claims(basis: Basis, claims: tuple[Claim, ...]) -> tuple[tuple[Claim, ...], tuple[Violation, ...]]:
    """Settle claims as far as the rules can, and return the violations with their spans in the answer."""
    results = [_check_claim(basis, claim) for claim in claims]
    return tuple(claim for claim, _ in results), tuple(each for _, violations in results for each in violations)


def _check_claim(basis: Basis, claim: Claim) -> tuple[Claim, list[Violation]]:
    """Settle one claim and collect its violations. No rule refutes a quotation, but a judge may."""
    cited = tuple(number for number in claim.cited if number in basis.sources)
    if not cited:  # it stays open: another rule reports the missing citation
        return replace(claim, score=0.0), []
    quotation = replace(claim, supported="yes", settled_by="quotation")
    texts = [basis.sources[number].passage.text for number in cited]
    if not claim.code and is_verbatim_sentence(claim.text, texts, lambda url: normalise_url(url) in basis.urls):
        return quotation, []
    evidence = basis.evidence_for(basis.read_claim(claim), cited)
    all_texts = (source.passage.text for source in basis.sources.values())
    findings = tuple(code_findings(evidence, all_texts, basis.urls) if claim.code else basis.findings_against(evidence))
    refuted = any(finding.is_error(has_judge=basis.has_judge) for finding in findings)
    # Across languages words prove nothing, but a source in the claim's own language that has them all raises a doubt.
    foreign = not findings and not evidence.same_language
    elsewhere = basis.supporting_sources(evidence.claim, cited) if (refuted or foreign) and not claim.code else ()
    if foreign and elsewhere:
        findings = (evidence.not_found((0, len(claim.text)), "doubtful"),)
    if refuted:
        claim = replace(claim, supported="no", settled_by="rule")
    # A shortened sentence may have lost a condition, which a judge would see (docs/decisions/0031).
    elif not (findings or claim.opening) and (
        evidence.quotes_lines if claim.code else is_quotation(evidence, exactly=basis.has_judge)
    ):
        claim = quotation
    claim = replace(claim, score=1.0 if claim.code else score(evidence, refuted=refuted))
    return claim, [_violation(basis, claim, finding, elsewhere) for finding in findings]


def _violation(basis: Basis, claim: Claim, finding: Finding, elsewhere: tuple[int, ...]) -> Violation:
    """The finding as a violation. The remedy names another source if that one supports the sentence."""
    remedy = f"Cite [{elsewhere[0]}] instead: that source supports this sentence." if elsewhere else finding.remedy
    is_error = finding.is_error(has_judge=basis.has_judge)
    return replace(claim.violation(finding.span, finding.detail, remedy), severity="error" if is_error else "warning")


def fix_citations(basis: Basis, text: str, claims: Sequence[Claim]) -> tuple[str, tuple[Repair, ...]]:
    """Return ``text`` with corrected citations, and their number. ``claims`` are its suspect claims.

    A citation is corrected if exactly one other source of the turn supports the sentence. Only the bracket changes.
    """
    edits: list[Edit] = []
    brackets, count = citations(text), 0
    for claim in claims[:_MAX_CLAIMS]:
        own = [each for each in brackets if claim.start <= each.start and each.end <= claim.end]
        # A shared citation stays: it may be right for the other sentences.
        if not own or {number for each in own for number in each.ids} != set(claim.cited):
            continue
        others = basis.supporting_sources(basis.read_claim(claim), claim.cited)
        if len(others) == 1:
            edits += [Edit(each.start, each.end, "" if number else f"[{others[0]}]") for number, each in enumerate(own)]
            count += 1
    return apply_edits(text, edits), (Repair(kind="citation_source", count=count),) if count else ()
