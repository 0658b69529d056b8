"""When each call of Slack's Web API may go out: one pace per workspace, method and channel, shared by all workers.

Slack counts an app's calls a workspace at a time, and posts a channel at a time. Its documentation gives a tier of so
many calls a minute for each method; what else it limits, its refusals (HTTP 429) tell.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import structlog
from redis.asyncio import Redis
from redis.commands.core import AsyncScript
from redis.exceptions import RedisError

log = structlog.get_logger()

Keeps = Literal["", "fresh", "looked_for"]  # whether a call that waits keeps a place, and surely is a new one

ASK_S: Final = 1.0  # how long Redis is asked for; without its word a call goes out and Slack decides


class Pace(NamedTuple):
    """Milliseconds from one call to the next, once so many went out at once."""

    interval_ms: int
    burst: int


# Slack's tiers 2, 3 and 4, which its page on each method names.
_CALLS_A_MINUTE: Final = {
    20: ("chat.startStream", "chat.stopStream", "conversations.list", "usergroups.list"),
    50: (
        *("chat.update", "chat.delete", "conversations.replies", "conversations.history", "conversations.info"),
        *("agents.sessions.setStatus", "agents.sessions.rename"),
    ),
    100: ("chat.appendStream", "chat.postEphemeral", "users.info", "files.info", "views.open", "views.publish"),
}
_UNKNOWN: Final = Pace(interval_ms=0, burst=1)  # only Slack's refusals slow such a method down
# Half of what a minute allows may go out at once.
PACES: Final[Mapping[str, Pace]] = {
    # One a second a channel; of "short bursts" Slack tells no figure.
    "chat.postMessage": Pace(interval_ms=1_000, burst=3),
    **{name: Pace(60_000 // calls, calls // 2) for calls, names in _CALLS_A_MINUTE.items() for name in names},
}


@dataclass(slots=True, eq=False)
class RateLimits:
    """The paces of one workspace."""

    redis: Redis
    team: Callable[[], str]  # its id, which is known only once Slack was asked
    prefix: str = "orion"
    on_wait: Callable[[str, float], None] = lambda _method, _seconds: None  # hears of each call that has to wait
    _script: AsyncScript = field(init=False)

    def __post_init__(self) -> None:
        self._script = self.redis.register_script((Path(__file__).parent / "pace.lua").read_text())

    def key(self, method: str, arguments: Mapping[str, Any]) -> str:
        """Where a pace stands: posts have one for each channel."""
        place = f":{arguments.get('channel', '')}" if method == "chat.postMessage" else ""
        return f"{self.prefix}:pace:{self.team()}:{method}{place}"

    async def reserve(
        self, method: str, arguments: Mapping[str, Any], *, patience_s: float, keeps: Keeps = "", spare: bool = False
    ) -> float:
        """Take a call's turn, if it comes within ``patience_s``; else it is not to be made now. Seconds until then."""
        pace = PACES.get(method, _UNKNOWN)
        # Looks and readings at the pace of answers once left 83 of 130 questions of a storm unanswered.
        burst = max(1, pace.burst // 2) if spare else pace.burst
        # Who comes back with the same call is served at the place that it kept.
        caller = f"{keeps}:{call_id(arguments)}" if keeps else ""
        wait_s = await self._ask(method, arguments, pace.interval_ms, burst, round(patience_s * 1000), caller, 0)
        if wait_s:
            self.on_wait(method, wait_s)
        return wait_s

    async def note_refusal(self, method: str, arguments: Mapping[str, Any], retry_after_s: float) -> None:
        """Slack refused the call: nobody makes another one before that."""
        pace = PACES.get(method, _UNKNOWN)
        refused_ms = max(1, round(retry_after_s * 1000))
        await self._ask(method, arguments, pace.interval_ms, pace.burst, 0, "", refused_ms)

    async def is_waiting(self, method: str, arguments: Mapping[str, Any]) -> bool:
        """Whether a place is kept for this call's first try. Raises ``RedisError``."""
        return bool(await self.redis.hexists(self.key(method, arguments), f"caller:fresh:{call_id(arguments)}"))

    async def _ask(self, method: str, arguments: Mapping[str, Any], *args: int | str) -> float:
        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        try:
            async with asyncio.timeout(ASK_S):
                wait_ms = await self._script(keys=[self.key(method, arguments)], args=args)
        except (RedisError, TimeoutError) as error:
            log.warning("rate_limit_unknown", error_type=type(error).__name__)
            return 0.0
        if task and task.cancelling() > before:  # redis-py swallows a cancellation now and then
            raise asyncio.CancelledError
        return float(wait_ms) / 1000


def call_id(arguments: Mapping[str, Any]) -> str:
    """The name of a call, the same when it is made again: where it goes, and the question its metadata names."""
    told = {name: arguments.get(name) for name in ("channel", "thread_ts", "ts", "metadata")}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]
