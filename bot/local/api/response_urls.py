"""``response_url``: the short-lived address that comes with a click, through which an app answers without a token."""

from __future__ import annotations

from aiohttp import web

from bot.local.api.call import Call, read_values
from bot.local.api.chat import bot_message, is_empty, read_content
from bot.local.model.errors import ApiError
from bot.local.workspace import ResponseUrl, Workspace


async def answer_response_url(workspace: Workspace, request: web.Request) -> web.Response:
    """Serves one POST: five uses, then 404 as Slack answers."""
    target = workspace.response_urls.get(request.match_info["key"])
    if target is None or target.uses <= 0:
        return web.json_response({"ok": False, "error": "used_url"}, status=404)
    target.uses -= 1
    try:
        _apply(target, Call(workspace, await read_values(request)))
    except ApiError as refusal:
        return web.json_response({"ok": False, "error": refusal.error, **refusal.extra}, status=400)
    return web.Response(text="ok")


def _apply(target: ResponseUrl, call: Call) -> None:
    workspace, message = call.workspace, target.message
    if call.flag("delete_original"):
        workspace.removed(message)
        return
    content = read_content(call)
    if is_empty(content):
        raise ApiError(error="no_text")
    if call.flag("replace_original"):
        workspace.rewrite(message, text=content.get("text", ""), blocks=content.get("blocks", []))
        return
    channel = workspace.roster.channels[message.channel]
    made = bot_message(workspace, channel, call.text("thread_ts") or message.thread_ts, content)
    if call.text("response_type", "ephemeral") == "ephemeral":
        made.ephemeral_for = target.user
    workspace.added(made)
