"""State of listening, by channel: whether it is muted, how often Orion spoke unasked today, and who is at work."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from redis.asyncio import Redis

MAX_POSTS_A_DAY: Final = 20  # in one channel
QUIET_AFTER_DISLIKES: Final = 2
QUIET_TTL_S: Final = 86_400
MUTED_TTL_S: Final = 365 * 86_400
WORK_TTL_S: Final = 300  # longer than a turn: a crashed worker frees the channel
_DAY_TTL_S: Final = 2 * 86_400


class Listening:
    """The channels in which Orion listens. Methods raise ``RedisError``. ``clock`` gives seconds since 1970."""

    def __init__(self, redis: Redis, *, prefix: str = "orion", clock: Callable[[], float] = time.time) -> None:
        self._redis = redis
        self._prefix = prefix
        self._clock = clock

    def key(self, what: str, team: str, channel: str) -> str:
        """Redis key of one fact about a channel: ``muted``, ``quiet``, ``working``, or a day's count."""
        return f"{self._prefix}:listening:{what}:{team}:{channel}"

    async def may_speak(self, team: str, channel: str) -> bool:
        """Return whether the channel is neither muted nor quiet, and today's cap is not reached."""
        keys = [self.key(what, team, channel) for what in ("muted", "quiet", self._today("posts"))]
        muted, quiet, posts = await self._redis.mget(keys)
        return not muted and not quiet and int(posts or 0) < MAX_POSTS_A_DAY

    async def begin(self, team: str, channel: str, turn_id: str) -> bool:
        """Claim the channel for one turn. Return False if another turn works there."""
        key = self.key("working", team, channel)
        if await self._redis.set(key, turn_id, nx=True, ex=WORK_TTL_S):
            return True
        return str(await self._redis.get(key)) == turn_id  # of an earlier try of the same message

    async def end(self, team: str, channel: str) -> None:
        """Free the channel."""
        await self._redis.delete(self.key("working", team, channel))

    async def count_post(self, team: str, channel: str) -> None:
        """Count an answer against today's cap."""
        await self._count(self.key(self._today("posts"), team, channel))

    async def count_dislike(self, team: str, channel: str) -> None:
        """Count a dislike; after two of one day the channel is quiet for a day."""
        if await self._count(self.key(self._today("dislikes"), team, channel)) >= QUIET_AFTER_DISLIKES:
            await self._redis.set(self.key("quiet", team, channel), "1", ex=QUIET_TTL_S)

    async def set_muted(self, team: str, channel: str, *, muted: bool) -> None:
        """Mute or unmute a channel."""
        key = self.key("muted", team, channel)
        await (self._redis.set(key, "1", ex=MUTED_TTL_S) if muted else self._redis.delete(key))

    def _today(self, what: str) -> str:
        return f"{what}:{datetime.fromtimestamp(self._clock(), UTC):%Y-%m-%d}"

    async def _count(self, key: str) -> int:
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.incr(key)
            pipe.expire(key, _DAY_TTL_S)
            count, _ = await pipe.execute()
        return int(count)
