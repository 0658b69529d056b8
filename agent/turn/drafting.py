"""Write, verify and give feedback, for up to ``budget.attempts`` drafts. The best one counts.

A draft that fails a rule or the judge is written again, after feedback that names the words and the fix. In the end the
sentences that fail are left out; if too little remains, the person gets a polite failure message. People never see a
draft that failed, not even in parts or in an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import reduce

import structlog

from agent.model.chat_reply import TagStream, TypedText
from agent.model.prompts import prompt_text, says_not_found
from agent.model.protocol import ModelError, WriteContext
from agent.outcome import Answered, Failed, Partial, Refused, TurnOutcome, Unsourced
from agent.tasks import background_tasks
from agent.tools.builtin.knowledge import DOCUMENTS
from agent.turn.events import ModelEnd, ModelStart, Thinking, Token, Verification
from agent.turn.judging import AttemptJudge
from agent.turn.live import LiveAnswer, check_draft
from agent.turn.progress import DISCARDED, EarlyDraft, Progress
from agent.turn.replies import (
    Label,
    away_note,
    budget_notice,
    knowledge_failure,
    missing_note,
    refusal,
    to_answer,
    verification_failure,
)
from observability.logging import Length
from verification.check import is_better
from verification.feedback import retry_text
from verification.judgement import only_unconfirmed, without_unconfirmed
from verification.rules.references import citations
from verification.types import Draft, Verdict

log = structlog.get_logger()

MAX_DRAFT_CHARS = 60_000  # five times Slack's message limit: a longer draft will not end
# Of a draft and its sources: the check takes some milliseconds; a thread would take the processor from the same turns.
MAX_CHARS_ON_LOOP = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One draft and its verdict."""

    draft: Draft
    verdict: Verdict
    passed_rules: bool = False  # before the judge
    is_complete: bool = True  # False if the model was stopped at the first fault, so the rest of the draft is unknown

    def better_than(self, other: Attempt) -> bool:
        """Rank a draft above one that failed the rules, then above one cut short, then by verdict."""
        if (self.passed_rules, self.is_complete) != (other.passed_rules, other.is_complete):
            return (self.passed_rules, self.is_complete) > (other.passed_rules, other.is_complete)
        return is_better(self.verdict, other.verdict)


async def write_answer(progress: Progress, *, summary: str = "") -> TurnOutcome:
    """Write up to ``budget.attempts`` drafts. The ``summary`` of the action ``complete`` counts as the first."""
    attempts: list[Attempt] = []
    requests: list[WriteContext] = []
    for number in range(1, progress.budget.attempts + 1):
        given = summary if number == 1 else ""
        if not given and progress.exceeded_limit():
            return await _end_without_pass(progress, attempts)
        request = _next_request(progress, attempts, requests)
        text = given or await _write_draft(progress, number, request)
        attempt = None if says_not_found(text) else await _verify(progress, number, text, is_summary=bool(given))
        # The draft only says that the sources have no answer, and cites none. To name the closest documents helps more.
        if attempt is None or (attempt.verdict.no_answer and not citations(attempt.verdict.text)):
            return await _end_without_pass(progress, attempts, declined=True)
        attempts.append(attempt)
        if attempt.verdict.passed:
            return _outcome_of(progress, attempt, attempt.verdict, number)
        # No other draft can pass if the documents are unavailable and nothing else was found.
        if only_unconfirmed(attempt.verdict) or (DOCUMENTS in progress.places_away and not progress.sources):
            return await _keep_verified_part(progress, attempt, number)
    return await _end_without_pass(progress, attempts)


async def _end_without_pass(progress: Progress, attempts: list[Attempt], *, declined: bool = False) -> TurnOutcome:
    """Return the verified part of the best attempt. ``declined``: the last draft found no answer in the sources."""
    if attempts:
        shown = progress.live.shown_draft
        candidates = [each for each in attempts if each.draft.text.startswith(shown)] or attempts[-1:]
        best = reduce(lambda best, each: each if each.better_than(best) else best, candidates)
        declined = declined or best.verdict.no_answer
        outcome = await _keep_verified_part(progress, best, len(attempts))
        if not (declined and isinstance(outcome, Failed)):
            return outcome
    limit = "" if declined else progress.exceeded_limit()
    return budget_notice(progress, limit) if limit else refusal(progress, "not_in_sources")


