"""The first draft, started together with the first decision, so that an easy question waits for one model call.

No part of it is used before the decision says ``respond``. On any other decision it is stopped and its cost counted.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import groupby
from operator import itemgetter
from typing import Final

from agent.model.protocol import Model, ModelError, Piece, WriteContext, WriteStream
from agent.turn.events import Emit, ModelStart

DISCARDED: Final = "discarded"  # the `error` of a draft that was stopped because the decision needed no answer yet
_MAX_WAITING_PIECES: Final = 4_096  # a server that sends more before the decision is slowed down, not stored


def request_draft(model: Model, context: WriteContext, number: int, emit: Emit) -> WriteStream:
    """Request draft ``number`` from the model."""
    emit(ModelStart(phase="write", model=model.name, attempt=number))
    return model.write(context)


class EarlyDraft:
    """A stream that a separate task reads ahead. Its ``pieces`` yield the text so far, then the rest."""

    def __init__(self, model: Model, context: WriteContext, emit: Emit, group: asyncio.TaskGroup) -> None:
        self._request = (model, context, 1, emit)
        self._waiting: asyncio.Queue[Piece | None] = asyncio.Queue(_MAX_WAITING_PIECES)
        self.stream: WriteStream | None = None
        self.error: ModelError | None = None
        self._task = group.create_task(self._read(), name="early-draft")

    async def stop(self) -> None:
        """Stop reading. The connection is closed when this returns."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _read(self) -> None:
        self.stream = request_draft(*self._request)
        received, self.stream.pieces = self.stream.pieces, self._relay()
        try:
            async with aclosing(received) as pieces:
                async for piece in pieces:
                    await self._waiting.put(piece)
        except ModelError as error:
            self.error = error
        await self._waiting.put(None)

    async def _relay(self) -> AsyncGenerator[Piece]:
        try:
            received: list[Piece | None] = []
            while received[-1:] != [None]:
                received = [await self._waiting.get()]
                while not self._waiting.empty():
                    received.append(self._waiting.get_nowait())
                # All text that came meanwhile, as one piece: each piece costs its listeners the same.
                for channel, pieces in groupby(filter(None, received), key=itemgetter(0)):
                    yield channel, "".join(text for _, text in pieces)
        finally:
            await self.stop()
        if self.error:
            raise self.error
