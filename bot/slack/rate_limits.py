"""Rate limits for Slack's Web API: one per workspace and method, and for posts one per channel.

All workers share them. Limits that Slack does not document show only as refusals (HTTP 429).
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import structlog
from redis.asyncio import Redis
from redis.commands.core import AsyncScript
from redis.exceptions import RedisError

from observability.metrics import Metrics

log = structlog.get_logger()

Urgency = Literal["spare", "asked", "must", "fresh"]
"""``spare`` calls come last. ``must`` and ``fresh`` ones keep their place; a fresh one was certainly never made."""

REDIS_TIMEOUT_S: Final = 1.0  # without Redis the call is made, and Slack decides


class CallPace(NamedTuple):
    """Milliseconds from one call to the next, after a burst of so many at once."""

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
_UNKNOWN: Final = CallPace(interval_ms=0, burst=1)  # only Slack's refusals slow down such a method
# Half of what a minute allows may go out at once.
PACES: Final[Mapping[str, CallPace]] = {
    # One per second and channel. Slack gives no figure for "short bursts".
    "chat.postMessage": CallPace(interval_ms=1_000, burst=3),
    **{name: CallPace(60_000 // calls, calls // 2) for calls, names in _CALLS_A_MINUTE.items() for name in names},
}


@dataclass(slots=True, eq=False)
class RateLimits:
    """The paces of one workspace. ``team`` is its id, empty until Slack was asked."""

    redis: Redis
    team: str = ""
    prefix: str = "orion"
    metrics: Metrics | None = None
    _script: AsyncScript = field(init=False)

    def __post_init__(self) -> None:
        self._script = self.redis.register_script((Path(__file__).parent / "pace.lua").read_text())

    def key(self, method: str, arguments: Mapping[str, Any]) -> str:
        """Redis key of a pace: posts have one for each channel."""
        place = f":{arguments.get('channel', '')}" if method == "chat.postMessage" else ""
        return f"{self.prefix}:pace:{self.team}:{method}{place}"

    async def reserve(
        self, method: str, arguments: Mapping[str, Any], *, patience_s: float, urgency: Urgency = "asked"
    ) -> float:
        """Return the seconds until a call may be made, and take its turn if that is within ``patience_s``."""
        pace = PACES.get(method, _UNKNOWN)
        # When readings had the same priority as answers, 83 of 130 questions in a storm stayed unanswered.
        burst = max(1, pace.burst // 2) if urgency == "spare" else pace.burst
        # A caller that returns with the same call gets its kept place.
        caller = f"{urgency}:{call_id(arguments)}" if urgency in {"must", "fresh"} else ""
        wait_s = await self._ask(method, arguments, pace.interval_ms, burst, round(patience_s * 1000), caller, 0)
        if wait_s and self.metrics:
            self.metrics.slack_waits.labels(method).observe(wait_s)
        return wait_s

    async def note_refusal(self, method: str, arguments: Mapping[str, Any], retry_after_s: float) -> None:
        """Record that Slack refused the call, so that no worker makes another before ``retry_after_s``."""
        pace = PACES.get(method, _UNKNOWN)
        refused_ms = max(1, round(retry_after_s * 1000))
        await self._ask(method, arguments, pace.interval_ms, pace.burst, 0, "", refused_ms)

    async def is_waiting(self, method: str, arguments: Mapping[str, Any]) -> bool:
        """Return whether the call's first request has a reserved place. Raises ``RedisError``."""
        return bool(await self.redis.hexists(self.key(method, arguments), f"caller:fresh:{call_id(arguments)}"))

    async def _ask(self, method: str, arguments: Mapping[str, Any], *args: int | str) -> float:
        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        try:
            async with asyncio.timeout(REDIS_TIMEOUT_S):
                wait_ms = await self._script(keys=[self.key(method, arguments)], args=args)
        except (RedisError, TimeoutError) as error:
            log.warning("rate_limit_unknown", error_type=type(error).__name__)
            return 0.0
        if task and task.cancelling() > before:  # redis-py may swallow a cancellation
            raise asyncio.CancelledError
        return float(wait_ms) / 1000


def call_id(arguments: Mapping[str, Any]) -> str:
    """Return an id of a call that is the same on a retry: from its place, and the question in its metadata."""
    told = {name: arguments.get(name) for name in ("channel", "thread_ts", "ts", "metadata")}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]
