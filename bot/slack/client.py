"""The Bolt app and the Web API clients: one HTTP session, no hidden retries.

Bolt's own check answers 200 when Slack is down, which would lose the event. Here an event that cannot be authorised is
not acknowledged. The libraries' log lines quote whole payloads, so only their place and kind are logged.
"""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import aiohttp
import structlog
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from agent.json_data import mapping, string
from bot.slack.message import BotIdentity
from bot.slack.web_api import MALFORMED, DeliveryFailed, Reply, SlackCalls, await_reply
from observability.loopback import proxy_for

SLACK_API_URL: Final = "https://slack.com/api/"
REPLY_TIMEOUT_S: Final = 5.0
_CALL_TIMEOUT_S: Final = 20.0  # for calls without their own limit; ``SlackCalls`` ends a request after 15 s
_MAX_CONNECTIONS: Final = 1_000  # for all workspaces; each has at most ``bot.slack.web_api.AT_ONCE``
REDIRECTS: Final = range(300, 400)
MAX_REPLY_BYTES: Final = 32_000_000  # far above a page of 999 long messages
log = structlog.get_logger()

# None: the team is not served, its events are ignored.
Authorize = Callable[[str | None], Awaitable[AuthorizeResult | None]]


class NotAuthorized(Exception):  # noqa: N818 - a state of the workspace, not a bug
    """Slack did not identify Orion, so the event must be sent again."""


def _remove_text(record: logging.LogRecord) -> bool:
    """Reduce a log line of a Slack library to its place and kind: the text may quote a message."""
    kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else "error"
    record.msg, record.args = f"slack library: {kind} in {record.module}.{record.funcName}", ()
    record.exc_info, record.exc_text = None, None
    return True


def library_logger() -> logging.Logger:
    """Return the logger for Bolt and the SDK. Its level is explicit, because without one they format every payload."""
    logger = logging.getLogger("orion.slack_library")
    logger.setLevel(logging.ERROR)
    logger.addFilter(_remove_text)  # adding the same function twice has no effect
    return logger


class SlackReply(aiohttp.ClientResponse):
    """A reply of the Web API. A longer one than ``MAX_REPLY_BYTES`` is not read: a file is, but in pieces."""

    async def read(self) -> bytes:
        """Return the whole body. Raises ``aiohttp.ClientPayloadError`` if it is too long."""
        if self._body is None:
            body = bytearray()
            async for piece in self.content.iter_any():
                body += piece
                if max(len(body), self.content_length or 0) > MAX_REPLY_BYTES:
                    self.close()
                    message = "longer than any reply of Slack"
                    raise aiohttp.ClientPayloadError(message)
            self._body = bytes(body)
        return await super().read()