def _next_request(progress: Progress, attempts: list[Attempt], earlier: list[WriteContext]) -> WriteContext:
    """Return the request for the next draft, which differs from all ``earlier`` ones, and add it to those."""
    context = progress.write_context()
    if attempts:  # only the part that is not shown yet must be written again
        last, shown = attempts[-1], progress.live.shown_draft
        unseen = last.draft.text.removeprefix(shown).strip("\n") if shown else last.draft.text
        feedback = retry_text(without_unconfirmed(last.verdict), tuple(progress.sources))
        context = replace(context, kept=shown, feedback=feedback, previous_draft=unseen)
    while context in earlier:  # the model wrote the same again
        context = replace(context, feedback=f"{context.feedback}\n{prompt_text('feedback_again')}".strip())
    earlier.append(context)
    return context


def shown_answer(progress: Progress, number: int = 1) -> Partial | None:
    """Return the part that people already see as the answer, or None if they see nothing."""
    if progress.live.shown is None:
        return None
    note = missing_note(progress)
    shown = to_answer(progress, progress.live.shown.verdict, attempts=number, label="partial", note=note)
    return Partial(answer=shown)


async def _write_draft(progress: Progress, number: int, context: WriteContext) -> str:
    """Return a draft. An empty or incomplete reply is requested once more."""
    try:
        return await _read_and_show(progress, number, context)
    except ModelError as failure:
        if not failure.incomplete or progress.exceeded_limit():
            raise
        log.warning("draft_incomplete", thread=str(progress.question.thread), reason=failure.detail)
        return await _read_and_show(progress, number, replace(context, kept=progress.live.shown_draft))


async def _read_and_show(progress: Progress, number: int, context: WriteContext) -> str:
    """Return a draft. With a stage, its verified blocks are shown meanwhile."""
    live = progress.live
    # Some answers must be complete before any part may be shown.
    draft = None if live.stage is None or progress.model.quotes_only else progress.draft("")
    if draft is None or draft.own_words or not draft.sources:
        return (await _read_draft(progress, context, number)).draft
    judge = AttemptJudge(progress, draft, number)
    async with live.attempt(draft, judge, last=number == progress.budget.attempts):
        reader = await _read_draft(progress, context, number, live)
        if reader.answered and not says_not_found(reader.draft):
            await live.grow(reader.draft, ended=True)
    return reader.draft if says_not_found(reader.draft) else live.full_text(reader.draft)


async def _verify(progress: Progress, number: int, text: str, *, is_summary: bool = False) -> Attempt:
    """Check a draft. The judge is asked if a summary states anything, even without sources."""
    draft = progress.draft(text)
    if is_summary and progress.judge and not draft.own_words:
        draft = replace(draft, has_judge=True, unsourced=False)
    size = len(text) + sum(len(source.text) for source in draft.sources)
    ruled = check_draft(draft) if size <= MAX_CHARS_ON_LOOP else await asyncio.to_thread(check_draft, draft)
    judge = AttemptJudge(progress, draft, number)
    verdict = await judge.examine(ruled, is_answer=True) if draft.has_judge else ruled
    verdict = await judge.accept_small_talk(verdict) if is_summary else verdict
    log.info(
        "attempt_verified",
        thread=str(progress.question.thread),
        attempt=number,
        passed=verdict.passed,
        violations=len(verdict.errors),
        rules=sorted({v.rule for v in verdict.errors}),
        repairs=sum(repair.count for repair in verdict.repairs),
        draft_length=Length(text),
    )
    progress.emit(Verification(attempt=number, draft=text, verdict=verdict))
    return Attempt(draft=draft, verdict=verdict, passed_rules=ruled.passed, is_complete=not progress.live.is_cut_short)


async def _keep_verified_part(progress: Progress, best: Attempt, number: int) -> TurnOutcome:
    """Return the verified part of the best of ``number`` attempts; without one, say what could not be verified."""
    if DOCUMENTS in progress.places_away and not progress.sources:  # the draft is not at fault
        return knowledge_failure(progress)
    salvaged = await AttemptJudge(progress, best.draft, number).salvage(best.verdict)
    partial = shown_answer(progress, number)
    beginning = partial.answer.text.rstrip() if partial else ""
    # The text that people already see must be the beginning of the sent answer.
    if partial and not (salvaged and salvaged.passed and salvaged.text.startswith(beginning)):
        return partial
    if salvaged and salvaged.passed:
        return _outcome_of(progress, best, salvaged, number, partial=True)
    return verification_failure(progress, best.verdict, attempts=number)


