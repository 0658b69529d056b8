"""Deleted questions and stopped threads, kept for a day.

They also apply to a question that still waits in its mailbox and has no running turn to cancel.
"""

from redis.asyncio import Redis

from agent.thread.conversation import ThreadKey
from bot.slack.history import sort_key
from bot.slack.message import Incoming

CANCELLATION_TTL_S = 86_400


class Cancellations:
    """Stops and deletions, by thread."""

    def __init__(self, redis: Redis, *, prefix: str = "orion") -> None:
        self._redis = redis
        self._prefix = prefix

    def stop_key(self, thread: ThreadKey) -> str:
        """Redis key of a thread's latest stop."""
        return f"{self._prefix}:stop:{thread}"

    def deleted_key(self, thread: ThreadKey, ts: str) -> str:
        """Redis key that marks a deleted message."""
        return f"{self._prefix}:gone:{thread}:{ts}"

    async def was_handled(self, incoming: Incoming) -> bool:
        """Return whether this message was handled before: a repeated stop must not stop a later turn."""
        return bool(await self._redis.exists(self._handled_key(incoming)))

    async def mark_handled(self, incoming: Incoming) -> bool:
        """Mark the message as handled and return whether this is the first time. Called last, so a crash repeats it."""
        return bool(await self._redis.set(self._handled_key(incoming), "1", nx=True, ex=CANCELLATION_TTL_S))

    def _handled_key(self, incoming: Incoming) -> str:
        keys = incoming.event_ids or (f"ts:{incoming.thread}:{incoming.event_ts}",)
        return f"{self._prefix}:heard:{keys[0]}"

    async def record_stop(self, incoming: Incoming) -> None:
        """Record that questions asked in this thread before the stop want no answer."""
        await self._redis.set(self.stop_key(incoming.thread), incoming.event_ts or incoming.ts, ex=CANCELLATION_TTL_S)

    async def record_deletion(self, incoming: Incoming) -> None:
        """Record that this question was deleted."""
        await self._redis.set(self.deleted_key(incoming.thread, incoming.ts), "1", ex=CANCELLATION_TTL_S)

    async def is_deleted(self, thread: ThreadKey, ts: str) -> bool:
        """Return whether the message with this ts was deleted."""
        return bool(await self._redis.exists(self.deleted_key(thread, ts)))


def stop_after(stop: str | None, incoming: Incoming) -> str:
    """Return the ts of a thread's latest stop if it came after the message, else an empty string."""
    return stop if stop and sort_key(incoming.event_ts or incoming.ts) < sort_key(stop) else ""