async def _refuse_redirect(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Fail a call that is redirected. Slack never does so, and the call may have the token or an answer."""
    reply = await send(request)
    if reply.status in REDIRECTS:
        reply.close()
        raise aiohttp.TooManyRedirects(reply.request_info, reply.history)
    return reply


@asynccontextmanager
async def open_client(token: str, *, api_url: str = SLACK_API_URL) -> AsyncIterator[AsyncWebClient]:
    """Open a Web API client with its own session. ``api_url`` may name another Slack-compatible server."""
    connector = aiohttp.TCPConnector(limit=_MAX_CONNECTIONS)
    timeout = aiohttp.ClientTimeout(total=_CALL_TIMEOUT_S)
    # Without a session the SDK opens a new one, and a connection, for each call.
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, response_class=SlackReply, middlewares=[_refuse_redirect]
    ) as session:
        yield _client(token, api_url, session)


def copy_client(client: AsyncWebClient, token: str | None = None) -> AsyncWebClient:
    """Return another client of the same server over the same connections."""
    return _client(token, client.base_url, client.session)


def _client(token: str | None, api_url: str, session: aiohttp.ClientSession | None) -> AsyncWebClient:
    # No retries here: a repeated post could appear twice. ``SlackCalls`` knows when to retry.
    client = AsyncWebClient(token=token, base_url=api_url, session=session, logger=library_logger(), retry_handlers=[])
    client.proxy = proxy_for(api_url)  # the SDK ignores NO_PROXY and proxies loopback too
    return client


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTrial:
    """The result of trying a token."""

    state: Literal["accepted", "refused", "unreachable"]
    reason: str = ""  # Slack's word for a refusal, or the kind of connection error
    reply: Mapping[str, Any] = field(default_factory=dict)
    scopes: frozenset[str] = frozenset()


async def try_token(client: AsyncWebClient, within_s: float = REPLY_TIMEOUT_S, *, app_token: str = "") -> TokenTrial:
    """Try the client's token with a harmless call, or an app token."""
    call = client.apps_connections_open(app_token=app_token) if app_token else client.auth_test()
    try:
        reply = await await_reply("apps.connections.open" if app_token else "auth.test", call, within_s)
    except DeliveryFailed as failure:
        # Slack names its errors, so a bare status comes from another server.
        if failure.reason.startswith("http_") or failure.reason == MALFORMED:
            return TokenTrial(state="unreachable", reason="what answers there is not Slack")
        return TokenTrial(state="refused" if failure.is_refused else "unreachable", reason=failure.reason)
    granted = str(reply.headers.get("x-oauth-scopes", "")).split(",")
    scopes = frozenset(scope.strip() for scope in granted) - {""}
    return TokenTrial(state="accepted", reply=mapping(reply.data), scopes=scopes)


@dataclass(slots=True)
class TokenCheck:
    """Check whether Slack still accepts the bot token. An outage of Slack does not count."""

    client: AsyncWebClient
    every_s: float = 60.0  # at most one call per this many seconds
    within_s: float = 2.0
    _asked: float = -math.inf
    _accepted: bool = True

    async def is_accepted(self) -> bool:
        """Return False once Slack has refused it, because it was revoked or the app was removed."""
        now = time.monotonic()
        if now - self._asked >= self.every_s:
            self._asked = now
            state = (await try_token(self.client, self.within_s)).state
            self._accepted = state == "accepted" or (state == "unreachable" and self._accepted)
        return self._accepted


@dataclass(slots=True, eq=False)
class SlackWorkspace:
    """One workspace, and Orion's identity there, asked of Slack once."""

    calls: SlackCalls
    _identity: BotIdentity | None = field(default=None, init=False)
    _reply: Reply = field(default_factory=dict, init=False)
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def identity(self) -> BotIdentity:
        """Return Orion's ids here. Raises ``DeliveryFailed`` if the token is refused or Slack is down."""
        if self._identity:
            return self._identity
        reply = await self._ask()
        user, bot, team = (string(reply, name) for name in ("user_id", "bot_id", "team_id"))
        return self.use_installation(self.calls.client.token, BotIdentity(user=user, bot=bot, team=team))

    async def enterprise(self) -> str:
        """Return the id of the Enterprise organisation, or an empty text. Raises as ``identity`` does."""
        return string(await self._ask(), "enterprise_id")

    async def _ask(self) -> Reply:
        async with self._asking:  # concurrent callers wait for one call
            self._reply = self._reply or await self.calls.read("auth.test")
            return self._reply

    def use_installation(self, token: str | None, identity: BotIdentity) -> BotIdentity:
        """Use this token and the identity that it was installed with from now on."""
        self.calls.client.token, self._identity = token, identity
        if self.calls.limits:
            self.calls.limits.team = identity.team
        return identity

    async def authorize(self, _team: str | None = None) -> AuthorizeResult:
        """Authorise an event for Bolt. Raises ``NotAuthorized`` while Slack cannot be asked, so that no ack is sent."""
        try:
            own = await self.identity()
        except DeliveryFailed as failure:
            log.warning("event_not_authorized", reason=failure.reason)
            raise NotAuthorized(failure.reason) from None
        return AuthorizeResult(
            enterprise_id=None,
            team_id=own.team,
            bot_user_id=own.user,
            bot_id=own.bot,
            bot_token=self.calls.client.token,
        )


def build_app(client: AsyncWebClient, authorize: Authorize) -> AsyncApp:
    """Build the Bolt app. Its listeners finish before the ack is sent, both in Socket Mode and over HTTP."""

    # Not a bound method: Bolt passes a value for every parameter, self included.
    async def authorize_event(team_id: str | None) -> AuthorizeResult | None:
        return await authorize(team_id)

    return AsyncApp(
        client=copy_client(client),  # without a token: with one, Bolt would do its own authorisation
        name="orion",
        logger=library_logger(),
        signing_secret="",
        authorize=authorize_event,  # type: ignore[arg-type]  # None is understood, though the annotation does not say so
        process_before_response=True,  # otherwise Bolt acknowledges first, and a process that dies loses the event
        request_verification_enabled=False,  # it would log a bad request's body; ``bot.servers.http`` checks
        ignoring_self_events_enabled=False,  # ``bot.events.intake`` alone sorts out self and bots
        attaching_conversation_kwargs_enabled=False,  # no listener uses what Bolt would attach
    )
