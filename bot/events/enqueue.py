"""What happens to a letter before Slack gets its acknowledgement: it is stored, or it takes back what runs.

Promises: when ``receive`` returns, the letter is durable or has done its work; when it raises, nothing may be
acknowledged, so that Slack sends it again. Must never wait for a model or for Slack.
"""

from __future__ import annotations

from typing import Final

import structlog

from bot.events.catch_up import Served
from bot.gates.stop import Cancel, StopDesk, turn_at_head
from bot.slack.message import Incoming
from bot.stores.stores import Memory

log = structlog.get_logger()

DELETED: Final = "deleted"


class Reception:
    """Takes letters in."""

    def __init__(self, memory: Memory, cancel: Cancel, *, stop_desk: StopDesk, served: Served | None = None) -> None:
        self._mailbox = memory.mailbox
        self._withdrawals = memory.withdrawals
        self._tokens = memory.tokens
        self._cancel = cancel
        self._stop_desk = stop_desk
        self._served = served

    async def receive(self, letter: Incoming) -> None:
        """Raises ``RedisError`` when the letter could not be stored."""
        if letter.kind == "stop":
            await self._stop_desk.receive(letter)
            return
        if letter.kind == "delete":
            await self._withdraw(letter)
        await self._tokens.keep(letter)
        thread = str(letter.thread)
        keys = letter.event_ids or (f"ts:{thread}:{letter.ts}",)
        said = letter.event_ts or letter.ts
        if not await self._mailbox.enqueue(thread, letter.to_json(), event_ids=keys, said=said):
            log.info("letter_known_already", kind=letter.kind, thread=thread)
        if self._served is not None:  # also when Slack repeats it: the first time may have ended before this line
            await self._served.note(letter.thread)

    async def _withdraw(self, letter: Incoming) -> None:
        """The deleted question's turn, or its edit's, is cancelled; the letter is stored too, to take the answer along.

        One that rests until a far end is back need not wait for that.
        """
        await self._withdrawals.delete(letter)
        thread = str(letter.thread)
        running = turn_at_head(await self._mailbox.stored(thread))
        if running and running[1].ts == letter.ts:
            await self._cancel(thread, DELETED, message_id=running[0])
            await self._mailbox.hurry(thread)
