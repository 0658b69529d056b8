"""Installing Orion into a workspace: two pages for the browser, the calls behind them, and the tokens in Redis.

A state works once, for ten minutes, in the browser that got it. No data of Slack or the browser is logged.

Tokens are encrypted. The first key encrypts, all keys decrypt, and an entry under an older key is encrypted again when
it is read. An entry that no key can decrypt stays as it is and counts as an outage: with the right key it works again.
A known text, encrypted with the key, reveals a wrong key at the start.
"""

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import aiohttp
import structlog
from aiohttp import web
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from redis.asyncio import Redis
from redis.asyncio.lock import Lock
from redis.exceptions import RedisError, ResponseError
from slack_sdk.oauth import AuthorizeUrlGenerator
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from agent.json_data import mapping, parse_record, string
from bot.slack.manifest import BOT_SCOPES, REDIRECT_PATH, SEARCH_SCOPE
from bot.slack.web_api import MALFORMED, DeliveryFailed, await_reply
from observability.loopback import is_loopback

# A refresh may take this long before another process tries. A call to Slack takes much less.
REFRESH_LOCK_TTL_S: Final = 60.0
_KNOWN_TEXT: Final = "Orion's installations"
INSTALL_PATH: Final = "/slack/install"
COOKIE: Final = "orion_install"
STATE_TTL_S: Final = 600  # Slack's own codes are valid as long
MAX_STATES_PER_MINUTE: Final = 120  # for all browsers, so that a public page cannot fill Redis
_ENTROPY: Final = 32  # bytes: a state cannot be guessed within its ten minutes, or ever
_CALL_TIMEOUT_S: Final = 20.0
_ORG_WIDE_REASON: Final = "org_wide"
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Cache-Control": "no-store",  # neither framed nor cached
    "Referrer-Policy": "no-referrer",  # the address of this page contains the code
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
_NOT_ALLOWED: Final = (403, "Nothing was installed: this Orion does not serve that workspace. Ask its admins.")
_BUSY: Final = (429, "Too many installations were begun just now. Wait a minute and try again.")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Orion in one workspace. Times are seconds since 1970; ``expires_at`` 0 means that the token does not expire.

    ``sealed`` is the encrypted text found in Redis. It reveals a change by another process.
    """

    team: str
    name: str = ""
    bot_token: str
    bot_user: str
    bot_id: str
    scopes: str = ""
    refresh_token: str = ""
    expires_at: float = 0.0
    installed_at: float = 0.0
    sealed: str = field(default="", compare=False, repr=False)


class UnreadableInstallation(DeliveryFailed):
    """No key can decrypt this installation, or it was changed. It may be readable again later."""

    def __init__(self) -> None:
        super().__init__("installation_unreadable", permanent=False)


class Seal:
    """Encrypts with the first key, decrypts with any."""

    def __init__(self, keys: Sequence[str]) -> None:
        """Raise ``ValueError`` if a key is not a Fernet key."""
        self._keys = MultiFernet([Fernet(key) for key in keys])
        self._first = MultiFernet([Fernet(keys[0])])  # recognises text that an older key sealed

    def close(self, text: str) -> str:
        """Encrypt and sign the text."""
        return self._keys.encrypt(text.encode()).decode()

    def open(self, sealed: str, *, first: bool = False) -> str | None:
        """Decrypt the text. None if no key (``first``: not the first one) can decrypt it, or it was changed."""
        try:
            return (self._first if first else self._keys).decrypt(sealed).decode()
        except InvalidToken:
            return None


class Installations:
    """The installations of all workspaces. Raises ``RedisError``, and ``UnreadableInstallation`` where one is read."""

    def __init__(self, redis: Redis, seal: Seal, *, prefix: str = "orion") -> None:
        self._redis = redis
        self._seal = seal
        self._prefix = prefix
        self._teams_key = f"{prefix}:installs"
        self._known_text_key = f"{prefix}:install_key_check"
        self._swap = redis.register_script(Path(__file__).with_name("swap.lua").read_text(encoding="utf-8"))

    def key(self, team: str) -> str:
        """Redis key of a workspace's installation. It has no TTL: uninstalling deletes it."""
        return f"{self._prefix}:install:{team}"

    def refresh_lock(self, team: str) -> Lock:
        """Lock for refreshing a workspace's token: a refresh token works once."""
        name, ttl_s = f"{self._prefix}:install_lock:{team}", REFRESH_LOCK_TTL_S
        return Lock(self._redis, name, timeout=ttl_s, blocking_timeout=ttl_s / 2)

    async def has_right_key(self) -> bool:
        """Return whether a key decrypts the known text; without one, whether a key decrypts an installation."""
        sealed = await self._redis.get(self._known_text_key)
        if sealed is not None:
            return self._seal.open(str(sealed)) == _KNOWN_TEXT
        stored = [await self._sealed(team) for team in await self.teams()]
        return not any(stored) or any(self._seal.open(one) is not None for one in stored if one)

    async def keep_known_text(self) -> None:
        """Store the known text, encrypted with the first key."""
        await self._redis.set(self._known_text_key, self._seal.close(_KNOWN_TEXT))

    async def teams(self) -> tuple[str, ...]:
        """List the ids of all workspaces, sorted."""
        return tuple(sorted(map(str, await self._redis.smembers(self._teams_key))))

    async def _sealed(self, team: str) -> str | None:
        """Return what is stored, or an empty text. None for a key of another type, which the client keeps."""
        try:
            return str(await self._redis.get(self.key(team)) or "")
        except ResponseError as error:  # a cluster that is down has such an error too
            if "WRONGTYPE" not in str(error):
                raise
            return None

    async def find(self, team: str) -> Installation | None:
        """Find a workspace's installation. Encrypt it again if an older key sealed it."""
        sealed = await self._sealed(team)
        if sealed == "":
            return None
        found = parse_record(Installation, self._seal.open(sealed or ""))
        if found is None or found.team != team:  # a copy of another workspace's entry is not valid here
            log.error("installation_unreadable", team=team)
            raise UnreadableInstallation
        found = replace(found, sealed=sealed or "")
        fresh = self._seal.open(found.sealed, first=True) is not None
        return found if fresh else await self.replace(found, found) or await self.find(team)

    async def save(self, installation: Installation) -> None:
        """Store the installation of a workspace, even a repeated one."""
        await self._redis.set(self.key(installation.team), self._encrypt(installation))
        await self._redis.sadd(self._teams_key, installation.team)

    async def replace(self, found: Installation, installation: Installation) -> Installation | None:
        """Replace the installation that was found. None if another process changed it meanwhile."""
        sealed = self._encrypt(installation)
        swapped = await self._swap(keys=[self.key(installation.team)], args=[found.sealed, sealed])
        return replace(installation, sealed=sealed) if swapped else None

    async def delete(self, team: str, *, as_of: float | None = None) -> bool:
        """Delete a workspace's tokens, unless it was installed again after ``as_of``: Slack's event may be late."""
        found = await self.find(team)
        # Slack's event times are whole seconds: one more lets an event of the same second count.
        if found is not None and as_of is not None and found.installed_at > as_of + 1:
            return False
        gone = await self._redis.delete(self.key(team))
        await self._redis.srem(self._teams_key, team)
        return bool(gone)

    def _encrypt(self, installation: Installation) -> str:
        return self._seal.close(json.dumps(asdict(replace(installation, sealed=""))))


