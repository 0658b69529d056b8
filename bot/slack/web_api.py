"""Calls to Slack's Web API. They respect its limits and retry server errors and broken connections.

If Slack may have carried out a call, Orion looks for its effect before a retry. The lease is checked before each
request.
"""

import asyncio
import math
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, Final

import aiohttp
import structlog
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from agent.circuit_breaker import CircuitBreaker, clock_offset_s, retry_after_s
from agent.json_data import mapping, objects, string
from bot.slack.rate_limits import RateLimits, Urgency
from observability.metrics import Metrics
from verification.markup.mrkdwn import remove_unsendable

Reply = Mapping[str, Any]
Look = Callable[[], Awaitable[Reply | None]]
LeaseCheck = Callable[[], None]
OnMaybePosted = Callable[[], Awaitable[object]]

# The last one is a 429 without a Slack error, as proxies send it.
LIMIT_ERRORS: Final = frozenset({"ratelimited", "rate_limited", "http_429"})
# Slack's own problems: the same call may succeed later. All other errors that Slack names are final.
_RETRYABLE: Final = frozenset(
    {"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"}
)
_SERVER_ERROR: Final = 500
_NOT_SLACK: Final = "http_200"  # a proxy's page, a list, a bare false: Slack's own replies have more fields
MALFORMED: Final = "malformed_reply"
MISSING_METHOD: Final = frozenset({"unknown_method", "http_404", "http_405", "http_501"})
"""Replies of a Slack-compatible server to a method that it does not have."""
# Slack's replies if the app is not an agent there, or its manifest is older.
_NOT_FOR_TOKEN: Final = frozenset(
    {"not_authorized", "missing_scope", "not_allowed_token_type", "feature_not_enabled", "method_deprecated"}
)
MISSING_TTL_S: Final = 3_600.0  # if the workspace has no statuses, do not try one for each question
_BY_POST: Final = frozenset({"auth.test"})  # as the SDK sends it: other servers accept nothing else
_TOO_MANY_REQUESTS: Final = 429
_FIELDS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    **dict.fromkeys(("chat.update", "chat.delete", "chat.startStream", "chat.stopStream"), (("ts",),)),
    **dict.fromkeys(("conversations.list", "users.conversations"), (("channels",),)),
    **dict.fromkeys(("conversations.replies", "conversations.history"), (("messages",),)),
    **dict.fromkeys(("views.open", "views.publish"), (("view",),)),
    "apps.connections.open": (("url",),),
    "assistant.search.context": (("results",),),
    "auth.test": (("user_id",), ("team_id",)),
    "chat.getPermalink": (("permalink",),),
    "chat.postEphemeral": (("message_ts",),),
    "chat.postMessage": (("ts",), ("channel",)),
    "conversations.info": (("channel", "id"),),
    "files.info": (("file", "id"),),
    "oauth.v2.access": (("access_token",),),
    "users.info": (("user", "id"), ("user", "team_id")),
    "usergroups.list": (("usergroups",),),
}
"""The fields that each method's reply must have. A reply without one is not from Slack, and counts as an outage."""
_KINDS: Final[Mapping[str, type]] = {
    "ok": bool,
    **dict.fromkeys(("channels", "messages", "usergroups"), list),
    **dict.fromkeys(("results", "view"), dict),
}
"""The type of these fields; every other one is a text."""
_ERROR_NAME: Final = re.compile(r"\w+")  # as Slack writes them; a sentence is from another server
_MAX_PAUSE_S: Final = 20.0
# A call that must wait longer fails and says how long; its job goes back to the queue and keeps its place.
_MAX_TURN_WAIT_S: Final = 2.0
_MAX_RETRY_AFTER_S: Final = (
    600.0  # Slack asks for a minute at most; a day, as a proxy may ask for, would silence the workspace
)
_PAGE: Final = 200
_MAX_PAGES: Final = 1_000
AT_ONCE: Final = 20  # fifty slow workspaces fit into the thousand connections of ``bot.slack.client``
MAX_CLOCK_OFFSET_S: Final = 60.0
SET_CLOCK: Final = "Set this host's clock (NTP)."
log = structlog.get_logger()


