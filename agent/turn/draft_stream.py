"""Requests a draft from the model and reads it as it arrives.

The first draft may begin next to the first decision; nothing of it is read before the decision is known.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager

import structlog

from agent.model.protocol import ModelError, WriteContext, WriteStream
from agent.model.tag_stream import TagStream, TypedText
from agent.tasks import background_tasks
from agent.turn.early import DISCARDED, EarlyDraft, request_draft
from agent.turn.events import ModelEnd, Thinking, Token
from agent.turn.live import LiveAnswer
from agent.turn.progress import Progress

log = structlog.get_logger()

MAX_DRAFT_CHARS = 60_000  # five times Slack's message limit: a longer draft does not end


@asynccontextmanager
async def speculative_draft(progress: Progress) -> AsyncIterator[None]:
    """Begin the first draft if the first search brought something to answer from. Leaving the block discards it."""
    # Nine in ten decisions are to respond at once: people waited for two calls in a row (decision 32). A message that
    # not addressed to Orion often gets no reply.
    is_wanted = progress.policy.early_draft and progress.question.addressed and not progress.model.quotes_only
    if not (progress.sources and is_wanted):
        yield
        return
    async with background_tasks() as group:
        progress.early = EarlyDraft(progress.model, progress.write_context(), progress.emit, group)
        try:
            yield
        finally:
            await discard_early_draft(progress)


async def discard_early_draft(progress: Progress) -> None:
    """Stop the early draft, if there is one, and count its cost."""
    early, progress.early = progress.early, None
    if early is None:
        return
    await early.stop()
    if stream := early.stream:
        error = early.error.kind if early.error else DISCARDED
        progress.record_model_call(
            ModelEnd(phase="write", output="", usage=stream.usage, error=error, call=stream.call)
        )


async def _claim_early_draft(progress: Progress) -> WriteStream | None:
    """Return the running draft; None if there is none, or if it failed."""
    early = progress.early
    if early is None or early.stream is None or early.error:
        await discard_early_draft(progress)
        return None
    progress.early = None
    return early.stream


async def read_draft(
    progress: Progress, context: WriteContext, number: int, live: LiveAnswer | None = None
) -> TagStream:
    """Read draft ``number`` and let the live answer, if there is one, grow with it. Raises ``ModelError``."""
    early = await _claim_early_draft(progress) if number == 1 else None
    stream = early or request_draft(progress.model, context, number, progress.emit)
    reader = TagStream()
    error = ""
    try:
        async with aclosing(stream.pieces) as pieces:  # a draft that failed, or does not end, is not read to its end
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
