"""Turns outcomes into words: a verified answer ready to be shown, or one of Orion's own messages."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from typing import Literal, TypeVar

from agent.model.protocol import ModelError, ModelErrorKind
from agent.outcome import Failed, OutOfBudget, Refused
from agent.texts.catalogue import join_names, own_message, texts
from agent.tools.builtin.knowledge import DOCUMENTS, LIST_TITLE, NO_DOCUMENTS
from agent.turn.progress import Progress
from verification.judgement import is_unconfirmed
from verification.markup.chunks import split_chunks
from verification.markup.lines import CITATION
from verification.markup.links import is_absolute, quote_url
from verification.markup.scanner import Edit, apply_edits, segments
from verification.rules.injection import safe_title
from verification.rules.references import Order, at_named_section, citation_order, renumber
from verification.types import Answer, Claim, RuleName, Source, Verdict, Violation

Located = TypeVar("Located", Violation, Claim)
_MAX_NAMED = 3
Label = Literal["partial", "general", "own_words"]

_REASONS: dict[RuleName, str] = {
    "claim_supported": "reason_claim",
    "cites_sources": "reason_citation",
    "citation_resolves": "reason_citation",
    "no_broadcast": "reason_safety",
    "no_secrets": "reason_safety",
    "no_injection": "reason_safety",
}

_MODEL_PHRASES: dict[ModelErrorKind, str] = {
    "ConfigurationError": "model_setup",
    "AuthenticationError": "model_setup",
    "QuotaError": "model_setup",
    "TokenLimitError": "too_long",
    "RefusalError": "model_refused",
}


def to_answer(
    progress: Progress, verdict: Verdict, *, attempts: int, label: Label | None = None, note: str = ""
) -> Answer:
    """Return the verified text as an answer: sources in the order of the text, then its label and the ``note``."""
    order = citation_order(verdict.text, progress.sources)
    text = renumber(verdict.text, order)
    cited = {source.id: source for source in progress.sources}
    claims = tuple(
        replace(
            _shift(claim, verdict.text, order),
            cited=tuple(order[n] for n in claim.cited if n in order),
            lines=tuple((order[n], line) for n, line in claim.lines if n in order),
        )
        for claim in verdict.claims
    )
    sources = tuple(at_named_section(replace(cited[old], id=new), claims) for old, new in order.items())
    return Answer(
        text=text,
        chunks=split_chunks(_link_sections(text, sources, claims), sources),
        sources=sources,
        verified=True,
        rules_only=any(claim.supported == "open" for claim in verdict.claims),
        in_part=verdict.in_part,
        attempts=attempts,
        repairs=verdict.repairs,
        violations=tuple(_shift(violation, verdict.text, order) for violation in verdict.violations),
        claims=claims,
        label=" ".join(filter(None, (progress.say(label) if label else "", note))),
    )


def _link_sections(text: str, sources: Sequence[Source], claims: Sequence[Claim]) -> str:
    """Return the text with a link in place of each citation of a claim that names another section of its source."""
    edits: list[Edit] = []
    by_number = {str(source.id): source for source in sources if is_absolute(source.url)}
    for part in (each for each in segments(text) if each.kind == "text"):
        for found in CITATION.finditer(text, part.start, part.end):
            source = by_number.get(found[1])
            around = [claim for claim in claims if claim.start <= found.start() < claim.end]
            if source and (url := at_named_section(source, around).url) != source.url:
                edits.append(Edit(found.start(), found.end(), f"<{quote_url(url)}|{found[0]}>"))
    return apply_edits(text, edits)


def _shift(item: Located, text: str, order: Order) -> Located:
    start, end = (len(renumber(text[:place], order)) for place in (item.start, item.end))
    return replace(item, start=start, end=end)


def missing_note(progress: Progress, verdict: Verdict | None = None) -> str:
    """Return a sentence about the gaps in a partial answer: the subjects of the failed claims, or "the rest"."""
    errors = verdict.errors if verdict else ()
    claims = verdict.claims if verdict else ()
    failed = [claim for claim in claims if any(e.start < claim.end and claim.start < e.end for e in errors)]
    ids = dict.fromkeys(number for claim in failed for number in claim.cited)
    titles = {escape(safe_title(source), quote=False): None for source in progress.sources if source.id in ids}
    quoted = [progress.say("quoted_title", title=title) for title in [*titles][:_MAX_NAMED]]
    named = join_names(quoted, progress.question.reply_language)
    note = progress.say("partial_about" if named else "partial_rest", titles=named)
    return " ".join(filter(None, (note, away_note(progress))))


def away_note(progress: Progress) -> str:
    """Return sentences about the places that could not be searched and the documents not read yet, or an empty text."""
    known = texts("en")
    keys = {place: f"away_{place}" for place in progress.places_away}
    names = [progress.say(key) if key in known else place for place, key in keys.items()]
    away = progress.say("service_away", names=join_names(names, progress.question.reply_language)) if names else ""
    so_far = progress.documents_so_far
    reading = "" if so_far is None else progress.say("still_reading", n=f"{so_far:,}")
    return " ".join(filter(None, (away, reading)))


def refusal(progress: Progress, reason: str) -> Refused | Failed:
    """Return the message that the documents have no answer, with the closest ones, are not read yet, none, or away."""
    if DOCUMENTS in progress.places_away:
        return knowledge_failure(progress)
    if progress.documents_so_far is not None:
        text = progress.say("not_found_yet", note=away_note(progress))
        return Refused(answer=own_message(text), reason="still_reading")
    if not progress.sources and any(result.content == NO_DOCUMENTS for result in progress.results):
        text = "\n".join(filter(None, [progress.say("no_documents"), away_note(progress)]))
        return Refused(answer=own_message(text), reason=reason)
    return Refused(answer=_message(progress, progress.say("not_found")), reason=reason)


def verification_failure(progress: Progress, verdict: Verdict, *, attempts: int) -> Failed:
    """Return a message about the claims that could not be verified and why, never the draft itself."""
    reasons = dict.fromkeys(
        "reason_unchecked" if is_unconfirmed(violation) else _REASONS.get(violation.rule, "reason_form")
        for violation in verdict.errors
    )
    why = [f"• {progress.say(reason)}" for reason in reasons]
    head = progress.say("not_verified_drafts", n=str(attempts)) if attempts > 1 else progress.say("not_verified")
    answer = replace(_message(progress, head, why), attempts=attempts, violations=verdict.violations)
    return Failed(answer=answer, reason="verification")


def model_failure(progress: Progress, error: ModelError) -> Failed:
    """Return the message that the model was not reachable, or declined."""
    text = progress.say(_MODEL_PHRASES.get(error.kind, "model_down"))
    return Failed(answer=own_message(text), reason=error.kind, retry_after_s=error.retry_after_s)


def knowledge_failure(progress: Progress) -> Failed:
    """Return the message that the documents were unreachable, so finding nothing proves nothing."""
    return Failed(answer=own_message(progress.say("knowledge_down")), reason="KnowledgeAwayError")


def budget_notice(progress: Progress, limit: str) -> OutOfBudget:
    """Return the message that a limit of the turn was reached."""
    text = progress.say("out_of_time" if limit == "deadline" else "out_of_budget")
    return OutOfBudget(answer=_message(progress, text), reason=limit)


def _message(progress: Progress, head: str, lines: Iterable[str] = ()) -> Answer:
    # Only name the best passages, one per document: their closest sentences usually do not help.
    first: dict[str, Source] = {}
    for source in progress.sources:
        if source.origin != "thread" and source.title != LIST_TITLE:
            page = source.url.partition("#")[0] or source.title.partition(" › ")[0]
            first.setdefault(page, at_named_section(source, ()))
    near = tuple(first.values())[:_MAX_NAMED]
    parts = [head, *lines, *filter(None, [away_note(progress)])]
    parts += ["", progress.say("nearest")] if near else []
    for source in near:
        title = escape(safe_title(source), quote=False)
        parts.append(f"• <{source.url}|{title.replace('|', '¦')}>" if source.url else f"• {title}")
    parts += ["", progress.say("try_keyless" if progress.model.quotes_only else "try_rephrase")]
    text = "\n".join(parts)
    return Answer(text=text, chunks=(text,), sources=near)
