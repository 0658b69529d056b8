"""Phase two: write, verify, feed back, at most three attempts; the best one counts.

A draft that failed never leaves this module, neither whole nor in pieces nor in an error.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, replace

import structlog

from agent.model.prompts import private_texts, today_of
from agent.model.protocol import ModelError, WriteStream
from agent.model.tag_stream import DraftReader
from agent.outcome import Answered, Failed, Partial, Refused, TurnOutcome, Unsourced
from agent.thread.requests import from_own_words
from agent.tools.builtin.knowledge import AWAY
from agent.turn.early import taken, write_context
from agent.turn.events import ModelEnd, ModelStart, Thinking, Token, Verification
from agent.turn.judging import examined, forget_unconfirmed, kept_of, small_talk
from agent.turn.live import LiveAnswer, says_not_found
from agent.turn.progress import Progress
from agent.turn.replies import Label, failed_knowledge, failed_verification, out_of_budget, refused, shown
from agent.turn.rules import checked
from observability.logging import Length
from verification.check import better
from verification.feedback import retry_text
from verification.judgement import only_unconfirmed, without_unconfirmed
from verification.rules.citations import citations
from verification.types import Draft, Verdict

log = structlog.get_logger()

LONGEST_DRAFT = 60_000  # characters, five times what Slack takes in a message: a longer one found no end


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One draft and what came of it. ``cleared``: every rule was content, whatever a judge said then.

    ``whole`` is False where the model was stopped at the first fault: nobody knows what would have stood behind it.
    """

    draft: Draft
    verdict: Verdict
    cleared: bool = False
    whole: bool = True

    def better_than(self, other: Attempt) -> bool:
        """What met the judge is ahead of what failed before it came there; else the verdicts are compared.

        Of two that failed the one that was read to its end holds more that can be kept.
        """
        if self.cleared != other.cleared:
            return self.cleared
        if self.whole != other.whole:
            return self.whole
        return better(self.verdict, other.verdict)


async def answer(progress: Progress, *, first: str = "") -> TurnOutcome:
    """Up to ``budget.attempts`` drafts. ``first`` is a summary the control channel already gave: attempt one."""
    best: Attempt | None = None
    judged = 0
    declined = False
    for number in range(1, progress.budget.attempts + 1):
        if progress.exhausted() and not (number == 1 and first):
            break
        text = first if number == 1 and first else await _write(progress, number, best)
        attempt = None if says_not_found(text) else await _verify(progress, number, text, summary=text == first)
        # One that only says that the sources hold no answer, and cites none: naming the nearest helps more.
        declined = attempt is None or (attempt.verdict.no_answer and not citations(attempt.verdict.text))
        if attempt is None or declined:
            break
        judged = number
        if best is None or attempt.better_than(best) or not best.draft.text.startswith(_kept(progress)):
            best = attempt
        if attempt.verdict.passed:
            return _sent(progress, attempt, attempt.verdict, number, whole=True)
        if only_unconfirmed(attempt.verdict) or _away(progress):
            return await _give_up(progress, attempt, judged)
    declined = declined or bool(best and best.verdict.no_answer)
    outcome = await _give_up(progress, best, judged) if best else None
    if outcome and not (declined and isinstance(outcome, Failed)):
        return outcome
    limit = "" if declined else progress.exhausted()
    return out_of_budget(progress, limit) if limit else _unfound(progress, "not_in_sources")


def shown_so_far(progress: Progress, attempts: int = 1) -> Partial | None:
    """What stands before the person's eyes already, as the answer; None where nothing does."""
    if progress.showing is None or progress.showing.shown is None:
        return None
    return Partial(answer=shown(progress, progress.showing.shown.verdict, attempts=attempts, label="partial"))


def _kept(progress: Progress) -> str:
    return progress.showing.kept if progress.showing else ""


def _seen(progress: Progress) -> str:
    seen = progress.showing.shown if progress.showing else None
    return seen.verdict.text.rstrip() if seen else ""


def _stage(progress: Progress) -> LiveAnswer | None:
    """Where this answer can be seen while it grows: not where all of it must be known before any may be shown."""
    whole_first = progress.model.quotes_only or not progress.sources
    return None if whole_first or from_own_words(progress.question.text) else progress.showing


def _unfound(progress: Progress, reason: str) -> TurnOutcome:
    return failed_knowledge(progress) if _away(progress) else refused(progress, reason)


def _away(progress: Progress) -> bool:
    """Whether the documents were out of reach all the time."""
    return not progress.sources and any(result.error == AWAY for result in progress.results)


async def _write(progress: Progress, number: int, best: Attempt | None) -> str:
    forget_unconfirmed(progress)
    showing = _stage(progress)
    if showing is None:
        return (await _read(progress, number, best, None)).draft
    draft = draft_of(progress, "")

    async def examine(verdict: Verdict) -> Verdict:
        return await examined(progress, draft, verdict, number)

    async with showing.attempt(draft, examine, last=number == progress.budget.attempts):
        reader = await _read(progress, number, best, showing)
        if not (reader.fallback or says_not_found(reader.draft)):
            await showing.grow(reader.draft, ended=True)
    return reader.draft if says_not_found(reader.draft) else showing.whole(reader.draft)


