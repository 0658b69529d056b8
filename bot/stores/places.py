"""Where something was said: the threads of each direct chat, and all places that Orion serves.

A message that opens a thread in a direct chat may go on from the one before: that is its context, and what the word
"stop" means. After an absence what was missed is looked for in the places that are served.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from agent.thread.conversation import ThreadKey

CONTEXT_S: Final = 1_800  # what was said longer ago is no context of a new thread
KEPT_S: Final = 86_400
SERVED_S: Final = 30 * 86_400
SERVED_MOST: Final = 5_000


class DirectChats:
    """The threads of each direct chat by when something was last said in them, for a day."""

    def __init__(self, redis: Redis, *, prefix: str = "orion") -> None:
        self._redis = redis
        self._prefix = prefix

    def key(self, thread: ThreadKey) -> str:
        """Where the threads of this one's chat stand."""
        return f"{self._prefix}:direct:{thread.team}:{thread.channel}"

    def note(self, pipe: Pipeline, thread: ThreadKey, ts: str) -> None:
        """The message ``ts`` was said in this thread; only direct chats are kept."""
        if thread.channel.startswith("D"):
            key = self.key(thread)
            pipe.zadd(key, {thread.thread_ts: float(ts)})
            pipe.zremrangebyscore(key, 0, float(ts) - KEPT_S)
            pipe.expire(key, KEPT_S)

    async def before(self, thread: ThreadKey, ts: str) -> ThreadKey | None:
        """Where ``ts`` opens this thread: the one in which something was said last, less than half an hour before."""
        if not (thread.channel.startswith("D") and thread.thread_ts == ts):
            return None
        oldest, latest = f"({float(ts) - CONTEXT_S}", f"({float(ts)}"
        found = await self._redis.zrevrangebyscore(self.key(thread), latest, oldest, start=0, num=1)
        return replace(thread, thread_ts=str(found[0])) if found else None

    async def forget(self, thread: ThreadKey, *, chat: bool) -> None:
        """This thread is not there any more; with ``chat``, none of its direct chat is."""
        if chat:
            await self._redis.delete(self.key(thread))
        else:
            await self._redis.zrem(self.key(thread), thread.thread_ts)


@dataclass(frozen=True, slots=True)
class Served:
    """The threads and direct chats in which Orion was asked something, by when that was; the latest 5,000."""

    redis: Redis
    prefix: str = "orion"
    clock: Callable[[], float] = time.time

    @property
    def key(self) -> str:
        """Where they stand."""
        return f"{self.prefix}:served"

    def note(self, pipe: Pipeline, thread: ThreadKey, ts: str = "") -> None:
        """The message ``ts`` asks Orion something here: one that opens a thread in a direct chat stands in the chat."""
        if thread.channel.startswith("D") and thread.thread_ts == ts:
            thread = replace(thread, thread_ts=thread.channel)
        pipe.zadd(self.key, {str(thread): self.clock()})

    async def tidy(self) -> None:
        """Keep the latest, for thirty days."""
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.zremrangebyscore(self.key, 0, self.clock() - SERVED_S)
            pipe.zremrangebyrank(self.key, 0, -SERVED_MOST - 1)
            pipe.expire(self.key, SERVED_S)
            await pipe.execute()

    async def latest(self, limit: int) -> list[ThreadKey]:
        """Up to ``limit`` of them, the one last used first."""
        found = await self.redis.zrevrange(self.key, 0, limit - 1)
        parts = [str(member).split(":", 2) for member in found]
        return [ThreadKey(team=team, channel=channel, thread_ts=ts) for team, channel, ts in parts]

    async def forget(self, thread: ThreadKey) -> None:
        """It is not there any more."""
        await self.redis.zrem(self.key, str(thread))
