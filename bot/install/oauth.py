"""Installing Orion into a workspace: two pages for the browser and the calls behind them.

A state works once, for ten minutes, in the browser that got it. No data of Slack or the browser is logged.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import aiohttp
import structlog
from aiohttp import web
from redis.asyncio import Redis
from redis.exceptions import RedisError
from slack_sdk.oauth import AuthorizeUrlGenerator
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from agent.payload import mapping, string
from bot.install.installations import Installation, Installations
from bot.slack.manifest import BOT_SCOPES, REDIRECT_PATH, SEARCH_SCOPE
from bot.slack.web_api import DeliveryFailed, await_reply
from observability.loopback import is_loopback

INSTALL_PATH: Final = "/slack/install"
COOKIE: Final = "orion_install"
STATE_TTL_S: Final = 600  # Slack's own codes live as long
MAX_STATES_PER_MINUTE: Final = 120  # for all browsers: a public page must not fill Redis
_ENTROPY: Final = 32  # bytes: a state cannot be guessed within its ten minutes, or ever
_CALL_TIMEOUT_S: Final = 20.0
_ORG_WIDE_REASON: Final = "org_wide"
_INCOMPLETE_REASON: Final = "incomplete_reply"
log = structlog.get_logger()

_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Cache-Control": "no-store",  # neither framed nor cached
    "Referrer-Policy": "no-referrer",  # the address of this page holds the code
    "X-Content-Type-Options": "nosniff",
}
_HTML: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Installing Orion</title><h1>Installing Orion</h1><p>{}</p></html>
"""
_DONE: Final = (200, "Orion is installed. Mention it in a channel, or write to it directly. You can close this page.")
_AGAIN: Final = f"Start again at {INSTALL_PATH}."
_STALE: Final = (400, f"This installation was begun in another browser, was finished already, or is too old. {_AGAIN}")
_CANCELLED: Final = (400, f"Nothing was installed: the request was cancelled in Slack. {_AGAIN}")
_REFUSED: Final = (400, f"Nothing was installed: Slack did not accept the request. {_AGAIN}")
_AWAY: Final = (503, f"Nothing was installed: Slack or Orion's store did not answer. Wait a minute. {_AGAIN}")
_ORG_WIDE: Final = (400, "Nothing was installed: Orion is installed per workspace, not for a whole organisation.")
_NOT_ALLOWED: Final = (403, "Nothing was installed: this Orion does not serve that workspace. Ask whoever runs it.")
_BUSY: Final = (429, "Too many installations were begun just now. Wait a minute and try again.")


@dataclass(frozen=True, slots=True)
class OAuthCalls:
    """``oauth.v2.access``, by the app's own credentials, with a ``client`` that has no token."""

    client: AsyncWebClient
    client_id: str
    client_secret: str = field(repr=False)

    async def exchange(self, code: str) -> Installation:
        """Exchange the OAuth code for a bot token. Raises ``DeliveryFailed``."""
        granted = _parse_grant(await self._access(code=code))
        # The grant lacks the bot's ids, which identify its own messages.
        identity = await _call("auth.test", self.client.auth_test(token=granted.bot_token))
        return replace(granted, bot_id=string(identity, "bot_id"), bot_user=string(identity, "user_id"))

    async def refresh(self, held: Installation) -> Installation:
        """Refresh the token of an installation. The refresh token works once. Raises ``DeliveryFailed``."""
        reply = await self._access(grant_type="refresh_token", refresh_token=held.refresh_token)
        new = _parse_grant(reply, team=held.team)
        refresh_token = new.refresh_token or held.refresh_token
        return replace(held, bot_token=new.bot_token, refresh_token=refresh_token, expires_at=new.expires_at)

    async def revoke(self, token: str) -> None:
        """Revoke a token. Raises ``DeliveryFailed``."""
        await _call("auth.revoke", self.client.auth_revoke(token=token))

    async def _access(self, **params: str) -> Mapping[str, Any]:
        # Not the SDK's ``oauth_v2_access``: it signs in with a class that aiohttp has given up.
        sign_in = {"Authorization": aiohttp.encode_basic_auth(self.client_id, self.client_secret)}
        return await _call("oauth.v2.access", self.client.api_call("oauth.v2.access", data=params, headers=sign_in))


async def _call(method: str, call: Awaitable[AsyncSlackResponse]) -> Mapping[str, Any]:
    return mapping((await await_reply(method, call, _CALL_TIMEOUT_S)).data)


def _parse_grant(reply: Mapping[str, Any], *, team: str = "") -> Installation:
    """Parse the reply of ``oauth.v2.access``. Raises ``DeliveryFailed`` unless it is a bot token for one workspace."""
    if reply.get("is_enterprise_install"):  # its token would open every workspace of the organisation
        raise DeliveryFailed(_ORG_WIDE_REASON, permanent=True)
    seconds = reply.get("expires_in")
    found = Installation(
        team=team or string(reply, "team", "id"),
        name=string(reply, "team", "name"),
        bot_token=string(reply, "access_token"),
        bot_user=string(reply, "bot_user_id"),
        bot_id="",
        scopes=string(reply, "scope"),
        refresh_token=string(reply, "refresh_token"),
        expires_at=time.time() + seconds if isinstance(seconds, int) and seconds > 0 else 0.0,
        installed_at=time.time(),
    )
    if not found.team or not found.bot_token:
        raise DeliveryFailed(_INCOMPLETE_REASON, permanent=True)
    return found


