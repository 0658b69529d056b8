"""Where Orion stands in a thread: unknown, addressed before ("engaged"), or told to keep quiet ("muted") (A1).

Kept in Redis as long as the thread's state; a mention engages again. Must never be guessed from a message's text.
"""

from __future__ import annotations

from redis.asyncio import Redis

from agent.conversation import ThreadKey
from bot.intake import Standing

KEPT_S = 30 * 86_400


class Standings:
    """The standing of each thread."""

    def __init__(self, redis: Redis, *, prefix: str = "orion") -> None:
        self._redis = redis
        self._prefix = prefix

    def key(self, thread: ThreadKey) -> str:
        """Where one thread's standing lies."""
        return f"{self._prefix}:standing:{thread}"

    async def of(self, thread: ThreadKey) -> Standing:
        """The thread's standing; reading it is use, so it lives on."""
        stored = await self._redis.getex(self.key(thread), ex=KEPT_S)
        value = stored.decode() if isinstance(stored, bytes) else stored
        if value == "muted":
            return "muted"
        return "engaged" if value else "unknown"

    async def engage(self, thread: ThreadKey) -> None:
        """Orion was addressed here."""
        await self._redis.set(self.key(thread), "engaged", ex=KEPT_S)

    async def mute(self, thread: ThreadKey) -> None:
        """Somebody told Orion to keep quiet here."""
        await self._redis.set(self.key(thread), "muted", ex=KEPT_S)
