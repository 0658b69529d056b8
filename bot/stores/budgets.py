"""What people, channels and workspaces may spend in tokens on one day of UTC.

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

from agent.tasks import beside
from bot.slack.message import Incoming

Holder = Literal["user", "channel", "workspace"]

DAY_S: Final = 86_400
KEPT_S: Final = 2 * DAY_S
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Tokens a day, 0 for no limit. The per-person one does not bind ``admins``."""

    user: int = 0
    channel: int = 0
    workspace: int = 0
    admins: frozenset[str] = frozenset()

    def of(self, incoming: Incoming) -> dict[Holder, int]:
        """The limits that bind this message."""
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
        """Where the counts of a workspace's present day stand: one hash, so that they change in one step."""
        return f"{self._prefix}:tokens:{team}:{datetime.fromtimestamp(self._clock(), UTC):%Y-%m-%d}"

    @property
    def renewed_in_s(self) -> int:
        """Seconds until the next day of UTC begins."""
        return DAY_S - int(self._clock()) % DAY_S

    def ask(self, pipe: Any, incoming: Incoming) -> bool:
        """Put the question into a pipeline, if a limit binds the message; ``used_up`` reads the answer."""
        fields = [_field(holder, incoming) for holder in self._limits.of(incoming)]
        if fields:
            pipe.hmget(self.key(incoming.thread.team), fields)
        return bool(fields)

    def used_up(self, incoming: Incoming, used: Sequence[Any]) -> Holder | None:
        """Whose budget is, by what Redis said was ``used``."""
        limits = self._limits.of(incoming)
        pairs = zip(limits.items(), used, strict=True) if used else ()
        return next((holder for (holder, limit), n in pairs if int(n or 0) >= limit), None)

    def used(self, turn_id: str, tokens: int) -> None:
        """A call of this turn used so many tokens. A turn that nobody counts is none of ours."""
        if tokens > 0 and (count := self._counts.get(turn_id)):
            count(tokens)

    @asynccontextmanager
    async def counting(self, turn_id: str, incoming: Incoming) -> AsyncIterator[None]:
        """Write down each call of the turn while the block runs. Where no limit is set, nobody needs to know."""
        limits = self._limits
        if not (limits.user or limits.channel or limits.workspace):
            yield
            return
        unwritten: list[int] = []
        try:
            async with beside() as group:

                def count(tokens: int) -> None:
                    unwritten.append(tokens)
                    group.create_task(self._write(incoming, unwritten), name="tokens")

                self._counts[turn_id] = count
                try:
                    yield
                finally:
                    if self._counts.get(turn_id) is count:  # else its next try runs already: the lease was lost
                        del self._counts[turn_id]
        finally:
            await self._write(incoming, unwritten)

    async def _write(self, incoming: Incoming, unwritten: list[int]) -> None:
        """Add what is not written yet. A Redis that is away is asked again with the next call."""
        tokens, key = sum(unwritten), self.key(incoming.thread.team)
        unwritten.clear()
        if not tokens:
            return
        try:
            async with self._redis.pipeline(transaction=True) as pipe:
                for holder in ("user", "channel", "workspace"):
                    pipe.hincrby(key, _field(holder, incoming), tokens)
                pipe.expire(key, KEPT_S)
                await pipe.execute()
        except RedisError as error:
            unwritten.append(tokens)
            _log.warning("tokens_not_counted", error_type=type(error).__name__, tokens=tokens)


def _field(holder: Holder, incoming: Incoming) -> str:
    whose = {"user": f"user:{incoming.user}", "channel": f"channel:{incoming.thread.channel}"}
    return whose.get(holder, holder)


def in_words(seconds: int) -> str:
    """Hours and minutes as every language of F9 can read them; never less than a minute."""
    minutes = max(1, round(seconds / 60))
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"  # noqa: PLR2004 - an hour
