"""``response_url``: the short-lived address that comes with a click, through which an app answers without a token."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from bot.local.api.arguments import Arguments, read_arguments
from bot.local.api.chat import Content, bot_message, read_content
from bot.local.model.errors import ApiError
from bot.local.workspace import ResponseUrl, Workspace

_OK: Final = 200


async def answer_response_url(workspace: Workspace, request: web.Request) -> web.Response:
    """Serves one POST: five uses, then 404 as Slack answers."""
    target = workspace.response_urls.get(request.match_info["key"])
    if target is None or target.uses <= 0:
        return web.json_response({"ok": False, "error": "used_url"}, status=404)
    target.uses -= 1
    try:
        _apply(workspace, target, await read_arguments(request))
    except ApiError as refusal:
        return web.json_response({"ok": False, "error": refusal.error, **refusal.extra}, status=400)
    return web.Response(text="ok", status=_OK)


def _apply(workspace: Workspace, target: ResponseUrl, arguments: Arguments) -> None:
    message = target.message
    if arguments.flag("delete_original"):
        workspace.removed(message)
        return
    content = read_content(workspace, arguments)
    if content.is_empty:
        raise ApiError(error="no_text")
    if arguments.flag("replace_original"):
        _replace(workspace, target, content)
        return
    channel = workspace.roster.channels[message.channel]
    thread = arguments.text("thread_ts") or message.thread_ts
    made = bot_message(workspace, channel, content, thread)
    if arguments.text("response_type", "ephemeral") == "ephemeral":
        made.ephemeral_for = target.user
    workspace.added(made)


def _replace(workspace: Workspace, target: ResponseUrl, content: Content) -> None:
    message = target.message
    before = workspace.log.shown(message, metadata=True)
    message.text, message.blocks = content.text, content.blocks or []
    message.edited = {"user": message.user, "ts": workspace.log.next_ts()}
    workspace.changed(message, before)
