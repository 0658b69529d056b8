"""Pause and resume (A12), for every process over the same Redis, until somebody resumes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from redis.asyncio import Redis

from bot.slack.payload import string

REASON_MOST = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A pause in force. ``since`` is seconds since 1970, ``reason`` an admin's words, perhaps none."""

    since: float
    reason: str = ""


class Pausing:
    """The switch. ``clock`` gives seconds since 1970. Every method raises ``RedisError`` when Redis is away."""

    def __init__(self, redis: Redis, *, prefix: str = "orion", clock: Callable[[], float] = time.time) -> None:
        self._redis = redis
        self._prefix = prefix
        self._clock = clock

    def key(self) -> str:
        """Where the pause stands; it has no TTL: Orion must not wake up by itself."""
        return f"{self._prefix}:paused"

    def resumed_key(self) -> str:
        """Where it stands when Orion was resumed last."""
        return f"{self._prefix}:resumed"

    async def pause(self, reason: str = "") -> Pause:
        """Pause from now on. One that holds already goes on as it began, with the new reason."""
        thread_mode = await self.now()
        since = thread_mode.since if thread_mode else self._clock()
        pause = Pause(since=since, reason=" ".join(reason.split())[:REASON_MOST])
        await self._redis.set(self.key(), json.dumps({"since": pause.since, "reason": pause.reason}))
        return pause

    async def resume(self) -> bool:
        """Go on; whether there was a pause."""
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.delete(self.key())
            pipe.set(self.resumed_key(), self._clock(), ex=30 * 86_400)
            deleted, _ = await pipe.execute()
        return bool(deleted)

    async def now(self) -> Pause | None:
        """The pause in force. One that cannot be read holds all the same."""
        return (await self.state())[0]

    async def state(self) -> tuple[Pause | None, float]:
        """The pause in force, and when the last one ended (seconds since 1970, 0 for never)."""
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.get(self.key())
            pipe.get(self.resumed_key())
            stored, resumed = await pipe.execute()
        return read_pause(stored), float(resumed or 0)


def read_pause(stored: str | None) -> Pause | None:
    """The pause as it stands in Redis. One that cannot be read holds all the same."""
    if not stored:
        return None
    try:
        fields = json.loads(stored)
        return Pause(since=float(fields["since"]), reason=string(fields, "reason"))
    except (ValueError, KeyError, TypeError):
        return Pause(since=0.0)
