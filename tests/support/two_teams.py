"""One Slack with two workspaces, and the OAuth that lets an app into them: a front over two local workspaces.

Each has the same channels, people and bot; only the team's id and the token tell them apart. Codes, access tokens and
refresh tokens work as Slack's do: a code and a refresh token once, an access token until it is replaced or revoked.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from bot.local.model.limits import LENIENT, Strictness
from bot.local.model.roster import BOT_USER
from bot.local.server import LocalWorkspace
from bot.servers.http import serve

CLIENT_ID, CLIENT_SECRET = "111.222", "made-up-client-secret"
TEAMS = ("T0ONE", "T0TWO")
SECRET = "8f742231b10e8888abcd99yyyzzz85a5"


@dataclass(slots=True)
class Grants:
    """The grants of Slack. ``expires_in`` over 0 turns rotation on; ``gate`` holds a refresh back."""

    codes: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    refresh_tokens: dict[str, str] = field(default_factory=dict)
    expires_in: int = 0
    org_wide: bool = False
    asked: int = 0
    refreshes: int = 0
    revoked: list[str] = field(default_factory=list)
    failing: str = ""
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def code(self, team: str) -> str:
        """The OAuth code of the redirect after a person of ``team`` consented."""
        code = secrets.token_hex(8)
        self.codes[code] = team
        return code

    def issue(self, team: str) -> dict[str, Any]:
        """A new token for the bot."""
        token = f"xoxe.xoxb-{team}-{secrets.token_hex(12)}"
        self.tokens[token] = team
        reply: dict[str, Any] = {
            "ok": True,
            "access_token": token,
            "token_type": "bot",
            "scope": "chat:write",
            "bot_user_id": BOT_USER,
            "team": {"id": team, "name": f"Team {team}"},
            "is_enterprise_install": self.org_wide,
        }
        if self.expires_in:
            refresh = f"xoxe-1-{team}-{secrets.token_hex(12)}"
            self.refresh_tokens[refresh] = team
            reply |= {"refresh_token": refresh, "expires_in": self.expires_in}
        return reply


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoTeams:
    """Both workspaces, what Slack granted, and the address of their common Web API."""

    workspaces: dict[str, LocalWorkspace]
    grants: Grants
    api_url: str

    def events_at(self, url: str) -> None:
        """Send the events of both workspaces to this URL."""
        for workspace in self.workspaces.values():
            workspace.http.url = url


@asynccontextmanager
async def two_teams(strictness: Strictness = LENIENT) -> AsyncIterator[TwoTeams]:
    async with AsyncExitStack() as stack:
        workspaces = {team: LocalWorkspace(strictness=strictness, team=team, signing_secret=SECRET) for team in TEAMS}
        for workspace in workspaces.values():
            await stack.enter_async_context(workspace)
        front = _Front(workspaces, await stack.enter_async_context(aiohttp.ClientSession()))
        application = web.Application()
        application.router.add_route("*", "/api/{method}", front.answer)
        port = await stack.enter_async_context(serve(application))
        yield TwoTeams(workspaces=workspaces, grants=front.grants, api_url=f"http://127.0.0.1:{port}/api/")


class _Front:
    def __init__(self, workspaces: dict[str, LocalWorkspace], session: aiohttp.ClientSession) -> None:
        self._workspaces = workspaces
        self._session = session
        self.grants = Grants()
        self.grants.gate.set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        method, grants = request.match_info["method"], self.grants
        if method == "oauth.v2.access":
            return await self._access(request)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in grants.tokens:
            return web.json_response({"ok": False, "error": "token_revoked" if token else "not_authed"})
        if method == "auth.revoke":
            grants.revoked.append(grants.tokens.pop(token))
            return web.json_response({"ok": True, "revoked": True})
        return await self._pass_on(request, self._workspaces[grants.tokens[token]])

    async def _access(self, request: web.Request) -> web.Response:
        grants, form = self.grants, await request.post()
        if grants.failing:
            return web.json_response({"ok": False, "error": grants.failing})
        if request.headers.get("Authorization") != aiohttp.encode_basic_auth(CLIENT_ID, CLIENT_SECRET):
            return web.json_response({"ok": False, "error": "bad_client_secret"})
        if form.get("grant_type") == "refresh_token":
            grants.asked += 1
            await grants.gate.wait()
            team = grants.refresh_tokens.pop(str(form.get("refresh_token")), "")
            grants.refreshes += bool(team)
        else:
            team = grants.codes.pop(str(form.get("code")), "")
        return web.json_response(grants.issue(team) if team else {"ok": False, "error": "invalid_code"})

    async def _pass_on(self, request: web.Request, workspace: LocalWorkspace) -> web.Response:
        """The same call to the workspace itself, with the token that it knows."""
        headers = {"Authorization": f"Bearer {workspace.bot_token}", "Content-Type": request.content_type}
        url = f"{workspace.api_url}{request.match_info['method']}"
        async with self._session.request(
            request.method, url, params=request.query, data=await request.read(), headers=headers
        ) as reply:
            body, status = await reply.read(), reply.status
            return web.Response(body=body, status=status, content_type=reply.content_type)
