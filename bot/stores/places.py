"""The threads of each direct chat, and all places that Orion serves.

A message that opens a thread in a direct chat may continue the previous thread: that thread is its context, and the
target of the word "stop". After an outage the served places are searched for missed messages.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from agent.thread.conversation import ThreadKey

MAX_CONTEXT_AGE_S: Final = 1_800
DIRECT_CHAT_TTL_S: Final = 86_400
SERVED_TTL_S: Final = 30 * 86_400
MAX_SERVED: Final = 5_000


class DirectChats:
    """The threads of each direct chat by the time of their last message, kept for a day."""

    def __init__(self, redis: Redis, *, prefix: str = "orion") -> None:
        self._redis = redis
        self._prefix = prefix

    def key(self, thread: ThreadKey) -> str:
        """Redis key of the threads of this thread's direct chat."""
        return f"{self._prefix}:direct:{thread.team}:{thread.channel}"

    def record(self, pipe: Pipeline, thread: ThreadKey, ts: str) -> None:
        """Record the message ``ts`` of this thread; ignored outside direct chats."""
        if thread.channel.startswith("D"):
            key = self.key(thread)
            pipe.zadd(key, {thread.thread_ts: float(ts)})
            pipe.zremrangebyscore(key, 0, float(ts) - DIRECT_CHAT_TTL_S)
            pipe.expire(key, DIRECT_CHAT_TTL_S)

    async def previous_thread(self, thread: ThreadKey, ts: str) -> ThreadKey | None:
        """Return the thread used last, less than half an hour before ``ts`` opened this one; else None."""
        if not (thread.channel.startswith("D") and thread.thread_ts == ts):
            return None
        oldest, latest = f"({float(ts) - MAX_CONTEXT_AGE_S}", f"({float(ts)}"
        found = await self._redis.zrevrangebyscore(self.key(thread), latest, oldest, start=0, num=1)
        return replace(thread, thread_ts=str(found[0])) if found else None

    async def forget(self, thread: ThreadKey, *, chat: bool) -> None:
        """Forget this thread; with ``chat``, all threads of its direct chat."""
        if chat:
            await self._redis.delete(self.key(thread))
        else:
            await self._redis.zrem(self.key(thread), thread.thread_ts)


@dataclass(frozen=True, slots=True)
class Served:
    """The latest threads and direct chats in which Orion was asked something, by time."""

    redis: Redis
    prefix: str = "orion"
    clock: Callable[[], float] = time.time

    @property
    def key(self) -> str:
        """Redis key of the places."""
        return f"{self.prefix}:served"

    def record(self, pipe: Pipeline, thread: ThreadKey, ts: str = "") -> None:
        """Record a place of a question. For a message ``ts`` that opens a thread in a direct chat, record the chat."""
        if thread.channel.startswith("D") and thread.thread_ts == ts:
            thread = replace(thread, thread_ts=thread.channel)
        pipe.zadd(self.key, {str(thread): self.clock()})

    async def trim(self) -> None:
        """Drop the oldest places."""
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.zremrangebyscore(self.key, 0, self.clock() - SERVED_TTL_S)
            pipe.zremrangebyrank(self.key, 0, -MAX_SERVED - 1)
            pipe.expire(self.key, SERVED_TTL_S)
            await pipe.execute()

    async def latest(self, limit: int) -> list[ThreadKey]:
        """Return up to ``limit`` places, the latest first."""
        found = await self.redis.zrevrange(self.key, 0, limit - 1)
        parts = [str(member).split(":", 2) for member in found]
        return [ThreadKey(team=team, channel=channel, thread_ts=ts) for team, channel, ts in parts]

    async def forget(self, thread: ThreadKey) -> None:
        """Forget this place."""
        await self.redis.zrem(self.key, str(thread))