def _outcome_of(
    progress: Progress, attempt: Attempt, verdict: Verdict, number: int, *, partial: bool = False
) -> TurnOutcome:
    """Return the outcome of a ``verdict`` that passed: the attempt's own or that of its verified part (``partial``).

    Without a source or an answer it is not marked as verified.
    """
    draft, claims = attempt.draft, bool(attempt.verdict.claims)
    away = away_note(progress)
    if verdict.no_answer:
        is_final = DOCUMENTS not in progress.places_away and progress.documents_so_far is None
        if not (is_final or progress.live.shown_draft):
            return refusal(progress, "not_in_sources")
        text = to_answer(progress, verdict, attempts=number, note=away)
        return Refused(answer=replace(text, verified=False), reason="not_in_sources")
    if draft.unsourced and claims and not progress.model.quotes_only:  # the deployment decides (ORION_GENERAL)
        if progress.policy.general == "refuse" or DOCUMENTS in progress.places_away:
            return refusal(progress, "no_source")
        text = to_answer(progress, verdict, attempts=number, label="general", note=away)
        return Unsourced(answer=replace(text, verified=False))
    own: Label | None = "own_words" if draft.own_words and (claims or partial) else None
    if not partial:
        return Answered(answer=to_answer(progress, verdict, attempts=number, label=own, note=away))
    note = away if own else missing_note(progress, attempt.verdict)
    return Partial(answer=to_answer(progress, verdict, attempts=number, label=own or "partial", note=note))


@asynccontextmanager
async def early_draft(progress: Progress) -> AsyncIterator[None]:
    """Begin the first draft if the first search found something to answer from. Leaving the block discards it."""
    # In nine of ten cases the decision is to respond at once, and people waited for two calls in a row (decision 32).
    if not progress.sources or not progress.policy.early_draft or progress.model.quotes_only:
        yield
        return
    async with background_tasks() as group:
        progress.early = EarlyDraft(progress, group)
        try:
            yield
        finally:
            await discard_early_draft(progress)


async def discard_early_draft(progress: Progress) -> None:
    """Stop the early draft, if there is one, and count its usage."""
    early, progress.early = progress.early, None
    if early is None:
        return
    await early.stop()
    if stream := early.stream:
        error = early.error.kind if early.error else DISCARDED
        end = ModelEnd(phase="write", output="", usage=stream.usage, error=error, call=stream.call)
        progress.record_model_call(end)


async def _read_draft(
    progress: Progress, context: WriteContext, number: int, live: LiveAnswer | None = None
) -> TagStream:
    """Read draft ``number`` and update the live answer, if there is one. Raises ``ModelError``."""
    if (early := progress.early) and number == 1 and early.stream and not early.error:
        progress.early, stream = None, early.stream
    else:
        await discard_early_draft(progress)
        progress.emit(ModelStart(phase="write", model=progress.model.name, attempt=number))
        stream = progress.model.write(context)
    reader, error = TagStream(), ""
    try:
        async with aclosing(stream.pieces) as pieces:  # stop reading a draft that failed or does not end
            async for channel, piece in pieces:
                typed = [TypedText("thinking", piece)] if channel == "reasoning" else reader.feed(piece)
                _emit_pieces(progress, typed)
                if live and live.is_due("".join(each.text for each in typed if each.kind == "answer")):
                    await live.grow(reader.draft)
                if reader.length > MAX_DRAFT_CHARS or (live and live.is_cut_short):
                    log.info("draft_stopped")
                    break
        error = "TokenLimitError" if reader.length > MAX_DRAFT_CHARS else ""
    except ModelError as failure:
        error = failure.kind
        raise
    finally:
        _emit_pieces(progress, reader.close())
        # Counted even if the stream broke or was stopped.
        end = ModelEnd(phase="write", output=reader.draft, usage=stream.usage, error=error, call=stream.call)
        progress.record_model_call(end)
    if error:
        raise ModelError(kind="TokenLimitError", detail=f"a draft of more than {MAX_DRAFT_CHARS} characters")
    if not reader.answered:
        log.info("draft_without_answer_tag", thread=str(progress.question.thread), attempt=number)
    return reader


def _emit_pieces(progress: Progress, typed: Sequence[TypedText]) -> None:
    for kind, text, _ in typed:
        progress.emit(Token(text=text) if kind == "answer" else Thinking(text=text))