async def _read(progress: Progress, number: int, best: Attempt | None, showing: LiveAnswer | None) -> DraftReader:
    stream = await _begun(progress, number, best)
    reader = DraftReader()
    error = ""
    try:
        async with aclosing(stream.pieces) as pieces:  # what is lost, or finds no end, is not read to its end
            async for channel, piece in pieces:
                typed = reader.feed(piece, reasoning=channel == "reasoning")
                _tell(progress, typed)
                if showing and showing.due("".join(text for kind, text in typed if kind == "answer")):
                    await showing.grow(reader.draft)
                if reader.length > LONGEST_DRAFT or (showing and showing.cut_short):
                    log.info("draft_stopped")
                    break
        error = "TokenLimitError" if reader.length > LONGEST_DRAFT else ""
    except ModelError as failure:
        error = failure.kind
        raise
    finally:
        _tell(progress, reader.close())
        # Counted also when the stream broke or was stopped.
        progress.ended(ModelEnd(phase="write", output=reader.draft, usage=stream.usage, error=error, call=stream.call))
    if error:
        raise ModelError(kind="TokenLimitError", detail=f"a draft of more than {LONGEST_DRAFT} characters")
    if reader.fallback:
        log.info("draft_without_answer_tag", thread=str(progress.question.thread), attempt=number)
    return reader


def _tell(progress: Progress, typed: tuple[tuple[str, str], ...]) -> None:
    for kind, text in typed:
        progress.emit(Token(text=text) if kind == "answer" else Thinking(text=text))


async def _begun(progress: Progress, number: int, best: Attempt | None) -> WriteStream:
    """The stream of a draft: the one that began beside the decision, if there is one, else a new one."""
    if number == 1 and (early := await taken(progress)):
        return early
    kept = _kept(progress)
    context = replace(write_context(progress), kept=kept)
    if best:  # only what of it is not shown is to be written again
        unseen = best.draft.text.removeprefix(kept).strip("\n") if kept else best.draft.text
        feedback = retry_text(without_unconfirmed(best.verdict), tuple(progress.sources))
        context = replace(context, feedback=feedback, previous_draft=unseen)
    progress.emit(ModelStart(phase="write", model=progress.model.name, attempt=number))
    return progress.model.write(context)


async def _verify(progress: Progress, number: int, text: str, *, summary: bool = False) -> Attempt:
    """The rules run off the event loop: they are pure, and a long answer must not hold up other threads.

    A ``summary`` may be small talk, of which a judge is asked whether it states anything, also where nothing was found.
    """
    draft = draft_of(progress, text)
    if summary and progress.judge and not draft.own_words:
        draft = replace(draft, judged=True, unsourced=False)
    ruled = await asyncio.to_thread(checked, draft)
    verdict = await examined(progress, draft, ruled, number, whole=True)
    verdict = await small_talk(progress, verdict) if summary else verdict
    line = log.debug if verdict.passed else log.info
    line(
        "attempt_verified",
        thread=str(progress.question.thread),
        attempt=number,
        passed=verdict.passed,
        rules=sorted({v.rule for v in verdict.errors}),
        repairs=sum(repair.count for repair in verdict.repairs),
        draft_length=Length(text),
    )
    progress.emit(Verification(attempt=number, draft=text, verdict=verdict))
    whole = not (progress.showing and progress.showing.cut_short)
    return Attempt(draft=draft, verdict=verdict, cleared=ruled.passed, whole=whole)


def draft_of(progress: Progress, text: str) -> Draft:
    """The draft with all that this turn knows."""
    question = progress.question
    own, today = from_own_words(question.text), today_of(question)
    said = [m.text for m in progress.state.history if m.role == "user" and m.user == question.user]
    return Draft(
        text=text,
        question=question.text,
        sources=tuple(progress.sources),
        known_text="\n".join([*said, *progress.state.answers.values()]),
        context="\n".join([f"{today:%A} {today}", *(m.text for m in progress.state.history if m.role == "assistant")]),
        mentions=question.mentioned,
        link_hosts=progress.policy.link_hosts,
        private_texts=private_texts(),
        own_words=own,
        unsourced=not own and not progress.sources,
        judged=progress.judge is not None and bool(progress.sources) and not own,
    )


async def _give_up(progress: Progress, best: Attempt, judged: int) -> TurnOutcome:
    """Keep what is verified; else say gracefully what could not be."""
    if _away(progress):  # there was nothing to cite: that is no fault of the draft's
        return failed_knowledge(progress)
    kept = await kept_of(progress, best.draft, best.verdict, judged)
    standing = shown_so_far(progress, judged)
    # What stands before the person's eyes must be the beginning of what is sent.
    if standing and not (kept and kept.passed and kept.text.startswith(_seen(progress))):
        return standing
    if kept and kept.passed:
        return _sent(progress, best, kept, judged, whole=False)
    return Failed(answer=failed_verification(progress, best.verdict, attempts=judged), reason="verification")


def _sent(progress: Progress, best: Attempt, verdict: Verdict, attempts: int, *, whole: bool) -> TurnOutcome:
    """The ending of what may be sent: not as verified where it answers nothing, or no source was there for it."""
    draft, claims = best.draft, bool(best.verdict.claims)
    if verdict.no_answer:
        text = shown(progress, verdict, attempts=attempts)
        return Refused(answer=replace(text, verified=False), reason="not_in_sources")
    if draft.unsourced and claims and not progress.model.quotes_only:  # the deployment decides (F1, ORION_GENERAL)
        if progress.policy.general == "refuse" or _away(progress):
            return _unfound(progress, "no_source")
        text = shown(progress, verdict, attempts=attempts, label="general")
        return Unsourced(answer=replace(text, verified=False))
    if whole:
        label: Label | None = "own_words" if draft.own_words and claims else None
        return Answered(answer=shown(progress, verdict, attempts=attempts, label=label))
    return Partial(
        answer=shown(progress, verdict, attempts=attempts, label="own_words" if draft.own_words else "partial")
    )
