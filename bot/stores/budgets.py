"""Daily token budgets of people, channels and workspaces. A day is a day of UTC.

Spending is counted call by call, so a killed worker's share counts too. Turns under way may overrun a budget.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from agent.tasks import background_tasks
from bot.slack.message import Incoming

Holder = Literal["user", "channel", "workspace"]

DAY_S: Final = 86_400
BUDGET_TTL_S: Final = 2 * DAY_S
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Tokens a day, 0 for no limit. The per-person limit does not apply to ``admins``."""

    user: int = 0
    channel: int = 0
    workspace: int = 0
    admins: frozenset[str] = frozenset()

    def of(self, incoming: Incoming) -> dict[Holder, int]:
        """Return the limits that apply to this message."""
        personal = 0 if incoming.user in self.admins else self.user
        found: dict[Holder, int] = {"user": personal, "channel": self.channel, "workspace": self.workspace}
        return {holder: limit for holder, limit in found.items() if limit}


class Budgets:
    """The counts of each day. ``clock`` gives seconds since 1970."""

    def __init__(
        self, redis: Redis, limits: Limits, *, prefix: str = "orion", clock: Callable[[], float] = time.time
    ) -> None:
        self._redis = redis
        self._limits = limits
        self._prefix = prefix
        self._clock = clock
        self._counts: dict[str, Callable[[int], object]] = {}

    def key(self, team: str) -> str:
        """Redis key of a workspace's counts of today: one hash, so that they change in one step."""
        return f"{self._prefix}:tokens:{team}:{datetime.fromtimestamp(self._clock(), UTC):%Y-%m-%d}"

    @property
    def seconds_until_reset(self) -> int:
        """Number of seconds until the next day of UTC begins."""
        return DAY_S - int(self._clock()) % DAY_S

    def queue_read(self, pipe: Any, incoming: Incoming) -> bool:
        """Queue the reading in a pipeline if a limit applies; ``find_exhausted`` takes the reply."""
        fields = [_field(holder, incoming) for holder in self._limits.of(incoming)]
        if fields:
            pipe.hmget(self.key(incoming.thread.team), fields)
        return bool(fields)

    def find_exhausted(self, incoming: Incoming, used: Sequence[Any]) -> Holder | None:
        """Return the holder whose budget is exhausted, given the ``used`` tokens from Redis."""
        limits = self._limits.of(incoming)
        pairs = zip(limits.items(), used, strict=True) if used else ()
        return next((holder for (holder, limit), n in pairs if int(n or 0) >= limit), None)

    def record_usage(self, turn_id: str, tokens: int) -> None:
        """Count the tokens of one call of this turn. Turns outside ``count_turn`` are ignored."""
        if tokens > 0 and (count := self._counts.get(turn_id)):
            count(tokens)

    @asynccontextmanager
    async def count_turn(self, turn_id: str, incoming: Incoming) -> AsyncIterator[None]:
        """Count each call of the turn while the block runs. Without a limit nothing is counted."""
        limits = self._limits
        if not (limits.user or limits.channel or limits.workspace):
            yield
            return
        unwritten: list[int] = []
        try:
            async with background_tasks() as group:

                def count(tokens: int) -> None:
                    unwritten.append(tokens)
                    group.create_task(self._write(incoming, unwritten), name="tokens")

                self._counts[turn_id] = count
                try:
                    yield
                finally:
                    if self._counts.get(turn_id) is count:  # else the lease was lost and the next delivery try runs
                        del self._counts[turn_id]
        finally:
            await self._write(incoming, unwritten)

    async def _write(self, incoming: Incoming, unwritten: list[int]) -> None:
        """Add the unwritten tokens. If Redis is away, the next call adds them."""
        tokens, key = sum(unwritten), self.key(incoming.thread.team)
        unwritten.clear()
        if not tokens:
            return
        try:
            async with self._redis.pipeline(transaction=True) as pipe:
                for holder in ("user", "channel", "workspace"):
                    pipe.hincrby(key, _field(holder, incoming), tokens)
                pipe.expire(key, BUDGET_TTL_S)
                await pipe.execute()
        except RedisError as error:
            unwritten.append(tokens)
            _log.warning("tokens_not_counted", error_type=type(error).__name__, tokens=tokens)


def _field(holder: Holder, incoming: Incoming) -> str:
    whose = {"user": f"user:{incoming.user}", "channel": f"channel:{incoming.thread.channel}"}
    return whose.get(holder, holder)


def duration_text(seconds: int) -> str:
    """Return hours and minutes in symbols that every language shares; at least one minute."""
    minutes = max(1, round(seconds / 60))
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"  # noqa: PLR2004 - an hour
