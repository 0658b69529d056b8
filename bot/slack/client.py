"""The Bolt app, its connections and tokens, from plain values: one HTTP session, no hidden retries.

Bolt's own check answers 200 when Slack is away, which would lose the event: an event that cannot be authorised is not
acknowledged here. The libraries' log lines quote whole payloads and are silenced.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import aiohttp
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.slack.message import BotIdentity
from bot.slack.payload import mapping, string
from bot.slack.web_api import DeliveryFailed, SlackCalls, await_reply
from observability.loopback import proxy_for

SLACK_API_URL: Final = "https://slack.com/api/"
REPLY_TIMEOUT_S: Final = 5.0
_CALL_TIMEOUT_S: Final = 20.0  # for calls without a bound of their own; ``SlackCalls`` ends an attempt after 15 s
_MAX_CONNECTIONS: Final = 1_000  # of all workspaces; each has at most ``bot.slack.web_api.AT_ONCE``

Authorize = Callable[[str | None], Awaitable[AuthorizeResult | None]]  # None: not served, events are ignored


class NotAuthorized(Exception):  # noqa: N818 - a state of the workspace, not a bug
    """Slack did not tell who Orion is; the event must come again."""


class _Discreet(logging.Filter):
    """Leaves of a Slack library's line only where it came from and what kind it is: their texts quote."""

    def filter(self, record: logging.LogRecord) -> bool:
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else "error"
        record.msg, record.args = f"slack library: {kind} in {record.module}.{record.funcName}", ()
        record.exc_info, record.exc_text = None, None
        return True


def library_logger() -> logging.Logger:
    """The logger that Bolt and the SDK get. An explicit level: they format every payload when it is unset."""
    logger = logging.getLogger("orion.slack_library")
    logger.setLevel(logging.ERROR)
    if not any(isinstance(known, _Discreet) for known in logger.filters):
        logger.addFilter(_Discreet())
    return logger


@asynccontextmanager
async def open_client(token: str, *, api_url: str = SLACK_API_URL) -> AsyncIterator[AsyncWebClient]:
    """A Web API client with a session of its own; ``api_url`` may name another Slack-compatible server."""
    connector = aiohttp.TCPConnector(limit=_MAX_CONNECTIONS)
    timeout = aiohttp.ClientTimeout(total=_CALL_TIMEOUT_S)
    # Without one the SDK opens a new session, and connection, for each call.
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        yield _client(token, api_url, session)


def copy_client(client: AsyncWebClient, token: str | None = None) -> AsyncWebClient:
    """Another client, of the same server over the same connections."""
    return _client(token, client.base_url, client.session)


def _client(token: str | None, api_url: str, session: aiohttp.ClientSession | None) -> AsyncWebClient:
    # It repeats nothing by itself: a repeated post could stand twice. ``SlackCalls`` knows when to repeat.
    client = AsyncWebClient(token=token, base_url=api_url, session=session, logger=library_logger(), retry_handlers=[])
    client.proxy = proxy_for(api_url)  # the SDK's own choice knows neither loopback nor NO_PROXY
    return client


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTrial:
    """What came of it."""

    state: Literal["accepted", "refused", "unreachable"]
    reason: str = ""  # Slack's own word for a refusal, or the kind of trouble on the way
    reply: Mapping[str, Any] = field(default_factory=dict)
    scopes: frozenset[str] = frozenset()


async def try_token(call: Awaitable[AsyncSlackResponse], within_s: float = REPLY_TIMEOUT_S) -> TokenTrial:
    """What Slack says to a harmless ``call``: ``auth_test``, or for an app token ``apps_connections_open``."""
    try:
        reply = await await_reply(call, within_s)
    except DeliveryFailed as failure:
        if failure.reason.startswith("http_"):  # Slack names its errors; a bare status is somebody else's
            return TokenTrial(state="unreachable", reason="what answers there is not Slack")
        return TokenTrial(state="refused" if failure.refused else "unreachable", reason=failure.reason)
    granted = str(reply.headers.get("x-oauth-scopes", "")).split(",")
    scopes = frozenset(scope.strip() for scope in granted) - {""}
    return TokenTrial(state="accepted", reply=mapping(reply.data), scopes=scopes)


@dataclass(slots=True)
class TokenCheck:
    """Whether Slack still takes the bot token. A Slack that is away says nothing about it."""

    client: AsyncWebClient
    every_s: float = 60.0  # it is asked at most once in so many seconds
    within_s: float = 2.0
    _asked: float = -math.inf
    _accepted: bool = True

    async def is_accepted(self) -> bool:
        """False once Slack refused it: it was revoked, or the app removed."""
        now = time.monotonic()
        if now - self._asked >= self.every_s:
            self._asked = now
            state = (await try_token(self.client.auth_test(), self.within_s)).state
            self._accepted = state == "accepted" or (state == "unreachable" and self._accepted)
        return self._accepted


@dataclass(slots=True, eq=False)
class Workspace:
    """One workspace: who Orion is there, asked of Slack once."""

    client: AsyncWebClient
    calls: SlackCalls
    _known: BotIdentity | None = field(default=None, init=False)
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def own(self) -> BotIdentity:
        """Who Orion is here. Raises ``DeliveryFailed``: the token is refused, or Slack is away."""
        async with self._asking:  # whoever comes meanwhile waits for the one call
            if self._known is None:
                told = await self.calls.read("auth.test")
                self._known = BotIdentity(
                    user=string(told, "user_id"), bot=string(told, "bot_id"), team=string(told, "team_id")
                )
            return self._known

    @property
    def team(self) -> str:
        """The workspace's id as far as it is known already."""
        return self._known.team if self._known else ""

    def adopt(self, token: str, own: BotIdentity) -> None:
        """Speak with this token from now on, as who it belongs to: both are known from an installation."""
        self.client.token = token
        self._known = own

    async def authorize(self, _team: str | None = None) -> AuthorizeResult:
        """Bolt's authorisation. Raises ``NotAuthorized`` where Slack cannot be asked: then no ack goes out."""
        try:
            own = await self.own()
        except DeliveryFailed as failure:
            raise NotAuthorized(failure.reason) from None
        return AuthorizeResult(
            enterprise_id=None, team_id=own.team, bot_user_id=own.user, bot_id=own.bot, bot_token=self.client.token
        )


def build_app(client: AsyncWebClient, authorize: Authorize) -> AsyncApp:
    """The Bolt app. Its listeners run to their end before the ack goes out, in Socket Mode and over HTTP alike."""

    # No bound method: Bolt passes a value for every parameter, self included.
    async def authorized(team_id: str | None) -> AuthorizeResult | None:
        return await authorize(team_id)

    return AsyncApp(
        client=copy_client(client),  # without a token: with one, Bolt would do its own authorisation
        name="orion",
        logger=library_logger(),
        signing_secret="",
        authorize=authorized,  # type: ignore[arg-type]  # None is understood, though the annotation does not say so
        process_before_response=True,  # else Bolt acknowledges first, and a process that dies loses the event
        request_verification_enabled=False,  # it would log a bad request's body; ``bot.servers.http`` checks
        ignoring_self_events_enabled=False,  # ``bot.events.parse`` alone sorts out self and bots
        attaching_conversation_kwargs_enabled=False,  # no listener uses what Bolt would attach
    )