class DeliveryFailed(Exception):  # noqa: N818 - an outcome that callers expect, named as one
    """Slack did not carry out a call."""

    def __init__(self, reason: str, *, permanent: bool, again_s: float | None = None, doubt: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.permanent = permanent  # for example a deleted thread; False during an outage
        self.again_s = again_s  # seconds to wait before the next request, if Slack named them
        self.doubt = doubt  # whether Slack may have carried it out

    @property
    def is_limited(self) -> bool:
        """Return whether there were too many calls."""
        return self.reason in LIMIT_ERRORS

    @property
    def is_refused(self) -> bool:
        """Return whether Slack itself refused finally, and not another server at its address."""
        return self.permanent and not self.reason.startswith("http_")


def no_lease() -> None:
    """Pass: no lease guards this effect."""


@dataclass(slots=True, eq=False)
class SlackCalls:
    """Calls methods for one workspace. Each raises ``DeliveryFailed`` for a final error, or if it takes too long."""

    client: AsyncWebClient
    _: KW_ONLY
    patience_s: float = 60.0  # from the start of the first request to the start of the last
    request_s: float = 15.0
    first_pause_s: float = 0.5
    metrics: Metrics | None = None
    # Guards calls that change something.
    breaker: CircuitBreaker = field(default_factory=partial(CircuitBreaker, "slack"))
    limits: RateLimits | None = None
    at_once: int = AT_ONCE  # calls in flight: a slow workspace leaves connections to others
    _places: asyncio.Semaphore = field(init=False)
    # Why and until when a method is off, by method and token; without a token it is off for all.
    _missing: dict[tuple[str, str], tuple[str, float]] = field(default_factory=dict, init=False)
    _clock_quiet_until: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.at_once)

    async def read(self, method: str, *, urgency: Urgency = "asked", **params: Any) -> Reply:
        """Call a reading method. With ``must`` it keeps its place under the limits; ``spare`` ones come last."""

        async def request() -> Reply:
            verb = "POST" if method in _BY_POST else "GET"
            call = self.client.api_call(method, http_verb=verb, params=params)
            return await self._request(method, params, call, self.request_s)

        return await self._retry(method, params, request, urgency)

    async def read_pages(self, method: str, **params: Any) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the entries on all pages of a list."""
        cursors = [""]
        while cursors[-1] not in cursors[:-1] and len(cursors) <= _MAX_PAGES:
            reply = await self.read(method, limit=_PAGE, cursor=cursors[-1], **params)
            for entry in objects(reply, *_FIELDS[method][0]):
                yield entry
            cursors.append(string(reply, "response_metadata", "next_cursor"))
            if not cursors[-1]:
                return
        raise DeliveryFailed(MALFORMED, permanent=False)  # the same pages again, or pages without end

    async def write(  # noqa: PLR0913 - how it may be repeated, each named at the call
        self,
        method: str,
        body: Mapping[str, Any],
        *,
        lease_check: LeaseCheck = no_lease,
        look: Look | None = None,
        maybe_posted: OnMaybePosted | None = None,
        fresh: bool = False,
    ) -> Reply:
        """Call a changing method.

        ``look`` finds what a request without a reply may have done. ``maybe_posted`` is called at once if Slack may
        still carry it out, even when cancelled. ``fresh``: this call was certainly never made before.
        """

        async def request() -> Reply:
            lease_check()  # only now, because the wait may have been longer than the lease
            if wait_s := self.breaker.wait_s():
                raise DeliveryFailed(reason="circuit_open", permanent=False, again_s=wait_s)
            call = self.client.api_call(method, json=sendable(body))
            try:
                reply = await self._request(method, body, call, self.request_s)
            except asyncio.CancelledError:
                self.breaker.release_probe()  # a stopped turn says nothing about Slack
                if maybe_posted:
                    await maybe_posted()
                raise
            except DeliveryFailed as failure:
                if failure.permanent or failure.is_limited:
                    self.breaker.record_success()  # Slack answered
                else:
                    self.breaker.record_failure()
                if maybe_posted and failure.doubt and not failure.permanent:
                    await maybe_posted()
                raise
            self.breaker.record_success()
            return reply

        return await self._retry(method, body, request, "fresh" if fresh else "must", look)

    # A trigger of Slack's expires after three seconds, hence the 2.5.
    async def call_once(self, method: str, body: Mapping[str, Any], *, timeout_s: float = 2.5) -> Reply:
        """Call once, without a retry: for a status or a modal, which are stale a moment later."""
        if reason := self._missing_reason(method):
            raise DeliveryFailed(reason, permanent=True)
        await self._take_turn(method, body, "asked", patience_s=0.5)
        try:
            async with asyncio.timeout(timeout_s):
                await self._places.acquire()  # do not wait for calls that hang
        except TimeoutError as exc:
            raise DeliveryFailed(type(exc).__name__, permanent=False) from None
        try:
            return await self._request(method, body, self.client.api_call(method, json=sendable(body)), timeout_s)
        except DeliveryFailed as failure:
            if failure.reason in MISSING_METHOD | _NOT_FOR_TOKEN:
                token = "" if failure.reason in MISSING_METHOD else self.client.token or ""
                self._missing[method, token] = failure.reason, time.monotonic() + MISSING_TTL_S
            raise
        finally:
            self._places.release()

    def is_supported(self, method: str) -> bool:
        """Return whether the workspace has this method, as far as ``call_once`` knows."""
        return not self._missing_reason(method)

    def _missing_reason(self, method: str) -> str:
        entries = [self._missing.get((method, token), ("", 0.0)) for token in ("", self.client.token or "")]
        return next((reason for reason, until in entries if time.monotonic() < until), "")

    async def _take_turn(
        self, method: str, arguments: Mapping[str, Any], urgency: Urgency, patience_s: float = _MAX_TURN_WAIT_S
    ) -> None:
        """Wait until the call may be made. Raises ``DeliveryFailed`` if that takes longer than ``patience_s``."""
        if not self.limits:
            return
        wait_s = await self.limits.reserve(method, arguments, patience_s=patience_s, urgency=urgency)
        if wait_s > patience_s:
            again_s = wait_s + random.uniform(0.0, 0.25)  # noqa: S311 - spreads retries only
            raise DeliveryFailed(reason="ratelimited", permanent=False, again_s=again_s)
        if wait_s:
            await asyncio.sleep(wait_s)

    async def _retry(
        self,
        method: str,
        arguments: Mapping[str, Any],
        request: Callable[[], Awaitable[Reply]],
        urgency: Urgency,
        look: Look | None = None,
    ) -> Reply:
        # Not stamina, which cannot look for an effect or wait for the limits between two requests.
        clock = asyncio.get_running_loop()
        deadline, pause = clock.time() + self.patience_s, self.first_pause_s
        in_doubt = False
        while True:
            await self._take_turn(method, arguments, urgency)
            try:
                async with self._places:
                    return await request()
            except DeliveryFailed as failure:
                by_limits = self.limits is not None and failure.is_limited
                if by_limits and not in_doubt and clock.time() < deadline:
                    continue  # after the calls that are already waiting
                wait = pause if failure.again_s is None else failure.again_s
                longest = min(deadline - clock.time(), _MAX_TURN_WAIT_S if by_limits else math.inf)
                if failure.permanent or wait > longest:
                    raise
                log.warning("slack_call_waits", method=method, reason=failure.reason, wait_s=round(wait, 2))
                in_doubt = in_doubt or failure.doubt  # a later reply says nothing about an earlier request
                if in_doubt and urgency != "spare":
                    urgency = "asked"
            await asyncio.sleep(wait)
            pause = min(pause * 2, _MAX_PAUSE_S) * random.uniform(0.8, 1.2)  # noqa: S311 - spreads retries only
            # Slack has no idempotency key: a repeated post would appear twice.
            if in_doubt and look is not None and (done := await look()) is not None:
                return done

    async def _request(
        self, method: str, arguments: Mapping[str, Any], call: Awaitable[AsyncSlackResponse], timeout_s: float
    ) -> Reply:
        """Wait for a reply. Record refusals, and log a wrong clock."""
        try:
            reply = await await_reply(method, call, timeout_s)
        except DeliveryFailed as failure:
            if self.metrics:
                self.metrics.slack_error(method, failure.reason)
            if self.limits and failure.is_limited:
                await self.limits.note_refusal(method, arguments, failure.again_s or 1.0)
            raise
        off_s = clock_offset_s(reply.headers, now=time.time())  # times and signatures depend on this host's clock
        if abs(off_s) > MAX_CLOCK_OFFSET_S and time.monotonic() >= self._clock_quiet_until:
            self._clock_quiet_until = time.monotonic() + 3_600
            log.warning("clock_differs", seconds_off=round(off_s), remedy=SET_CLOCK)
        return mapping(reply.data)


def sendable(value: Any) -> Any:
    """Return a body without characters that hide or reverse text, as in titles, names and quoted messages."""
    if isinstance(value, str):
        return remove_unsendable(value)[0]
    if isinstance(value, Mapping):
        return {name: sendable(one) for name, one in value.items()}
    return [sendable(one) for one in value] if isinstance(value, list | tuple) else value


async def await_reply(method: str, call: Awaitable[AsyncSlackResponse], within_s: float) -> AsyncSlackResponse:
    """Wait for Slack's reply to a method. Raises ``DeliveryFailed``, even for one that cannot be from Slack."""
    try:
        async with asyncio.timeout(within_s):
            reply = await call
        if all(_has_field(reply.data, path) for path in _FIELDS.get(method, (("ok",),))):
            return reply
        failure = DeliveryFailed(MALFORMED, permanent=False, doubt=True)
    except SlackApiError as error:
        failure = _as_failure(error)
    # The SDK fails on a 200 whose body is not a JSON object or is nested too deeply, as another server may send.
    except (AttributeError, RecursionError):
        failure = DeliveryFailed(_NOT_SLACK, permanent=False, doubt=True)
    except (aiohttp.ClientError, OSError, ValueError) as error:  # TimeoutError is an OSError
        connected = not isinstance(error, aiohttp.ClientConnectorError)  # without a connection nothing was carried out
        failure = DeliveryFailed(type(error).__name__, permanent=False, doubt=connected)
    raise failure


