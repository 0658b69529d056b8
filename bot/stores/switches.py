"""Switches that people set: the pause of all processes over one Redis, and the state of listening channels."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Final

from redis.asyncio import Redis

from agent.packing import parse_json, parse_number
from agent.payload import string

MAX_REASON_LENGTH = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A pause in force. ``since`` is seconds since 1970, ``reason`` an admin's words, perhaps none."""

    since: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Pausing:
    """The pause switch. ``clock`` gives seconds since 1970. Every method raises ``RedisError`` if Redis is away."""

    redis: Redis
    prefix: str = "orion"
    clock: Callable[[], float] = time.time

    def key(self) -> str:
        """Redis key of the pause. It has no TTL: a pause must not end by itself."""
        return f"{self.prefix}:paused"

    def resumed_key(self) -> str:
        """Redis key of the time of the last resume."""
        return f"{self.prefix}:resumed"

    async def pause(self, reason: str = "") -> Pause:
        """Pause from now on. A pause in force keeps its start and gets the new reason."""
        before = await self.current()
        pause = Pause(
            since=before.since if before else self.clock(), reason=" ".join(reason.split())[:MAX_REASON_LENGTH]
        )
        await self.redis.set(self.key(), json.dumps(asdict(pause)))
        return pause

    async def resume(self) -> bool:
        """End the pause. Return whether there was one."""
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.delete(self.key())
            pipe.set(self.resumed_key(), self.clock(), ex=30 * 86_400)
            deleted, _ = await pipe.execute()
        return bool(deleted)

    async def current(self) -> Pause | None:
        """Return the pause in force. An unreadable one is in force too."""
        return read_pause(await self.redis.get(self.key()))


def read_pause(stored: bytes | str | None) -> Pause | None:
    """Parse a stored pause. An unreadable one is in force too."""
    if not stored:
        return None
    try:
        fields = parse_json(stored)
        return Pause(since=float(fields["since"]), reason=string(fields, "reason"))
    except (ValueError, KeyError, TypeError):
        return Pause(since=0.0)


MAX_POSTS_A_DAY: Final = 20  # in one channel
QUIET_AFTER_DISLIKES: Final = 2
QUIET_TTL_S: Final = 86_400
MUTED_TTL_S: Final = 365 * 86_400
WORK_TTL_S: Final = 300  # longer than a turn: a crashed worker frees the channel
_DAY_TTL_S: Final = 2 * 86_400


@dataclass(frozen=True, slots=True)
class Listening:
    """The channels in which Orion listens. Methods raise ``RedisError``. ``clock`` gives seconds since 1970."""

    redis: Redis
    prefix: str = "orion"
    clock: Callable[[], float] = time.time

    def key(self, what: str, team: str, channel: str) -> str:
        """Redis key of one fact about a channel: ``muted``, ``quiet``, ``working``, or a day's count."""
        return f"{self.prefix}:listening:{what}:{team}:{channel}"

    async def may_speak(self, team: str, channel: str) -> bool:
        """Return whether the channel is neither muted nor quiet, and today's cap is not reached."""
        keys = [self.key(what, team, channel) for what in ("muted", "quiet", self._today("posts"))]
        muted, quiet, posts = await self.redis.mget(keys)
        return not muted and not quiet and parse_number(posts) < MAX_POSTS_A_DAY

    async def begin(self, team: str, channel: str, turn_id: str) -> bool:
        """Claim the channel for one turn. Return False if another turn works there."""
        key = self.key("working", team, channel)
        if await self.redis.set(key, turn_id, nx=True, ex=WORK_TTL_S):
            return True
        return str(await self.redis.get(key)) == turn_id  # of an earlier try of the same message

    async def end(self, team: str, channel: str, turn_id: str) -> None:
        """Free the channel, unless another turn has it."""
        key = self.key("working", team, channel)
        if await self.redis.get(key) == turn_id:
            await self.redis.delete(key)

    async def count_post(self, team: str, channel: str) -> None:
        """Count an answer against today's cap."""
        await self._count(self.key(self._today("posts"), team, channel))

    async def count_dislike(self, team: str, channel: str) -> None:
        """Count a dislike; after two of one day the channel is quiet for a day."""
        if await self._count(self.key(self._today("dislikes"), team, channel)) >= QUIET_AFTER_DISLIKES:
            await self.redis.set(self.key("quiet", team, channel), "1", ex=QUIET_TTL_S)

    async def set_muted(self, team: str, channel: str, *, muted: bool) -> None:
        """Mute or unmute a channel."""
        key = self.key("muted", team, channel)
        await (self.redis.set(key, "1", ex=MUTED_TTL_S) if muted else self.redis.delete(key))

    def _today(self, what: str) -> str:
        return f"{what}:{datetime.fromtimestamp(self.clock(), UTC):%Y-%m-%d}"

    async def _count(self, key: str) -> int:
        async with self.redis.pipeline(transaction=True) as pipe:
            pipe.incr(key)
            pipe.expire(key, _DAY_TTL_S)
            count, _ = await pipe.execute()
        return int(count)
