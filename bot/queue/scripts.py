"""The mailbox's Lua scripts, what they store, and the notification that wakes a worker.

A script touches the keys of one shard only, so it runs in a cluster too. A lost notification costs half a second.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from redis.asyncio import Redis
from redis.commands.core import AsyncScript
from redis.exceptions import RedisError

from agent.thread.store import shard_tag

LUA = Path(__file__).parent / "lua"
BELL_TTL_S = 60
MAX_BELL_ENTRIES = 64


def load_script(redis: Redis, name: str) -> AsyncScript:
    """One of the scripts, after what they all share."""
    return redis.register_script((LUA / "ready.lua").read_text() + (LUA / f"{name}.lua").read_text())


def shard_tags(prefix: str, shards: int) -> list[str]:
    """The hash tags of all shards: what every key of a shard begins with."""
    return [shard_tag(number, prefix=prefix, shards=shards) for number in range(shards)]


def split_entry(entry: str) -> tuple[str, float, str]:
    """An entry as stored: message id, time of arrival in seconds, body."""
    message_id, stored_ms, body = entry.split(" ", 2)
    return message_id, int(stored_ms) / 1000, body


class Wakeup:
    """One list that idle workers wait on. With one shard the scripts ring it in the same step as the change.

    With several, one command cannot wait on lists of several nodes: then all shards share a list with a tag of its own,
    rung after the script.
    """

    def __init__(self, redis: Redis, *, prefix: str, shards: int) -> None:
        self._redis = redis
        self._shared = shards > 1
        self.key = f"{{{prefix}:bell}}:bell" if self._shared else f"{{{prefix}:0}}:bell"

    @property
    def ttl_in_scripts(self) -> int:
        """Seconds for a script that is to ring, 0 for one that must not."""
        return 0 if self._shared else BELL_TTL_S

    async def ring_if_asked(self, answer: int) -> bool:
        """What a script's answer means: whether above 0; after a 2 or -2 a worker has been woken."""
        if abs(answer) > 1 and self._shared:
            with suppress(RedisError):
                await self.ring()
        return answer > 0

    async def ring(self) -> None:
        """Wake one waiting worker. Raises ``RedisError``."""
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.lpush(self.key, 1)
            pipe.ltrim(self.key, 0, MAX_BELL_ENTRIES - 1)
            pipe.expire(self.key, BELL_TTL_S)
            await pipe.execute()

    async def wait(self, timeout_s: float) -> None:
        """Return when it rings, after ``timeout_s`` at the latest. Raises ``RedisError``."""
        await self._redis.brpop([self.key], timeout=timeout_s)