def _has_field(data: object, path: tuple[str, ...]) -> bool:
    value = mapping(data, *path[:-1]).get(path[-1])
    return isinstance(value, _KINDS.get(path[-1], str)) and (bool(value) or isinstance(value, list))


def _as_failure(error: SlackApiError) -> DeliveryFailed:
    """Read an error reply. With an unreadable body the SDK passes on aiohttp's response, hence two names."""
    response: Any = error.response
    status: int = getattr(response, "status_code", 0) or getattr(response, "status", 0)
    name = string(getattr(response, "data", None), "error")
    reason = name if _ERROR_NAME.fullmatch(name) else f"http_{status}"
    if status == _TOO_MANY_REQUESTS or reason in LIMIT_ERRORS:
        asked = retry_after_s(response.headers, now=time.time())
        reason = reason if reason in LIMIT_ERRORS else "ratelimited"
        return DeliveryFailed(reason, permanent=False, again_s=1.0 if asked is None else min(asked, _MAX_RETRY_AFTER_S))
    # Slack names its errors, so a reply without a name comes from another server and is not final.
    named = not reason.startswith("http_") or reason in MISSING_METHOD
    permanent = named and (status < _SERVER_ERROR or reason in MISSING_METHOD) and reason not in _RETRYABLE
    return DeliveryFailed(reason, permanent=permanent, doubt=True)  # the call may still have been carried out
