"""What happens to a message before Slack gets its acknowledgement: it is stored, or it cancels what runs.

Nothing here may wait for a model or for Slack.
"""

from __future__ import annotations

from typing import Final

import structlog

from bot.events.catch_up import Served
from bot.gates.stop import Cancel, EarlyStops, turn_at_head
from bot.slack.message import Incoming
from bot.stores.stores import Stores

log = structlog.get_logger()

DELETED: Final = "deleted"


class Enqueuer:
    """Takes messages in."""

    def __init__(
        self, stores: Stores, cancel: Cancel, *, early_stops: EarlyStops, served: Served | None = None
    ) -> None:
        self._mailbox = stores.mailbox
        self._cancellations = stores.cancellations
        self._direct_chats = stores.direct_chats
        self._tokens = stores.tokens
        self._cancel = cancel
        self._early_stops = early_stops
        self._served = served

    async def receive(self, incoming: Incoming) -> bool:
        """Whether the message was new. Raises ``RedisError`` when it could not be stored."""
        if incoming.kind == "stop":
            await self._early_stops.receive(incoming)
            return True
        if incoming.kind == "delete":
            await self._withdraw(incoming)
        await self._tokens.keep(incoming)
        thread = str(incoming.thread)
        keys = incoming.event_ids or (f"ts:{thread}:{incoming.ts}",)
        said = incoming.event_ts or incoming.ts
        new = await self._mailbox.enqueue(thread, incoming.to_json(), event_ids=keys, said=said)
        await self._direct_chats.note(incoming.thread, incoming.ts)
        if self._served is not None:  # also when Slack repeats it: the first time may have ended before this line
            await self._served.note(incoming.thread, incoming.ts)
        return bool(new)

    async def _withdraw(self, incoming: Incoming) -> None:
        """The deleted question's turn, or its edit's, is cancelled; the event is stored too, to take the answer along.

        One that rests until a far end is back need not wait for that.
        """
        await self._cancellations.delete(incoming)
        thread = str(incoming.thread)
        running = turn_at_head(await self._mailbox.stored(thread))
        if running and running[1].ts == incoming.ts:
            await self._cancel(thread, DELETED, message_id=running[0])
            await self._mailbox.hurry(thread)
