"""The first draft, begun beside the first decision, so that an easy question waits for one model call.

Nothing of it is read before the decision says ``respond``; on any other decision it is stopped and its cost counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Final

from agent.model.prompts import MESSAGES_SEEN, RESULTS_SEEN
from agent.model.protocol import ModelError, Piece, WriteContext, WriteStream
from agent.tasks import beside
from agent.turn.events import ModelEnd, ModelStart
from agent.turn.progress import Progress

DISCARDED: Final = "discarded"  # the `error` of a draft that was stopped because the decision needed no answer yet
_WAITING: Final = 4_096  # pieces: a server that sends more before the decision is slowed down, not stored


class EarlyDraft:
    """A stream that a task of its own reads ahead. ``stream`` is there once it was asked for.

    Its ``pieces`` give what came so far, and go on with it.
    """

    def __init__(self, progress: Progress, group: asyncio.TaskGroup) -> None:
        self._progress = progress
        self._waiting: asyncio.Queue[Piece | None] = asyncio.Queue(_WAITING)
        self.stream: WriteStream | None = None
        self.error: ModelError | None = None
        self._task = group.create_task(self._read(), name="early-draft")

    async def stop(self) -> None:
        """Read no more. The connection is closed when this returns."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _read(self) -> None:
        progress = self._progress
        progress.emit(ModelStart(phase="write", model=progress.model.name, attempt=1))
        self.stream = progress.model.write(write_context(progress))
        asked, self.stream.pieces = self.stream.pieces, self._relayed()
        try:
            async with aclosing(asked) as pieces:
                async for piece in pieces:
                    await self._waiting.put(piece)
        except ModelError as error:
            self.error = error
        await self._waiting.put(None)

    async def _relayed(self) -> AsyncGenerator[Piece]:
        try:
            while (piece := await self._waiting.get()) is not None:
                yield piece
        finally:
            await self.stop()
        if self.error:
            raise self.error


@asynccontextmanager
async def beside_decision(progress: Progress) -> AsyncIterator[None]:
    """Begin the first draft where the first search brought something to answer from; whatever happens, it ends here."""
    # Nine in ten decisions are to respond at once: people waited for two calls in a row (decision 32).
    # A message that was not addressed to Orion often gets no reply: a draft would be paid for and thrown away.
    is_wanted = progress.policy.early_draft and progress.question.addressed
    if not (progress.sources and is_wanted) or progress.model.quotes_only:
        yield
        return
    async with beside() as group:
        progress.early = EarlyDraft(progress, group)
        try:
            yield
        finally:
            await discard(progress)


async def discard(progress: Progress) -> None:
    """The decision was not to respond: stop the draft, and count what it cost."""
    early, progress.early = progress.early, None
    if early is None:
        return
    await early.stop()
    if stream := early.stream:
        error = early.error.kind if early.error else DISCARDED
        progress.ended(ModelEnd(phase="write", output="", usage=stream.usage, error=error, call=stream.call))


async def taken(progress: Progress) -> WriteStream | None:
    """The draft under way; None where there is none, or where it failed before it was wanted."""
    early = progress.early
    if early is None or early.stream is None or early.error:
        await discard(progress)
        return None
    progress.early = None
    return early.stream


def write_context(progress: Progress) -> WriteContext:
    """What the first draft of an answer is written from."""
    state = progress.state
    return WriteContext(
        mission=state.mission,
        question=progress.question,
        history=state.history[-MESSAGES_SEEN:],
        answers=state.answers,
        results=tuple(progress.results[-RESULTS_SEEN:]),
        sources=tuple(progress.sources),
        left_out=progress.left_out,
    )
