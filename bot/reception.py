"""What happens to a letter before Slack gets its acknowledgement: it is stored, or it stops what runs.

Promises: when ``receive`` returns, the letter is durable or has done its work; when it raises, nothing may be
acknowledged, so that Slack sends it again. Must never wait for a model or for Slack.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from bot.intake import Incoming
from bot.mailbox import Mailbox

log = structlog.get_logger()

Cancel = Callable[[str, str], Awaitable[None]]
STOP_REASON: Final = "stop"


class Reception:
    """Takes letters in. ``cancel`` interrupts a thread's running turn, on whichever worker it runs."""

    def __init__(self, mailbox: Mailbox, cancel: Cancel) -> None:
        self._mailbox = mailbox
        self._cancel = cancel

    async def receive(self, letter: Incoming) -> None:
        """Raises ``RedisError`` when the letter could not be stored."""
        thread = str(letter.thread)
        if letter.kind == "stop":
            await self._cancel(thread, STOP_REASON)
            return
        keys = letter.event_ids or (f"ts:{thread}:{letter.ts}",)
        if not await self._mailbox.enqueue(thread, letter.to_json(), event_ids=keys):
            log.info("letter_known_already", kind=letter.kind, thread=thread)
