"""The Web API, ``/api/<method>``.

Tokens, scopes, rates and faults in front of every method, answers as Slack gives them.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from typing import Final

from aiohttp import web

from bot.local.api import assistant as agent_methods
from bot.local.api import chat as chat_methods
from bot.local.api import conversations as conversation_methods
from bot.local.api import search as search_methods
from bot.local.api import streams as stream_methods
from bot.local.api import team as team_methods
from bot.local.api.arguments import Arguments, read_arguments
from bot.local.consent import EXCHANGE, Consent
from bot.local.model.errors import ApiError
from bot.local.model.faults import ApiCall, Fault
from bot.local.model.roster import Json
from bot.local.workspace import SEARCH_SCOPE, Workspace

Method = Callable[[Workspace, Arguments], Json]

METHODS: Final[dict[str, Method]] = {
    **chat_methods.METHODS,
    **stream_methods.METHODS,
    **conversation_methods.METHODS,
    **team_methods.METHODS,
    **agent_methods.METHODS,
    **search_methods.METHODS,
}
_WITHOUT_TOKEN: Final = frozenset({"api.test"})
_APP_LEVEL: Final = frozenset({"apps.connections.open"})
_HISTORY: Final = ("channels:history", "groups:history", "im:history", "mpim:history")
_LISTING: Final = ("channels:read", "groups:read", "im:read", "mpim:read")
_SCOPES: Final[dict[str, tuple[str, ...]]] = {
    "conversations.history": _HISTORY,
    "conversations.replies": _HISTORY,
    "conversations.info": _LISTING,
    "conversations.list": _LISTING,
    "conversations.members": _LISTING,
    "conversations.open": ("channels:manage", "groups:write", "im:write", "mpim:write"),
    "reactions.add": ("reactions:write",),
    "reactions.remove": ("reactions:write",),
    "users.info": ("users:read",),
    "usergroups.list": ("usergroups:read",),
    "users.list": ("users:read",),
    "team.info": ("team:read",),
    "files.info": ("files:read",),
    "assistant.threads.setStatus": ("chat:write", "assistant:write"),
    "assistant.threads.setTitle": ("assistant:write",),
    "assistant.threads.setSuggestedPrompts": ("assistant:write",),
    "agents.sessions.setStatus": ("chat:write", "assistant:write"),
    "assistant.search.context": (SEARCH_SCOPE,),
    "agents.sessions.rename": ("chat:write", "assistant:write"),
    **dict.fromkeys((*chat_methods.METHODS, *stream_methods.METHODS), ("chat:write",)),
}
"""Any one of these is enough; the real service asks for the one of the channel's kind."""


class WebApi:
    """Answers Web API requests: of ``workspace``, and of those beside it whose bot's token a call brings."""

    def __init__(self, workspace: Workspace, consent: Consent) -> None:
        """``consent`` gives tokens for codes."""
        self._first = workspace
        self._consent = consent

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answers one call."""
        token = _bearer(request)
        workspace = next((one for one in self._first.all if one.bot_token == token), self._first)
        return await _Call(workspace, self._consent).handle(request)


class _Call:
    """One call of one workspace."""

    def __init__(self, workspace: Workspace, consent: Consent) -> None:
        self._workspace = workspace
        self._consent = consent

    async def handle(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        call = ApiCall(method=method, arguments={}, at=time.monotonic())
        self._workspace.calls.append(call)  # before it is answered: a test may wait for a call that hangs
        self._workspace.feed.touch()
        try:
            body = await self._answer(method, request, call)
        except ApiError as refusal:
            return self._refused(refusal, call)
        except _Cut:
            call.error = "connection_cut"
            return _abort(request)
        finally:
            call.done = True
            self._workspace.feed.touch()
        return self._respond(body, 200)

    async def _answer(self, method: str, request: web.Request, call: ApiCall) -> Json:
        fault = self._workspace.faults.take(method)
        if fault is not None and fault.kind in {"delay", "hold"}:
            await request.read()  # a slow server has the whole request: it does what is asked, its caller dead or not
        await self._strike_before(fault)
        arguments = await read_arguments(request)
        call.arguments = {key: value for key, value in arguments.values.items() if key != "token"}
        if method == EXCHANGE:
            answer = self._consent.exchange(request.headers.get("Authorization", ""), arguments.text("code"))
            return {"ok": True, **answer}
        if method not in METHODS or method in self._workspace.faults.missing:
            raise ApiError(error="unknown_method", extra={"req_method": method})
        self._authorize(method, _bearer(request) or arguments.text("token"))
        self._workspace.rates.charge(method, arguments.text("channel"))
        answer = METHODS[method](self._workspace, arguments)
        if fault is not None and fault.kind == "lost_response":
            raise _Cut
        return {"ok": True, **answer}

    async def _strike_before(self, fault: Fault | None) -> None:
        """What goes wrong before the call does anything."""
        if fault is None:
            return
        if fault.kind == "error":
            raise ApiError(fault.error, status=fault.status, retry_after=fault.retry_after)
        if fault.kind == "reset":
            raise _Cut
        if fault.kind in {"hang", "hold"}:
            await self._workspace.faults.hanging()
        elif fault.kind == "delay":
            await asyncio.sleep(fault.seconds)

    def _authorize(self, method: str, token: str) -> None:
        if method in _WITHOUT_TOKEN:
            return
        if not token:
            raise ApiError(error="not_authed")
        if token not in (self._workspace.bot_token, self._workspace.app_token):
            raise ApiError(error="invalid_auth")
        if (token == self._workspace.app_token) != (method in _APP_LEVEL):
            raise ApiError(error="not_allowed_token_type")
        needed, granted = _SCOPES.get(method, ()), self._workspace.setup.scopes
        if needed and not set(needed) & set(granted):
            raise ApiError(error="missing_scope", extra={"needed": needed[0], "provided": ",".join(granted)})

    def _refused(self, refusal: ApiError, call: ApiCall) -> web.Response:
        call.error, call.status = refusal.error, refusal.status
        response = self._respond({"ok": False, "error": refusal.error, **refusal.extra}, refusal.status)
        if refusal.retry_after is not None:
            response.headers["Retry-After"] = str(refusal.retry_after)
        return response

    def _respond(self, body: Json, status: int) -> web.Response:
        response = web.json_response(body, status=status)
        response.headers["X-Slack-Req-Id"] = secrets.token_hex(16)
        response.headers["X-OAuth-Scopes"] = ",".join(self._workspace.setup.scopes)
        return response


def _bearer(request: web.Request) -> str:
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if kind == "Bearer" else ""


class _Cut(Exception):  # noqa: N818 - not an error of this server: a fault that was asked for
    """The connection shall end without an answer."""


def _abort(request: web.Request) -> web.Response:
    """Closes the connection; what is returned finds nobody to read it."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
