"""Waits until a replica has the write, if there are replicas. Raises if none confirms in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from bot.redis.cluster import Cluster

CONFIRM_TIMEOUT_S = 0.5  # Slack waits three seconds for its ack; a healthy replica needs a few milliseconds
REPLICA_COUNT_TTL_S = 10.0  # INFO per question would be a round trip more; a new replica may be noticed late
MARK_TTL_S = 60  # never read: the mark only serves as the later write


class NotReplicated(RedisError):  # noqa: N818 - a fact, not an error: the write is stored, but on one server only
    """No replica has the write yet. A fail-over now would lose it."""


@dataclass(frozen=True, slots=True, eq=False)
class Replication:
    """Waits for replicas. ``clock`` returns seconds of a clock that never goes back."""

    redis: Redis
    within_s: float = CONFIRM_TIMEOUT_S
    clock: Callable[[], float] = time.monotonic
    _replicas: dict[str, tuple[float, int]] = field(default_factory=dict, init=False)

    async def confirm(self, shard: str) -> None:
        """Wait until a replica, if any is connected, has what was written to this shard. Raises ``NotReplicated``.

        A write of our own goes first: a replica that has the later write also has the earlier one from any connection.
        """
        if not await self._has_replicas(shard):
            return
        mark = f"{shard}:replicated"
        # One replica, no majority: each ack would take longer, and Slack waits three seconds (decision 6).
        set_it, wait = ("SET", mark, "1", "EX", MARK_TTL_S), ("WAIT", 1, round(self.within_s * 1000))
        if await self._on_one_connection(mark, set_it, wait) > 0:
            return
        self._replicas.pop(shard, None)
        if await self._has_replicas(shard):
            message = "no replica confirmed the write in time"
            raise NotReplicated(message)

    async def _has_replicas(self, shard: str) -> bool:
        known = self._replicas.get(shard)
        if known is None or self.clock() - known[0] > REPLICA_COUNT_TTL_S:
            known = self._replicas[shard] = self.clock(), await self._count_replicas(shard)
        return known[1] > 0

    async def _count_replicas(self, shard: str) -> int:
        """Number of replicas of the server that holds this shard. 0 if it does not say."""
        client = self.redis
        try:
            if isinstance(client, Cluster):
                info: Any = await client.info("replication", target_nodes=await client.holder_of(shard))
            else:
                info = await client.info("replication")
        except ResponseError:
            return 0
        return int(info.get("connected_slaves", 0))

    async def _on_one_connection(self, key: str, *commands: tuple[str | int, ...]) -> int:
        client = self.redis
        if not isinstance(client, Cluster):
            async with client.pipeline(transaction=False) as pipe:
                for command in commands:
                    pipe.execute_command(*command)
                return int((await pipe.execute())[-1])
        return int((await client.on_one_connection(key, *commands))[-1])  # WAIT counts what its own connection wrote
