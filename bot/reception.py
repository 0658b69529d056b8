"""What happens to a letter before Slack gets its acknowledgement: it is stored, or it takes back what runs.

Promises: when ``receive`` returns, the letter is durable or has done its work; when it raises, nothing may be
acknowledged, so that Slack sends it again. Must never wait for a model or for Slack.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, Protocol

import structlog

from bot.catching_up import Served
from bot.intake import Incoming
from bot.mailbox import Mailbox
from bot.withdrawals import Withdrawals

log = structlog.get_logger()

STOPPED: Final = "stopped"
DELETED: Final = "deleted"


class Cancel(Protocol):
    """Interrupts a thread's running turn, on whichever worker it runs; with ``message_id`` only that message's."""

    def __call__(self, thread: str, reason: str, *, message_id: str = "") -> Awaitable[None]:
        """Raises ``RedisError``."""
        ...


class Reception:
    """Takes letters in."""

    def __init__(
        self, mailbox: Mailbox, withdrawals: Withdrawals, cancel: Cancel, *, served: Served | None = None
    ) -> None:
        self._mailbox = mailbox
        self._withdrawals = withdrawals
        self._cancel = cancel
        self._served = served

    async def receive(self, letter: Incoming) -> None:
        """Raises ``RedisError`` when the letter could not be stored."""
        thread = str(letter.thread)
        if letter.kind == "stop":
            if not await self._withdrawals.heard(letter):
                await self._withdrawals.stop(letter)
                await self._cancel(thread, STOPPED)
                await self._mailbox.hurry(thread)
                await self._withdrawals.note_heard(letter)
            return
        if letter.kind == "delete":
            await self._withdraw(letter)
        keys = letter.event_ids or (f"ts:{thread}:{letter.ts}",)
        said = letter.event_ts or letter.ts
        if not await self._mailbox.enqueue(thread, letter.to_json(), event_ids=keys, said=said):
            log.info("letter_known_already", kind=letter.kind, thread=thread)
        if self._served is not None:  # also when Slack repeats it: the first time may have ended before this line
            await self._served.note(letter.thread)

    async def _withdraw(self, letter: Incoming) -> None:
        """The deleted question's turn is cancelled; the letter itself is stored too, and takes the answer along."""
        await self._withdrawals.delete(letter)
        thread = str(letter.thread)
        key = f"msg:{letter.thread.team}:{letter.thread.channel}:{letter.ts}"
        message_id = await self._mailbox.stored_as(thread, key)
        if message_id:
            await self._cancel(thread, DELETED, message_id=message_id)
