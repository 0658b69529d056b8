"""The mailbox's Lua scripts, the entries they store, and the bell that wakes a worker.

A script touches the keys of one shard only, so it also runs in a cluster. A lost bell costs half a second.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from redis.asyncio import Redis
from redis.commands.core import AsyncScript
from redis.exceptions import RedisError

from agent.thread.store import shard_tag

LUA = Path(__file__).parent / "lua"
BELL_TTL_S = 60
UNREADABLE_ID = "unreadable"
MAX_BELL_ENTRIES = 64


def load_script(redis: Redis, name: str) -> AsyncScript:
    """Register a script, prefixed with the part that all scripts share."""
    return redis.register_script((LUA / "ready.lua").read_text() + (LUA / f"{name}.lua").read_text())


def shard_tags(prefix: str, shards: int) -> list[str]:
    """Hash tags of all shards. Every key of a shard begins with its tag."""
    return [shard_tag(number, prefix=prefix, shards=shards) for number in range(shards)]


class MailboxEntry(NamedTuple):
    """A message in a mailbox, as stored. ``enqueued_at`` is Redis' time in seconds since 1970."""

    id: str
    enqueued_at: float
    body: str


def split_entry(entry: str) -> MailboxEntry:
    """Split a stored entry. A damaged one has no body."""
    message_id, _, rest = entry.partition(" ")
    stored_ms, _, body = rest.partition(" ")
    if not (message_id and stored_ms.isascii() and stored_ms.isdecimal()):
        return MailboxEntry(UNREADABLE_ID, 0.0, "")
    return MailboxEntry(message_id, int(stored_ms) / 1000, body)


class Wakeup:
    """The list that idle workers block on. With one shard the scripts push to it in the same step as the change.

    With several shards one command cannot block on lists of several nodes. All shards then share one list, pushed to
    after the script.
    """

    def __init__(self, redis: Redis, *, prefix: str, shards: int) -> None:
        self._redis = redis
        self._shared = shards > 1
        self.key = f"{prefix}:{{{'bell' if self._shared else 0}}}:bell"

    @property
    def ttl_in_scripts(self) -> int:
        """TTL in seconds for a script that rings the bell itself, 0 for one that must not."""
        return 0 if self._shared else BELL_TTL_S

    async def ring_if_asked(self, answer: int) -> bool:
        """Ring the shared bell if the script's reply is 2 or -2. Return whether the reply is above 0."""
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
        """Block until the bell rings, for ``timeout_s`` at most. Raises ``RedisError``."""
        await self._redis.brpop([self.key], timeout=timeout_s)
