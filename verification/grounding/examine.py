"""One claim before its sources: evidence put together, every check run, the other sources of the turn asked as well."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from verification.checks.dates import date_findings
from verification.checks.equations import right_results
from verification.checks.identifiers import identifier_findings, is_known_url, known_urls
from verification.checks.numbers import number_findings
from verification.checks.quotes import quote_findings
from verification.checks.wording import wording_findings
from verification.claims.headlines import announcement_end
from verification.evidence.evidence import Cited, Evidence, Finding
from verification.evidence.passages import Passage, analyse
from verification.evidence.score import SUPPORTED, score
from verification.evidence.verbatim import is_quoted, is_recited
from verification.rules.injection import orders_in, without_orders
from verification.text.language import detect
from verification.types import Claim, Draft, Source

_BORNE_OUT = 0.75  # of the words: a source that has fewer is not named as the right one
_FEWEST_STEMS = 2  # a single word stands in many sources
_DAY = len("2026-11-23")

_Check = Callable[[Evidence], Iterator[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """What the claims of one draft are checked against: its sources, what is known without them, its links.

    ``said`` is the answer and the question. ``judged``: a judge will be asked about what stays open.
    """

    sources: Mapping[int, Cited]
    known: tuple[Passage, ...]
    context: tuple[Passage, ...]
    urls: frozenset[str]
    said: tuple[str, str]
    judged: bool

    def real(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Those numbers that are sources, each once."""
        return tuple(number for number in dict.fromkeys(numbers) if number in self.sources)

    def read(self, claim: Claim) -> Passage:
        """The claim read; where neither it nor the answer tells its language, that of what it cites is taken.

        "Short answer:" before it is blanked out: no source has these words, and every offset stays.
        """
        cited = [self.sources[number].passage for number in self.real(claim.cited)]
        language = detect(claim.text) or detect(self.said[0]) or _shared(claim.text, cited) or detect(self.said[1])
        lead = announcement_end(claim.text)
        return analyse(" " * lead + claim.text[lead:], language or next((passage.language for passage in cited), None))

    @property
    def texts(self) -> tuple[str, ...]:
        """The sources' texts."""
        return tuple(source.passage.text for source in self.sources.values())

    def recites(self, claim: Claim, numbers: Iterable[int]) -> bool:
        """Whether one of these sources has the claim word for word as a sentence of its own."""
        texts = [self.sources[number].passage.text for number in numbers]
        return not claim.code and is_recited(claim.text, texts, lambda url: is_known_url(url, self.urls))

    def quotes(self, evidence: Evidence) -> bool:
        """Whether a sentence of a cited source has the claim's words; all of them, where a judge could tell more."""
        told = [hit.text for hit in evidence.hits]
        return is_quoted(evidence.claim.text, told, whole=self.judged)

    def evidence(self, claim: Passage, numbers: Iterable[int]) -> Evidence:
        """The claim with the sources it is to be checked against."""
        cited = tuple(_like(claim, self.sources[number]) for number in numbers)
        return Evidence(claim=claim, cited=cited, known=self.known, context=self.context)

    def against(self, evidence: Evidence) -> tuple[Finding, ...]:
        """Everything that speaks against a claim, precise evidence first."""
        return tuple(finding for check in self._checks for finding in check(evidence))

    @property
    def _checks(self) -> tuple[_Check, ...]:
        return (
            number_findings,
            date_findings,
            quote_findings,
            partial(identifier_findings, urls=self.urls),
            wording_findings,
        )

    def bearing_out(self, claim: Passage, but: Sequence[int]) -> tuple[int, ...]:
        """The numbers of those sources, ``but`` left out, that by themselves bear the claim out."""
        if len(claim.stems) < _FEWEST_STEMS:
            return ()
        return tuple(number for number in self.sources if number not in but and self._bears_out(claim, number))

    def _bears_out(self, claim: Passage, number: int) -> bool:
        evidence = self.evidence(claim, (number,))
        if not evidence.same_language or evidence.recall < _BORNE_OUT:
            return False
        spoken_against = any(True for check in self._checks for _ in check(evidence))
        return not spoken_against and score(evidence, ()) >= SUPPORTED


def grounds(draft: Draft, text: str) -> Grounds:
    """What a draft offers to check ``text``, its answer, against."""
    calculated = right_results(analyse(text))
    return Grounds(
        sources={
            source.id: Cited(id=source.id, passage=analyse(without_orders(source_text(source), orders)))
            for source, orders in zip(draft.sources, orders_in(draft.sources), strict=True)
        },
        known=tuple(analyse(known) for known in (draft.question, draft.known_text, calculated) if known.strip()),
        context=(analyse(draft.context),) if draft.context.strip() else (),
        urls=known_urls(source.url for source in draft.sources),
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
