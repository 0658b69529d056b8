"""Faults on demand, for tests: a status, an error, a delay or a hang for the next calls of a method."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from bot.local.model.roster import Json

FaultKind = Literal["error", "hang", "hold", "reset", "lost_response", "delay"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that goes wrong with one call. ``seconds`` is the wait of a ``delay``."""

    kind: FaultKind
    error: str = "internal_error"
    status: int = 200
    retry_after: int | None = None
    seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class ApiCall:
    """One Web API call as the server saw it. ``error`` is empty while it runs and when it went well."""

    method: str
    arguments: Json
    at: float
    error: str = ""
    status: int = 200
    done: bool = False


@dataclass(slots=True)
class Faults:
    """The faults still to strike, by Web API method, and those of the event stream."""

    _by_method: dict[str, deque[Fault]] = field(default_factory=dict)
    _released: asyncio.Event = field(default_factory=asyncio.Event)
    drop_events: int = 0
    """How many of the next events are lost before they are first sent (Slack then re-sends them)."""
    duplicate_events: int = 0
    """How many of the next events are sent twice with the same event id."""
    sockets_hang: bool = False
    """While true, Socket Mode connections stay open but say nothing and answer no ping."""
    refuse_sockets: bool = False
    """While true, ``apps.connections.open`` works but the WebSocket itself is refused."""
    missing: set[str] = field(default_factory=set)
    """Methods that this workspace does not have, as an older or another Slack-compatible server."""

    def fail(
        self, method: str, error: str = "internal_error", *, times: int = 1, status: int = 200, retry_after: int = 0
    ) -> None:
        """Lets the next calls of ``method`` (``*`` = any) fail with this error, HTTP status and Retry-After."""
        self._add(method, Fault(kind="error", error=error, status=status, retry_after=retry_after or None), times)

    def rate_limit(self, method: str, *, times: int = 1, retry_after: int = 1) -> None:
        """Answers 429 ``ratelimited`` with a Retry-After in seconds."""
        self.fail(method, "ratelimited", times=times, status=429, retry_after=retry_after)

    def hang(self, method: str, *, times: int = 1) -> None:
        """Leaves the next calls without an answer until ``release`` or the end of the workspace."""
        self._add(method, Fault(kind="hang"), times)

    def hold(self, method: str, *, times: int = 1) -> None:
        """Does what the next calls ask only after ``release``: also when the caller has gone by then."""
        self._add(method, Fault(kind="hold"), times)

    def reset(self, method: str, *, times: int = 1) -> None:
        """Closes the connection of the next calls before anything happened."""
        self._add(method, Fault(kind="reset"), times)

    def lose_response(self, method: str, *, times: int = 1) -> None:
        """Does what the call asks, then closes the connection without an answer."""
        self._add(method, Fault(kind="lost_response"), times)

    def delay(self, method: str, seconds: float, *, times: int = 1) -> None:
        """Does what the next calls ask, and answers, only later: also when the caller has gone by then."""
        self._add(method, Fault(kind="delay", seconds=seconds), times)

    def release(self) -> None:
        """Lets every hanging or held call go on."""
        self._released.set()
        self._released = asyncio.Event()

    async def hanging(self) -> None:
        """Waits for ``release``."""
        await self._released.wait()

    def clear(self) -> None:
        """Nothing goes wrong any more; hanging calls go on."""
        self._by_method.clear()
        self.missing.clear()
        self.drop_events = self.duplicate_events = 0
        self.sockets_hang = self.refuse_sockets = False
        self.release()

    def take(self, method: str) -> Fault | None:
        """The fault that strikes this call, if any."""
        for name in (method, "*"):
            if waiting := self._by_method.get(name):
                return waiting.popleft()
        return None

    def _add(self, method: str, fault: Fault, times: int) -> None:
        self._by_method.setdefault(method, deque()).extend([fault] * times)
