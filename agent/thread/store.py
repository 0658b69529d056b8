"""Thread states in Redis under (team, channel, thread_ts), with a TTL that use refreshes.

``save`` only overwrites the version that was loaded and, given a ``LeaseFence``, only while the lease is still held. A
missing or unreadable state loads as a fresh one.
"""

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import structlog
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.exceptions import RedisError

from agent.json_data import compress, decompress, parse_number
from agent.thread.conversation import ThreadKey
from agent.thread.state import SCHEMA, StateNotSaved, ThreadState, from_json, to_json

log = structlog.get_logger()
TTL_S = 30 * 24 * 3600
CLUSTER_SHARDS = 16  # a constant, because two workers with different values would not see each other's work


class StateFenced(StateNotSaved):
    """The turn lost its lease before it could save: another turn owns the thread, or will."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseFence:
    """Fencing token: its holder may write as long as the hash ``key`` has it, until the hash's ``until`` (ms)."""

    key: str
    token: str


def shards_of(redis: Redis) -> int:
    """Return the number of shards of the keys: 16 in a cluster, else 1. Redis determines it; there is no setting."""
    return CLUSTER_SHARDS if isinstance(redis, RedisCluster) else 1


def team_of(thread: str) -> str:
    """Return the workspace of a thread's id."""
    return thread.partition(":")[0]


def hash_tag(thread: str, *, prefix: str = "orion", shards: int = 1) -> str:
    """Return ``prefix:{shard}``, the start of a workspace's keys: one script can use them all, even in a cluster."""
    return shard_tag(zlib.crc32(team_of(thread).encode("utf-8", "replace")) % shards, prefix=prefix, shards=shards)


def shard_tag(number: int, *, prefix: str, shards: int) -> str:
    """Return the beginning of every key of a shard. It names the number of shards if there are several.

    A worker that counts differently (because it takes one node of a cluster for the whole) then shares no keys.
    """
    return f"{prefix}:{{{number}}}" if shards == 1 else f"{prefix}:{{{number}/{shards}}}"


_VERSION = re.compile("[0-9]{1,15}")


def read_row(key: str, row: Sequence[Any]) -> tuple[ThreadState, int]:
    """Return the state under ``key`` and its schema, which is 0 without a state or for an early version."""
    version, text, schema = row
    written = int(parse_number(schema))
    if version is None or not _VERSION.fullmatch(str(version)):  # it is missing or damaged: the next save overwrites it
        return ThreadState(), written
    state = from_json(decompress(str(text)))
    if state == ThreadState():
        log.warning("damaged_value_ignored", key=key)  # a saved state has at least a version
    # The next save is checked against the version in the hash, not the one in the text.
    return replace(state, version=int(version)), written


class ThreadStore:
    """Loads and saves states. ``prefix`` and ``shards`` are the same as the mailbox's. Times are in seconds."""

    def __init__(self, redis: Redis, *, prefix: str = "orion", shards: int | None = None) -> None:
        self._redis = redis
        self._prefix = prefix
        self._shards = shards or shards_of(redis)
        self._save = redis.register_script(Path(__file__).with_name("save.lua").read_text(encoding="utf-8"))

    def key(self, key: ThreadKey) -> str:
        """Return the Redis key of this thread's state."""
        return f"{hash_tag(str(key), prefix=self._prefix, shards=self._shards)}:state:{key}"

    async def load(self, key: ThreadKey) -> ThreadState:
        """Return the thread's state, or a fresh one. Raises ``RedisError``."""
        async with self._redis.pipeline(transaction=True) as pipe:
            self.ask(pipe, key)
            row, _ = await pipe.execute()
        return read_row(self.key(key), row)[0]

    def ask(self, pipe: Any, key: ThreadKey) -> None:
        """Put the two commands of ``load`` into a pipeline. ``read_row`` reads the reply to the first."""
        pipe.hmget(self.key(key), ["version", "state", "schema"])
        pipe.expire(self.key(key), TTL_S)

    async def save(self, key: ThreadKey, state: ThreadState, *, fence: LeaseFence | None = None) -> ThreadState:
        """Overwrite the version from which ``state`` was loaded, and return the new one. Raises ``StateNotSaved``."""
        saved = replace(state, version=state.version + 1)
        # A lone surrogate (half an emoji from a cut text) has no UTF-8 form. A question mark is better than no state.
        text = compress(to_json(saved)).encode("utf-8", "replace")
        keys = [self.key(key), fence.key if fence else self.key(key)]  # in a cluster they must be in one slot
        arguments: list[Any] = [state.version, saved.version, text, TTL_S, fence.token if fence else "", SCHEMA]
        try:
            answer = await self._save(keys=keys, args=arguments)
        except RedisError as error:
            message = f"Redis did not take the state: {type(error).__name__}"
            raise StateNotSaved(message) from error
        if answer == 1:
            return saved
        raise StateFenced(str(key)) if answer else StateNotSaved(f"{key}: another writer saved first")
