"""The threads of each direct chat by when something was last said in them, for a day (A1).

A message that opens a thread there may go on from the one before: that is its context, and what the word "stop" means.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from agent.thread.conversation import ThreadKey

CONTEXT_S: Final = 1_800  # what was said longer ago is no context of a new thread
KEPT_S: Final = 86_400


class DirectChats:
    """Over one Redis. Every method raises ``RedisError``."""

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
