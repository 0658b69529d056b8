"""Pause and resume, for all processes over the same Redis."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from redis.asyncio import Redis

from agent.packing import parse_json
from agent.payload import string

MAX_REASON_LENGTH = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A pause in force. ``since`` is seconds since 1970, ``reason`` an admin's words, perhaps none."""

    since: float
    reason: str = ""


class Pausing:
    """The pause switch. ``clock`` gives seconds since 1970. Every method raises ``RedisError`` if Redis is away."""

    def __init__(self, redis: Redis, *, prefix: str = "orion", clock: Callable[[], float] = time.time) -> None:
        self._redis = redis
        self._prefix = prefix
        self._clock = clock

    def key(self) -> str:
        """Redis key of the pause. It has no TTL: a pause must not end by itself."""
        return f"{self._prefix}:paused"

    def resumed_key(self) -> str:
        """Redis key of the time of the last resume."""
        return f"{self._prefix}:resumed"

    async def pause(self, reason: str = "") -> Pause:
        """Pause from now on. A pause in force keeps its start and gets the new reason."""
        before = await self.current()
        pause = Pause(
            since=before.since if before else self._clock(), reason=" ".join(reason.split())[:MAX_REASON_LENGTH]
        )
        await self._redis.set(self.key(), json.dumps(asdict(pause)))
        return pause

    async def resume(self) -> bool:
        """End the pause. Return whether there was one."""
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.delete(self.key())
            pipe.set(self.resumed_key(), self._clock(), ex=30 * 86_400)
            deleted, _ = await pipe.execute()
        return bool(deleted)

    async def current(self) -> Pause | None:
        """Return the pause in force. An unreadable one is in force too."""
        return read_pause(await self._redis.get(self.key()))


def read_pause(stored: bytes | str | None) -> Pause | None:
    """Parse a stored pause. An unreadable one is in force too."""
    if not stored:
        return None
    try:
        fields = parse_json(stored)
        return Pause(since=float(fields["since"]), reason=string(fields, "reason"))
    except (ValueError, KeyError, TypeError):
        return Pause(since=0.0)