@dataclass(frozen=True, slots=True)
class States:
    """OAuth states in Redis. Every method raises ``RedisError`` when Redis is away."""

    redis: Redis
    prefix: str = "orion"

    def key(self, state: str) -> str:
        """Redis key of a state: its digest, so that no browser chooses a key."""
        return f"{self.prefix}:oauth_state:{hashlib.sha256(state.encode('utf-8', 'replace')).hexdigest()}"

    async def begin(self) -> str | None:
        """Issue a state. None if too many were issued."""
        counter = f"{self.prefix}:oauth_begun:{time.time() // 60:.0f}"
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.incr(counter)
            pipe.expire(counter, 120)
            begun, _ = await pipe.execute()
        if begun > MAX_STATES_PER_MINUTE:
            return None
        state = secrets.token_urlsafe(_ENTROPY)
        await self.redis.set(self.key(state), "1", ex=STATE_TTL_S)
        return state

    async def finish(self, state: str, cookie: str) -> bool:
        """Use up a state. Return True if it was issued to the browser with this cookie."""
        # Read and deleted in one step: of two tabs with one state only one succeeds.
        begun = await self.redis.getdel(self.key(state))
        return bool(begun) and hmac.compare_digest(self.key(state), self.key(cookie))


@dataclass(frozen=True, slots=True)
class InstallPages:
    """The two pages. Empty ``teams`` allow every workspace. The browser keeps its state in a cookie."""

    calls: OAuthCalls
    states: States
    installations: Installations
    teams: frozenset[str] = frozenset()

    def routes(self) -> list[web.RouteDef]:
        """Routes of the two pages."""
        return [web.get(INSTALL_PATH, self.begin), web.get(REDIRECT_PATH, self.finish)]

    async def begin(self, request: web.Request) -> web.StreamResponse:
        """Redirect the browser to Slack with a state. ``?search=1`` also requests the search scope."""
        try:
            state = await self.states.begin()
        except RedisError:
            return _page(*_AWAY)
        if state is None:
            return _page(*_BUSY)
        scopes = (*BOT_SCOPES, SEARCH_SCOPE) if request.query.get("search") == "1" else BOT_SCOPES
        # Slack's consent page has the same origin as its Web API.
        url = f"{self.calls.client.base_url.rstrip('/').removesuffix('/api')}/oauth/v2/authorize"
        consent = AuthorizeUrlGenerator(client_id=self.calls.client_id, scopes=scopes, authorization_url=url)
        response = web.Response(status=302, headers={**_HEADERS, "Location": consent.generate(state)})
        _bind(response, request, state, STATE_TTL_S)
        return response

    async def finish(self, request: web.Request) -> web.StreamResponse:
        """Handle the browser's return from Slack."""
        try:
            shown = await self._finish(request.query, request.cookies.get(COOKIE, ""))
        except DeliveryFailed as failure:
            log.warning("install_failed", reason=failure.reason)
            refused = _ORG_WIDE if failure.reason == _ORG_WIDE_REASON else _REFUSED
            shown = refused if failure.is_refused else _AWAY
        except RedisError as error:
            log.warning("install_failed", reason=type(error).__name__)
            shown = _AWAY
        response = _page(*shown)
        _bind(response, request, "", 0)
        return response

    async def _finish(self, query: Mapping[str, str], cookie: str) -> tuple[int, str]:
        if not await self.states.finish(query.get("state", ""), cookie):
            return _STALE
        if "error" in query or not query.get("code"):
            return _CANCELLED
        found = await self.calls.exchange(query["code"])
        if self.teams and found.team not in self.teams:
            # Slack has issued the token already: revoke it, since this workspace is not served.
            await self.calls.revoke(found.bot_token)
            log.warning("install_not_allowed", team=found.team)
            return _NOT_ALLOWED
        await self.installations.save(found)
        log.info("workspace_installed", team=found.team, rotates=bool(found.expires_at))
        return _DONE


def _bind(response: web.StreamResponse, request: web.Request, state: str, seconds: int) -> None:
    secure = not is_loopback(str(request.url))  # behind a proxy the browser uses TLS although we see plain HTTP
    # Lax, not Strict: the browser must send it when it returns from Slack's site.
    response.set_cookie(
        COOKIE, state, max_age=seconds, path=REDIRECT_PATH, httponly=True, secure=secure, samesite="Lax"
    )


def _page(status: int, text: str) -> web.Response:
    return web.Response(text=_HTML.format(text), status=status, headers=_HEADERS, content_type="text/html")