@dataclass(frozen=True, slots=True)
class OAuthCalls:
    """``oauth.v2.access`` with the app's own credentials and a ``client`` that has no token."""

    client: AsyncWebClient
    client_id: str
    client_secret: str = field(repr=False)

    async def exchange(self, code: str) -> Installation:
        """Exchange the OAuth code for a bot token. Raises ``DeliveryFailed``."""
        granted = _parse_grant(await self._access(code=code))
        # The grant does not contain the bot's ids, which identify its own messages.
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
        # Not the SDK's ``oauth_v2_access``: it signs in with a class that aiohttp has deprecated.
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
        team=team or string(reply, "team", "id"), name=string(reply, "team", "name"), scopes=string(reply, "scope"),
        bot_token=string(reply, "access_token"), bot_user=string(reply, "bot_user_id"), bot_id="",
        refresh_token=string(reply, "refresh_token"), installed_at=time.time(),
        expires_at=time.time() + seconds if isinstance(seconds, int) and seconds > 0 else 0.0,
    )  # fmt: skip
    if not found.team:
        raise DeliveryFailed(MALFORMED, permanent=False)
    return found


@dataclass(frozen=True, slots=True)
class States:
    """OAuth states in Redis. Every method raises ``RedisError`` if Redis is down."""

    redis: Redis
    prefix: str = "orion"

    def key(self, state: str) -> str:
        """Redis key of a state: its digest, so that a browser cannot choose a key."""
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
            # Slack has already issued the token: revoke it, since this workspace is not served.
            await self.calls.revoke(found.bot_token)
            log.warning("install_not_allowed", team=found.team)
            return _NOT_ALLOWED
        await self.installations.save(found)
        log.info("workspace_installed", team=found.team, rotates=bool(found.expires_at))
        return _DONE


def _bind(response: web.StreamResponse, request: web.Request, state: str, seconds: int) -> None:
    secure = not is_loopback(str(request.url))  # behind a proxy the browser uses TLS although we see plain HTTP
    # Lax, not Strict, because the browser must send it when it returns from Slack's site.
    response.set_cookie(
        COOKIE, state, max_age=seconds, path=REDIRECT_PATH, httponly=True, secure=secure, samesite="Lax"
    )


def _page(status: int, text: str) -> web.Response:
    return web.Response(text=_HTML.format(text), status=status, headers=_HEADERS, content_type="text/html")
