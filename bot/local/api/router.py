"""The Web API, ``/api/<method>``: checks tokens, scopes, rates and faults before each method; replies like Slack."""

import asyncio
import secrets
from typing import Final

from aiohttp import web

from bot.local.api import reading, writing
from bot.local.api.call import Call, Methods, read_values
from bot.local.model.errors import ApiError
from bot.local.model.faults import ApiCall, CallFault
from bot.local.model.roster import Json
from bot.local.workspace import WorkspaceState

METHODS: Final = Methods(reading.methods | writing.methods)


async def handle(workspace: WorkspaceState, request: web.Request) -> web.StreamResponse:
    """Answer one Web API call."""
    call = ApiCall(method=request.match_info["method"], arguments={})
    workspace.calls.append(call)  # before the reply: a test may wait for a hanging call
    workspace.feed.touch()
    headers = {"X-Slack-Req-Id": secrets.token_hex(16), "X-OAuth-Scopes": ",".join(workspace.scopes)}
    try:
        return web.json_response({"ok": True, **await _answer(workspace, request, call)}, headers=headers)
    except ApiError as refusal:
        call.error, call.status = refusal.error, refusal.status
        if refusal.retry_after is not None:
            headers["Retry-After"] = str(refusal.retry_after)
        body = {"ok": False, "error": refusal.error, **refusal.extra}
        return web.json_response(body, status=refusal.status, headers=headers)
    except _Cut:
        call.error = "connection_cut"
        if request.transport is not None:
            request.transport.abort()
        return web.Response()  # the connection is already closed
    finally:
        call.done = True
        workspace.feed.touch()


async def _answer(workspace: WorkspaceState, request: web.Request, call: ApiCall) -> Json:
    method = call.method
    fault = workspace.faults.take(method)
    if fault:
        await _strike(workspace, fault, request)
    asked = Call(workspace, await read_values(request))
    call.arguments = {key: value for key, value in asked.values.items() if key != "token"}
    if method not in METHODS or method in workspace.faults.missing:
        raise ApiError(error="unknown_method", extra={"req_method": method})
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
    _authorize(workspace, method, bearer or asked.text("token"))  # Slack also accepts a token as an argument
    workspace.rates.charge(method, asked.text("channel"))
    try:
        answer = METHODS[method][0](asked)
    except (KeyError, ValueError):  # an argument in another form
        raise ApiError(error="invalid_arguments") from None
    # only now, so that the effect stays, as with a real broken connection
    if fault and fault.kind == "lost_response":
        raise _Cut
    return answer


async def _strike(workspace: WorkspaceState, fault: CallFault, request: web.Request) -> None:
    if fault.error:
        raise fault.error
    if fault.kind == "reset":
        raise _Cut
    if fault.kind in {"delay", "hold"}:
        await request.read()  # a slow server has the whole request, so it carries it out even if its caller is dead
    if fault.kind in {"hang", "hold"}:
        await workspace.faults.released.wait()
    await asyncio.sleep(fault.seconds)


def _authorize(workspace: WorkspaceState, method: str, token: str) -> None:
    if not token:
        raise ApiError(error="not_authed")
    if token not in (workspace.bot_token, workspace.app_token):
        raise ApiError(error="invalid_auth")
    if (token == workspace.app_token) != (method == "apps.connections.open"):
        raise ApiError(error="not_allowed_token_type")
    needed, granted = METHODS[method][1], workspace.scopes
    if needed and not set(needed) & set(granted):
        raise ApiError(error="missing_scope", extra={"needed": needed[0], "provided": ",".join(granted)})


class _Cut(Exception):  # noqa: N818 - not an error of this server: a fault that was asked for
    """The connection is to be closed without a reply."""
