"""When each call of Slack's Web API may go out: one pace per workspace, method and channel, shared by all workers.

Slack counts an app's calls a workspace at a time, and posts a channel at a time. Its documentation gives a tier of so
many calls a minute for each method; what else it limits, its refusals (HTTP 429) tell.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

log = structlog.get_logger()

Keeps = Literal["", "fresh", "looked_for"]
"""Whether a call that has to wait keeps a place, and whether it is one that nobody can have made before."""

ASK_S: Final = 1.0
"""How long Redis is asked for; without its word a call goes out and Slack decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Milliseconds from one call to the next, once so many went out at once."""

    interval_ms: int
    burst: int


def _tier(calls_a_minute: int) -> Pace:
    """Half of what a minute allows may go out at once."""
    return Pace(interval_ms=60_000 // calls_a_minute, burst=calls_a_minute // 2)


_UNKNOWN: Final = Pace(interval_ms=0, burst=1)
_TIER_2, _TIER_3, _TIER_4 = _tier(20), _tier(50), _tier(100)
PACES: Final[Mapping[str, Pace]] = {
    "chat.postMessage": Pace(interval_ms=1_000, burst=3),
    "chat.update": _TIER_3,
    "chat.delete": _TIER_3,
    "chat.startStream": _TIER_2,
    "chat.stopStream": _TIER_2,
    "chat.appendStream": _TIER_4,
    "chat.postEphemeral": _TIER_4,
    "conversations.replies": _TIER_3,
    "conversations.history": _TIER_3,
    "conversations.info": _TIER_3,
    "conversations.list": _TIER_2,
    "users.info": _TIER_4,
    "views.open": _TIER_4,
    "views.publish": _TIER_4,
    "agents.sessions.setStatus": _TIER_3,
    "agents.sessions.rename": _TIER_3,
    "files.info": _TIER_4,
    "usergroups.list": _TIER_2,
}
_BY_CHANNEL: Final = frozenset({"chat.postMessage"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """When a call's turn comes, in seconds from now. ``kept``: it had come before, and kept a place until now."""

    wait_s: float
    kept: bool = False


class RateLimits:
    """The paces of one workspace. ``team`` tells its id, ``on_wait`` hears each method that has to wait, in seconds."""

    def __init__(
        self,
        redis: Redis,
        team: Callable[[], str],
        *,
        prefix: str = "orion",
        on_wait: Callable[[str, float], None] = lambda _method, _seconds: None,
    ) -> None:
        self._redis = redis
        self._team = team
        self._prefix = prefix
        self._on_wait = on_wait
        self._script = redis.register_script((Path(__file__).parent / "pace.lua").read_text())

    def key(self, method: str, channel: str) -> str:
        """Where a pace stands."""
        place = f":{channel}" if method in _BY_CHANNEL else ""
        return f"{self._prefix}:pace:{self._team()}:{method}{place}"

    async def turn(
        self, method: str, arguments: Mapping[str, Any], *, patience_s: float, keeps: Keeps = "", spare: bool = False
    ) -> Slot:
        """Take a call's turn, if it comes within ``patience_s``; else it is not to be made now.

        A caller that ``keeps`` a place and comes back, with the same call, is served at that place. A ``spare`` call
        leaves half of what may go out at once to others.
        """
        pace = PACES.get(method, _UNKNOWN)
        pace = replace(pace, burst=max(1, pace.burst // 2)) if spare else pace
        caller = f"{keeps}:{call_id(arguments)}" if keeps else ""
        key = self.key(method, str(arguments.get("channel", "")))
        found = await self._ask(key, pace, round(patience_s * 1000), caller)
        if found.wait_s:
            self._on_wait(method, found.wait_s)
        return found

    async def refused(self, method: str, arguments: Mapping[str, Any], retry_after_s: float) -> None:
        """Slack refused the call: nobody makes another one before that."""
        key, refused_ms = self.key(method, str(arguments.get("channel", ""))), max(1, round(retry_after_s * 1000))
        await self._ask(key, PACES.get(method, _UNKNOWN), refused_ms=refused_ms)

    async def keeps(self, method: str, arguments: Mapping[str, Any]) -> bool:
        """Whether a place is kept for this call's first try. Raises ``RedisError``."""
        key = self.key(method, str(arguments.get("channel", "")))
        return bool(await self._redis.hexists(key, f"caller:fresh:{call_id(arguments)}"))

    async def _ask(self, key: str, pace: Pace, patience_ms: int = 0, caller: str = "", *, refused_ms: int = 0) -> Slot:
        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        try:
            async with asyncio.timeout(ASK_S):
                wait_ms, kept = await self._script(
                    keys=[key], args=[pace.interval_ms, pace.burst, patience_ms, caller, refused_ms]
                )
        except (RedisError, TimeoutError) as error:
            log.warning("rate_limit_unknown", error_type=type(error).__name__)
            return Slot(wait_s=0.0)
        if task and task.cancelling() > before:  # redis-py swallows a cancellation now and then
            raise asyncio.CancelledError
        return Slot(wait_s=wait_ms / 1000, kept=bool(kept))


def call_id(arguments: Mapping[str, Any]) -> str:
    """The name of a call, the same when it is made again: where it goes, and the question its metadata names."""
    told = {name: arguments.get(name) for name in ("channel", "thread_ts", "ts", "metadata")}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]
