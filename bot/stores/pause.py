"""Pause and resume, for every process over the same Redis, until somebody resumes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

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
        before = await self.now()
        pause = Pause(since=before.since if before else self._clock(), reason=" ".join(reason.split())[:REASON_MOST])
        await self._redis.set(self.key(), json.dumps(asdict(pause)))
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
        return read_pause(await self._redis.get(self.key()))


def read_pause(stored: bytes | str | None) -> Pause | None:
    """The pause as it stands in Redis. One that cannot be read holds all the same."""
    if not stored:
        return None
    try:
        fields = json.loads(stored)
        return Pause(since=float(fields["since"]), reason=string(fields, "reason"))
    except (ValueError, KeyError, TypeError):
        return Pause(since=0.0)
