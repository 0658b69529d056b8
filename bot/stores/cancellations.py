"""What people took back before an answer came: a deleted question, a thread told to stop. Kept for a day.

A note counts also for a question that still waits in its mailbox, where no cancellation is heard.
"""

from __future__ import annotations

from redis.asyncio import Redis

from agent.thread.conversation import ThreadKey
from bot.slack.history import sort_key
from bot.slack.message import Incoming

KEPT_S = 86_400


class Cancellations:
    """Stops and deletions, by thread."""

    def __init__(self, redis: Redis, *, prefix: str = "orion") -> None:
        self._redis = redis
        self._prefix = prefix

    def stop_key(self, thread: ThreadKey) -> str:
        """Where the latest stop of a thread stands."""
        return f"{self._prefix}:stop:{thread}"

    def gone_key(self, thread: ThreadKey, ts: str) -> str:
        """Where it stands that a message is gone."""
        return f"{self._prefix}:gone:{thread}:{ts}"

    async def heard(self, incoming: Incoming) -> bool:
        """Whether this message was obeyed before: a stop that Slack sends again must not stop a later turn."""
        return bool(await self._redis.exists(self._heard_key(incoming)))

    async def note_heard(self, incoming: Incoming) -> bool:
        """It was obeyed; whether for the first time. Noted afterwards: what Redis cut short has to be done again."""
        return bool(await self._redis.set(self._heard_key(incoming), "1", nx=True, ex=KEPT_S))

    def _heard_key(self, incoming: Incoming) -> str:
        keys = incoming.event_ids or (f"ts:{incoming.thread}:{incoming.event_ts}",)
        return f"{self._prefix}:heard:{keys[0]}"

    async def stop(self, incoming: Incoming) -> None:
        """Everything asked in this thread before the stop wants no answer."""
        await self._redis.set(self.stop_key(incoming.thread), incoming.event_ts or incoming.ts, ex=KEPT_S)

    async def delete(self, incoming: Incoming) -> None:
        """This question is gone."""
        await self._redis.set(self.gone_key(incoming.thread, incoming.ts), "1", ex=KEPT_S)

    async def gone(self, thread: ThreadKey, ts: str) -> bool:
        """Whether the message of this ts was deleted."""
        return bool(await self._redis.exists(self.gone_key(thread, ts)))


def after(stop: str | None, incoming: Incoming) -> str:
    """The ts of a thread's latest stop, if it came after the message; else empty."""
    return stop if stop and sort_key(incoming.event_ts or incoming.ts) < sort_key(stop) else ""
