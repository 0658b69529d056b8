"""The page's own API under ``/ui``: what to show, what a person does, and a socket with everything that changes.

``user`` says as whom. Only a page served from here can use it: Host and Origin are checked by the server.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from aiohttp import WSMsgType, web

from bot.local.events.socket_mode import NotAcknowledged
from bot.local.model.errors import ApiError
from bot.local.model.messages import Message
from bot.local.model.roster import BOT_USER, VISITOR, Channel, Json
from bot.local.page.blocks import message_view, modal_view
from bot.local.page.people import People
from bot.local.page.typed_text import as_slack_text
from bot.local.workspace import Workspace

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Action = Callable[["Page", Json], Awaitable[Json]]

# Uploads come as base64, so a file may have 700 kilobytes.
LONGEST_BODY: Final = 1_000_000


class Page:
    """Serves the page of one workspace."""

    def __init__(self, people: People) -> None:
        """Acts through ``people`` as the visitor."""
        self.people = people
        self.workspace: Workspace = people.workspace

    def routes(self) -> list[web.RouteDef]:
        """All routes below ``/ui``."""
        posts = [web.post(f"/ui/{name}", self._acting(action)) for name, action in ACTIONS.items()]
        return [
            web.get("/ui/boot", self.boot),
            web.get("/ui/messages", self.messages),
            web.get("/ui/view", self.view),
            web.get("/ui/turn/{turn_id}", self.turn),
            web.get("/ui/live", self.live),
            *posts,
        ]

    async def boot(self, request: web.Request) -> web.Response:
        """Everything but messages: team, members, channels, statuses, prompts, and the number of the last update."""
        workspace, me = self.workspace, self._me(request.query.get("user"))
        workspace.roster.direct_chat(me)
        channels = [self._channel(one, me) for one in workspace.roster.channels.values() if me in one.members]
        return web.json_response(
            {
                "run": workspace.feed.run,
                "seq": workspace.feed.seq,
                "team": workspace.setup.name,
                "teams": workspace.teams(),
                "install": workspace.install_url,
                "me": me,
                "people": [one.id for one in workspace.roster.members.values() if not one.is_bot],
                "faults": workspace.switches.shown(),
                "bot": BOT_USER,
                "members": [
                    {"id": one.id, "name": one.name, "title": one.title, "is_bot": one.is_bot}
                    for one in workspace.roster.members.values()
                ],
                "channels": channels,
                "statuses": workspace.threads.shown(),
                "sessions": [
                    {"channel": thread[0], "thread_ts": thread[1], "status": one.status}
                    for thread, one in workspace.threads.sessions.items()
                ],
                "prompts": workspace.threads.prompts,
                "examples": list(workspace.setup.examples),
                "home": self._home(me),
                "notice": workspace.notice,
                "connected": bool(workspace.sockets.connections or workspace.http.url),
            }
        )

    async def messages(self, request: web.Request) -> web.Response:
        """The messages of a channel, or of a thread with ``thread_ts``."""
        channel, thread_ts = request.query.get("channel", ""), request.query.get("thread_ts", "")
        log, me = self.workspace.log, self._me(request.query.get("user"))
        found = log.thread(channel, thread_ts) if thread_ts else log.timeline(channel)
        private = [
            one
            for one in log.everything_in(channel)
            if one.ephemeral_for == me and (one.thread_ts == thread_ts or (not thread_ts and not one.is_reply))
        ]
        everything = sorted([*found, *private], key=lambda one: one.ts)
        return web.json_response({"messages": [self._message(one) for one in everything]})

    async def view(self, request: web.Request) -> web.Response:
        """One modal, or the App Home with ``id=home``."""
        wanted = request.query.get("id", "")
        if wanted == "home":
            return web.json_response({"view": self._home(self._me(request.query.get("user")))})
        found = self.workspace.views.open.get(wanted)
        if found is None:
            raise web.HTTPNotFound(text="no such view")
        return web.json_response({"view": modal_view(found.view, self.workspace.roster.names())})

    async def turn(self, request: web.Request) -> web.Response:
        """The record of one answer, for the inspector."""
        reader = self.workspace.setup.turn_record
        record = await reader(request.match_info["turn_id"]) if reader else None
        if record is None:
            return web.json_response({"error": "no record of this answer"}, status=404)
        return web.json_response(record)

    async def live(self, request: web.Request) -> web.WebSocketResponse:
        """A socket with every update from ``since`` on; ``reset`` when the page must start over."""
        socket = web.WebSocketResponse(heartbeat=20.0)
        await socket.prepare(request)
        me = self._me(request.query.get("user"))
        # Watched before the past is read: an update in between would be lost otherwise.
        with self.workspace.feed.watching() as updates:
            missed = self.workspace.feed.since(request.query.get("run", ""), _number(request.query.get("since", "")))
            if missed is None:
                await socket.send_json({"type": "reset"})
            for update in missed or []:
                await socket.send_json(self._update(update, me))
            try:
                async with asyncio.TaskGroup() as group:
                    sending = group.create_task(self._send(socket, updates, me))
                    await _until_closed(socket)
                    sending.cancel()
            except* ConnectionError:
                pass
        return socket

    async def _send(self, socket: web.WebSocketResponse, updates: asyncio.Queue[Json | None], me: str) -> None:
        while (update := await updates.get()) is not None:
            await socket.send_json(self._update(update, me))
        await socket.close()

    def _update(self, update: Json, me: str) -> Json:
        """An update as the page gets it: with the message as it is now, not as it was then."""
        if update["type"] != "message":
            return update
        message = self.workspace.log.get(update["channel"], update["ts"])
        if message is None or message.ephemeral_for not in ("", me):
            return {"type": "none", "seq": update["seq"]}
        parent = self.workspace.log.get(message.channel, message.thread_ts) if message.is_reply else None
        shown = self._message(parent) if parent else None
        return {**update, "message": self._message(message), "parent": shown}

    def _message(self, message: Message) -> Json:
        return message_view(message, self.workspace.log, self.workspace.roster.names())

    def _me(self, user: object) -> str:
        """The person whose page it is; who is not known, or a bot, is the visitor."""
        found = self.workspace.roster.members.get(user) if isinstance(user, str) else None
        return found.id if found and not found.is_bot else VISITOR

    def _home(self, me: str) -> Json | None:
        home = self.workspace.views.homes.get(me)
        return modal_view(home, self.workspace.roster.names()) if home else None

    def _channel(self, channel: Channel, me: str) -> Json:
        other = next(iter(channel.members - {me}), BOT_USER) if channel.kind == "im" else ""
        return {
            "id": channel.id,
            "name": channel.name or self.workspace.roster.names().get(other, channel.id),
            "kind": channel.kind,
            "topic": channel.topic,
            "user": other,
            "latest": max((one.ts for one in self.workspace.log.timeline(channel.id)), default=""),
        }

    def _acting(self, action: Action) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            if request.content_type != "application/json":
                raise web.HTTPUnsupportedMediaType(text="JSON only")
            try:
                body = await request.json()
                said = body if isinstance(body, dict) else {}
                answer = await action(self, {**said, "user": self._me(said.get("user"))})
            except ApiError as refusal:
                return web.json_response({"ok": False, "error": refusal.error}, status=400)
            except NotAcknowledged as failure:
                return web.json_response({"ok": False, "error": failure.reason}, status=504)
            except (KeyError, json.JSONDecodeError):
                return web.json_response({"ok": False, "error": "bad_request"}, status=400)
            return web.json_response({"ok": True, **answer})

        return handle


async def _until_closed(socket: web.WebSocketResponse) -> None:
    async for message in socket:
        if message.type == WSMsgType.ERROR:
            break


def _number(text: str) -> int:
    return int(text) if text.isdigit() else -1


async def _post(page: Page, body: Json) -> Json:
    text = as_slack_text(str(body["text"]).strip(), page.workspace.roster.names())
    files = [str(one) for one in body.get("files") or [] if one in page.workspace.files]
    if not (text or files):
        raise ApiError(error="no_text")
    return {"ts": page.people.post(body["user"], body["channel"], text, body.get("thread_ts") or None, files=files)}


async def _upload(page: Page, body: Json) -> Json:
    """A file, its bytes in base64; it is seen once a message shares it."""
    try:
        content = base64.b64decode(str(body["content"]), validate=True)
    except binascii.Error:
        raise ApiError(error="invalid_file") from None
    name = Path(str(body["name"])).name or "file"
    return {"file": page.people.add_file(body["user"], name, content)}


async def _edit(page: Page, body: Json) -> Json:
    text = as_slack_text(str(body["text"]).strip(), page.workspace.roster.names())
    if not text:
        raise ApiError(error="no_text")
    _own(page, body)
    page.people.edit(body["channel"], body["ts"], text)
    return {}


async def _delete(page: Page, body: Json) -> Json:
    _own(page, body)
    page.people.delete(body["channel"], body["ts"])
    return {}


def _own(page: Page, body: Json) -> None:
    message = page.workspace.log.get(body["channel"], body["ts"])
    if message is None or message.user != body["user"]:
        raise ApiError(error="cant_update_message")


async def _react(page: Page, body: Json) -> Json:
    page.people.react(body["user"], body["channel"], body["ts"], body["name"])
    return {}


async def _click(page: Page, body: Json) -> Json:
    who: dict[str, Any] = {"block_id": str(body.get("block_id", "")), "user": body["user"]}
    if body.get("view_id"):
        await page.people.click_view(body["view_id"], body["action_id"], **who)
    else:
        await page.people.click(body["channel"], body["ts"], body["action_id"], value=body.get("value"), **who)
    return {}


async def _submit(page: Page, body: Json) -> Json:
    return {"errors": await page.people.submit(body["view_id"], body.get("values") or {}, body["user"])}


async def _dismiss(page: Page, body: Json) -> Json:
    await page.people.dismiss(body["view_id"], body["user"])
    return {}


async def _stop(page: Page, body: Json) -> Json:
    page.people.stop_session(body["channel"], body["thread_ts"], body["user"])
    return {}


async def _open_home(page: Page, body: Json) -> Json:
    page.people.open_home(body["user"], tab="messages" if body.get("tab") == "messages" else "home")
    return {}


async def _fault(page: Page, body: Json) -> Json:
    await page.workspace.switches.turn(str(body["name"]), on=bool(body.get("on")))
    return {"faults": page.workspace.switches.shown()}


ACTIONS: Final[dict[str, Action]] = {
    "post": _post,
    "edit": _edit,
    "delete": _delete,
    "react": _react,
    "click": _click,
    "submit": _submit,
    "dismiss": _dismiss,
    "stop": _stop,
    "open_home": _open_home,
    "upload": _upload,
    "fault": _fault,
}
