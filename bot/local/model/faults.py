"""Faults for the next calls and events, set by a test."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from functools import partialmethod
from typing import Literal

from bot.local.model.errors import ApiError
from bot.local.model.roster import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFault:
    """One fault of one call. ``seconds`` is the wait of a ``delay``."""

    kind: Literal["error", "hang", "hold", "reset", "lost_response", "delay"]
    error: ApiError | None = None
    seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class ApiCall:
    """One Web API call as the server saw it. ``error`` is empty while it runs and if it succeeds."""

    method: str
    arguments: Json
    error: str = ""
    status: int = 200
    done: bool = False


@dataclass(slots=True)
class Faults:
    """The pending faults, by Web API method, and those of the event stream."""

    _by_method: dict[str, deque[CallFault]] = field(default_factory=dict)
    released: asyncio.Event = field(default_factory=asyncio.Event)  # hanging and held calls wait for it
    duplicate_events: int = 0  # how many of the next events are sent twice with the same event id
    missing: set[str] = field(default_factory=set)  # methods that an older or another server lacks

    def fail(
        self, method: str, error: str = "internal_error", *, times: int = 1, status: int = 200, retry_after: int = 0
    ) -> None:
        """Let the next calls of ``method`` (``*`` = any) fail with this error, HTTP status and Retry-After."""
        refusal = ApiError(error, status=status, retry_after=retry_after or None)
        self._add(CallFault(kind="error", error=refusal), method, times=times)

    def rate_limit(self, method: str, *, times: int = 1, retry_after: int = 1) -> None:
        """Answer 429 ``ratelimited`` with a Retry-After in seconds."""
        self.fail(method, "ratelimited", times=times, status=429, retry_after=retry_after)

    def delay(self, method: str, seconds: float, *, times: int = 1) -> None:
        """Carry out and answer the next calls only later, even if the caller has gone."""
        self._add(CallFault(kind="delay", seconds=seconds), method, times=times)

    def _add(self, fault: CallFault, method: str, *, times: int = 1) -> None:
        self._by_method.setdefault(method, deque()).extend([fault] * times)

    # Leaves the next calls unanswered until ``release`` or the end of the workspace.
    hang = partialmethod(_add, CallFault(kind="hang"))
    # Carries out the next calls only after ``release``, even if the caller has gone.
    hold = partialmethod(_add, CallFault(kind="hold"))
    # Closes the connection of the next calls before anything happened.
    reset = partialmethod(_add, CallFault(kind="reset"))
    # Carries out the next calls, but closes the connection without a reply.
    lose_response = partialmethod(_add, CallFault(kind="lost_response"))

    def release(self) -> None:
        """Let every hanging or held call continue."""
        self.released.set()
        self.released = asyncio.Event()

    def clear(self) -> None:
        """Clear all faults; hanging calls continue."""
        self._by_method.clear()
        self.missing.clear()
        self.duplicate_events = 0
        self.release()

    def take(self, method: str) -> CallFault | None:
        """Return the fault for this call, if any."""
        for name in (method, "*"):
            if waiting := self._by_method.get(name):
                return waiting.popleft()
        return None
