"""One claim before its sources: evidence put together, every check run, other sources of the turn asked as well.

Promises: the same claim and sources give the same findings, most precise first. A source "bears a claim out" only if
nothing at all speaks against it there and it holds nearly all of the claim's words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from verification.answer import Claim, Draft, Source
from verification.date_check import date_findings
from verification.evidence import Cited, Evidence, Finding
from verification.identifier_check import identifier_findings, known_urls
from verification.language import detect
from verification.names import name_findings
from verification.number_check import number_findings
from verification.passages import Passage, analyse
from verification.polarity import polarity_findings
from verification.quotes import quote_findings
from verification.score import SUPPORTED, score

_BORNE_OUT = 0.75
_FEWEST_STEMS = 2


def known_passages(draft: Draft) -> tuple[Passage, ...]:
    """What counts as known without a source: the question and the thread so far."""
    return tuple(analyse(text) for text in (draft.question, draft.known_text) if text.strip())


def source_text(source: Source) -> str:
    """All of a source that the model saw and may state: its title and its text."""
    return f"{source.title}\n{source.text}" if source.title else source.text


def read_claim(claim: Claim, spoken: str | None, cited: Iterable[Source] = ()) -> Passage:
    """The claim read; where it is too short to tell its language, that of the answer or of what it cites is taken."""
    language = detect(claim.text) or spoken
    return analyse(claim.text, language or next((analyse(source_text(source)).language for source in cited), None))


def evidence_for(claim: Passage, sources: Iterable[Source], known: tuple[Passage, ...]) -> Evidence:
    """The claim with the sources it is to be checked against."""
    cited = tuple(Cited(id=source.id, passage=_read_like(claim, source_text(source))) for source in sources)
    return Evidence(claim=claim, cited=cited, known=known)


def _read_like(claim: Passage, text: str) -> Passage:
    """A source read; one too short to tell its language is taken to be in the claim's."""
    passage = analyse(text)
    return passage if passage.language or not claim.language else analyse(text, claim.language)


def examine(evidence: Evidence, draft: Draft) -> Iterator[Finding]:
    """Everything that speaks against the claim, precise evidence first."""
    yield from number_findings(evidence)
    yield from date_findings(evidence)
    yield from quote_findings(evidence)
    yield from identifier_findings(evidence, known_urls(source.url for source in draft.sources))
    yield from polarity_findings(evidence)
    yield from name_findings(evidence)


def bearing_out(claim: Passage, draft: Draft, but: Sequence[int]) -> tuple[int, ...]:
    """The ids of those sources, ``but`` left out, that by themselves bear the claim out."""
    if len(claim.stems) < _FEWEST_STEMS:
        return ()
    known = known_passages(draft)
    return tuple(
        source.id for source in draft.sources if source.id not in but and _bears_out(claim, source, draft, known)
    )


def _bears_out(claim: Passage, source: Source, draft: Draft, known: tuple[Passage, ...]) -> bool:
    evidence = evidence_for(claim, (source,), known)
    if not evidence.same_language or evidence.recall < _BORNE_OUT:
        return False
    return not any(examine(evidence, draft)) and score(evidence, ()) >= SUPPORTED
