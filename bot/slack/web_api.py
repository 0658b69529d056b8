"""Calls of Slack's Web API that keep to its limits and wait out server errors and broken connections.

A call that may have been carried out is looked for before it is repeated; the lease is checked before each attempt.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import aiohttp
import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from agent.model.circuit_breaker import CircuitBreaker, retry_after_s
from bot.slack.payload import string
from bot.slack.rate_limits import Keeps, RateLimits

Reply = Mapping[str, Any]
Look = Callable[[], Awaitable[Reply | None]]
LeaseCheck = Callable[[], None]
OnMaybePosted = Callable[[], Awaitable[object]]
Urgency = Literal["must", "asked", "spare"]

# Slack's own trouble: the same call may succeed later. Every other error is final.
_PASSING: Final = frozenset(
    {"ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "request_timeout"}
)
_SERVER_ERROR: Final = 500
_LIMITED: Final = frozenset({"ratelimited", "rate_limited"})
_LONGEST_PAUSE_S: Final = 20.0
AT_ONCE: Final = 20
_LEFT_ALONE: Final = "left_alone"
_log = structlog.get_logger()


class DeliveryFailed(Exception):  # noqa: N818 - an outcome that callers expect, named as one
    """Slack did not take it. ``permanent`` tells a thread that is gone from a Slack that is away.

    ``again_s`` is how many seconds to wait before it is tried again, where that is known.
    """

    def __init__(self, reason: str, *, permanent: bool, again_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.permanent = permanent
        self.again_s = again_s


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trouble:
    """One failed attempt. ``doubt`` means that Slack may have carried it out all the same, ``down`` that it is ill."""

    reason: str
    passing: bool
    doubt: bool
    down: bool = False
    limited: bool = False
    retry_after_s: float | None = None


def _unheard(_method: str, _reason: str) -> None:
    """Nobody counts the troubles."""


def no_lease() -> None:
    """The lease check of an effect that no lease guards."""


async def _let_be() -> None:
    """Nobody needs to know."""


class SlackCalls:
    """Calls methods of one workspace.

    ``patience_s`` bounds the time from the first attempt to the start of the last one, ``attempt_s`` each attempt.
    ``on_trouble`` hears the method and the reason of each attempt that failed. ``breaker`` stands before what changes
    something. ``limits`` are those of the workspace: a call whose turn comes later than ``turn_s`` from now fails, and
    says when to try again. No more than ``at_once`` calls are under way: a slow workspace leaves connections to others.
    """

    def __init__(  # noqa: PLR0913 - how patient to be, each named at the call
        self,
        client: AsyncWebClient,
        *,
        patience_s: float = 60.0,
        attempt_s: float = 15.0,
        first_pause_s: float = 0.5,
        on_trouble: Callable[[str, str], None] = _unheard,
        breaker: CircuitBreaker | None = None,
        limits: RateLimits | None = None,
        turn_s: float = 2.0,
        at_once: int = AT_ONCE,
    ) -> None:
        self._client = client
        self._patience_s = patience_s
        self._attempt_s = attempt_s
        self._first_pause_s = first_pause_s
        self._on_trouble = on_trouble
        self._breaker = breaker or CircuitBreaker("slack")
        self._limits = limits
        self._turn_s = turn_s
        self._places = asyncio.Semaphore(at_once)

    async def read(self, method: str, *, urgency: Urgency = "asked", **params: Any) -> Reply:
        """Calls a reading method. One that ``must`` be made keeps its place under the limits, ``spare`` ones come last.

        Raises:
            DeliveryFailed: a final error, or patience ran out.
        """
        return await self._persist(
            method,
            params,
            lambda: self._attempt(
                method, lambda: self._client.api_call(method, http_verb="GET", params=params), self._attempt_s
            ),
            keeps="looked_for" if urgency == "must" else "",
            spare=urgency == "spare",
        )

    async def write(  # noqa: PLR0913 - how it may be repeated, each named at the call
        self,
        method: str,
        body: Mapping[str, Any],
        *,
        lease_check: LeaseCheck = no_lease,
        look: Look | None = None,
        maybe_posted: OnMaybePosted = _let_be,
        fresh: bool = False,
    ) -> Reply:
        """Calls a changing method. ``look`` finds what an attempt without a reply may have done.

        ``maybe_posted`` hears of each attempt that Slack may still carry out, before the next one, also when cancelled.
        ``fresh``: nobody can have made this call before.

        Raises:
            DeliveryFailed: a final error, or patience ran out.
        """
        return await self._persist(
            method,
            body,
            lambda: self._guarded(method, lambda: self._client.api_call(method, json=dict(body))),
            lease_check=lease_check,
            look=look,
            maybe_posted=maybe_posted,
            keeps="fresh" if fresh else "looked_for",
        )

    async def unmade(self, method: str, body: Mapping[str, Any]) -> bool:
        """Whether this very call waits for its first turn under the limits: nobody made it. Raises ``RedisError``."""
        return self._limits is not None and await self._limits.keeps(method, body)

    async def once(self, method: str, body: Mapping[str, Any], *, timeout_s: float = 2.5) -> Reply:
        """Calls once, without patience: for what is stale a moment later (a status, a modal's trigger).

        Raises:
            DeliveryFailed: whatever went wrong.
        """
        await self._take_turn(method, body, patience_s=0.5)
        try:
            async with asyncio.timeout(timeout_s):
                await self._places.acquire()
        except TimeoutError as exc:
            raise DeliveryFailed(type(exc).__name__, permanent=False) from None
        try:
            found = await self._attempt(method, lambda: self._client.api_call(method, json=dict(body)), timeout_s)
        finally:
            self._places.release()
        if isinstance(found, _Trouble):
            await self._tell_refused(method, body, found)
            raise DeliveryFailed(found.reason, permanent=not found.passing, again_s=found.retry_after_s)
        return found

    async def _take_turn(
        self,
        method: str,
        arguments: Mapping[str, Any],
        *,
        patience_s: float,
        keeps: Keeps = "",
        spare: bool = False,
    ) -> None:
        """Wait until the call may go out. Raises ``DeliveryFailed`` where that is later than in ``patience_s``."""
        if self._limits is None:
            return
        turn = await self._limits.turn(method, arguments, patience_s=patience_s, keeps=keeps, spare=spare)
        if turn.wait_s > patience_s:
            again_s = turn.wait_s + random.uniform(0.0, 0.25)  # noqa: S311 - spreads retries only
            reason = "ratelimited"
            raise DeliveryFailed(reason, permanent=False, again_s=again_s)
        if turn.wait_s:
            await asyncio.sleep(turn.wait_s)

    def _latest(self, found: _Trouble) -> float:
        """Up to when a call may sleep, by the loop's clock, because of what it met."""
        here = self._limits is not None and found.limited
        return asyncio.get_running_loop().time() + self._turn_s if here else math.inf

    async def _tell_refused(self, method: str, arguments: Mapping[str, Any], found: _Trouble) -> None:
        if self._limits is not None and found.limited:
            await self._limits.refused(method, arguments, found.retry_after_s or 1.0)

    async def _persist(  # noqa: PLR0913 - as ``write``
        self,
        method: str,
        arguments: Mapping[str, Any],
        attempt: Callable[[], Awaitable[Reply | _Trouble]],
        *,
        lease_check: LeaseCheck = no_lease,
        look: Look | None = None,
        maybe_posted: OnMaybePosted = _let_be,
        keeps: Keeps = "",
        spare: bool = False,
    ) -> Reply:
        clock = asyncio.get_running_loop()
        deadline, pause = clock.time() + self._patience_s, self._first_pause_s
        in_doubt = False
        while True:
            place: Keeps = "" if in_doubt else keeps
            await self._take_turn(method, arguments, patience_s=self._turn_s, keeps=place, spare=spare)
            found = await self._in_place(attempt, lease_check, maybe_posted)
            if not isinstance(found, _Trouble):
                return found
            if found.passing and found.doubt:
                await maybe_posted()
            await self._tell_refused(method, arguments, found)
            if self._limits is not None and found.limited and not in_doubt and clock.time() < deadline:
                continue  # behind those who wait already
            wait = pause if found.retry_after_s is None else found.retry_after_s
            if not found.passing or clock.time() + wait > min(deadline, self._latest(found)):
                raise DeliveryFailed(found.reason, permanent=not found.passing, again_s=found.retry_after_s)
            _log.warning("slack_call_waits", method=method, reason=found.reason, wait_s=round(wait, 2))
            await asyncio.sleep(wait)
            pause = min(pause * 2, _LONGEST_PAUSE_S) * random.uniform(0.8, 1.2)  # noqa: S311 - spreads retries only
            in_doubt = in_doubt or found.doubt  # what a later attempt hears says nothing of an earlier one
            if in_doubt and look is not None and (done := await look()) is not None:
                return done

    async def _in_place(
        self, attempt: Callable[[], Awaitable[Reply | _Trouble]], lease_check: LeaseCheck, maybe_posted: OnMaybePosted
    ) -> Reply | _Trouble:
        """One attempt, once fewer than ``at_once`` calls are under way."""
        async with self._places:
            lease_check()  # only now: the wait for a place may have been longer than the lease
            try:
                return await attempt()
            except asyncio.CancelledError:
                await maybe_posted()
                raise

    async def _guarded(self, method: str, attempt: Callable[[], Awaitable[Any]]) -> Reply | _Trouble:
        """One attempt, unless Slack is being left alone; the breaker hears how it went."""
        if wait_s := self._breaker.wait_s():
            return _Trouble(reason=_LEFT_ALONE, passing=True, doubt=False, retry_after_s=wait_s)
        try:
            found = await self._attempt(method, attempt, self._attempt_s)
        except asyncio.CancelledError:
            self._breaker.abandoned()
            raise
        if isinstance(found, _Trouble) and found.down:
            self._breaker.failed()
        else:
            self._breaker.succeeded()
        return found

    async def _attempt(self, method: str, attempt: Callable[[], Awaitable[Any]], timeout_s: float) -> Reply | _Trouble:
        try:
            async with asyncio.timeout(timeout_s):
                reply = await attempt()
        except SlackApiError as exc:
            trouble = _told(exc)
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            unheard = isinstance(exc, aiohttp.ClientConnectorError)
            trouble = _Trouble(reason=type(exc).__name__, passing=True, doubt=not unheard, down=True)
        else:
            return reply.data if isinstance(reply.data, dict) else {}
        self._on_trouble(method, trouble.reason)
        return trouble


def _told(exc: SlackApiError) -> _Trouble:
    """What an error reply means. An unreadable body leaves the SDK with aiohttp's own response, hence two names."""
    response: Any = exc.response
    status: int = getattr(response, "status_code", 0) or getattr(response, "status", 0)
    reason = string(getattr(response, "data", None), "error") or f"http_{status}"
    server_error = status >= _SERVER_ERROR
    limited = status == 429 or reason in _LIMITED  # noqa: PLR2004 - the HTTP status
    passing = server_error or limited or reason in _PASSING
    return _Trouble(
        reason=reason,
        passing=passing,
        doubt=not limited,
        down=passing and not limited,
        limited=limited,
        retry_after_s=_retry_after(response.headers) if limited else None,
    )


def _retry_after(headers: Mapping[str, str]) -> float:
    asked = retry_after_s(headers, now=time.time())
    return 1.0 if asked is None else asked
