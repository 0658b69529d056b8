"""The page's own API under ``/ui``: its content, a person's actions, and a socket with all changes."""

import asyncio
import base64
import binascii
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from aiohttp import web

from bot.local.deliveries import NotAcknowledged
from bot.local.model.errors import ApiError
from bot.local.model.messages import LocalMessage
from bot.local.model.roster import BOT_USER, VISITOR, Channel, Json
from bot.local.page.people import PersonActions
from bot.local.page.rendering import as_slack_text, message_view, modal_view

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Action = Callable[[PersonActions, Json], Awaitable[Json | None] | Json | None]

# Uploads arrive as base64, so a file is limited to 700 kB.
MAX_BODY_BYTES: Final = 1_000_000


class PageApi:
    """Serve the page of one workspace, where a visitor acts through ``people``."""

    def __init__(self, people: PersonActions) -> None:
        self.people, self.workspace = people, people.workspace

    def routes(self) -> list[web.RouteDef]:
        """All routes below ``/ui``."""
        return [
            web.get("/ui/boot", self.boot),
            web.get("/ui/messages", self.messages),
            web.get("/ui/view", self.view),
            web.get("/ui/turn/{turn_id}", self.turn),
            web.get("/ui/live", self.live),
            web.post("/ui/{action}", self.act),
        ]

    async def boot(self, request: web.Request) -> web.Response:
        """Everything except messages: team, members, channels, statuses, prompts, and the number of the last update."""
        workspace, me = self.workspace, self._me(request.query.get("user"))
        workspace.roster.direct_message(me)
        members, channels = workspace.roster.members.values(), workspace.roster.channels.values()
        return web.json_response(
            {
                "run": workspace.feed.run,
                "seq": workspace.feed.seq,
                "team": workspace.name,
                "me": me,
                "people": [one.id for one in members if not one.is_bot],
                "bot": BOT_USER,
                "members": [
                    {name: getattr(one, name) for name in ("id", "name", "title", "is_bot")} for one in members
                ],
                "channels": [self._channel(one, me) for one in channels if me in one.members],
                "statuses": workspace.threads.status_payloads(),
                "sessions": [
                    {"channel": channel, "thread_ts": thread_ts, "status": one.status}
                    for (channel, thread_ts), one in workspace.threads.sessions.items()
                ],
                "prompts": workspace.threads.prompts,
                "examples": list(workspace.examples),
                "shortcuts": list(workspace.shortcuts),
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
        private = [one for one in log.everything_in(channel) if one.ephemeral_for == me and one.thread_ts == thread_ts]
        everything = sorted([*found, *private], key=lambda one: one.ts)
        return web.json_response({"messages": [self._message(one) for one in everything]})

    async def view(self, request: web.Request) -> web.Response:
        """One modal, or the App Home with ``id=home``."""
        wanted = request.query.get("id", "")
        if wanted == "home":
            return web.json_response({"view": self._home(self._me(request.query.get("user")))})
        if found := self.workspace.views.open.get(wanted):
            return web.json_response({"view": modal_view(found.view, self.workspace.roster.names())})
        raise web.HTTPNotFound(text="no such view")

    async def turn(self, request: web.Request) -> web.Response:
        """The record of one answer, for the inspector."""
        reader = self.workspace.turn_record
        if reader and (record := await reader(request.match_info["turn_id"])) is not None:
            return web.json_response(record)
        return web.json_response({"error": "no record of this answer"}, status=404)

    async def act(self, request: web.Request) -> web.Response:
        """Do one of ``ACTIONS``."""
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(text="JSON only")
        try:
            body = await request.json()
            said = body if isinstance(body, dict) else {}
            answer = ACTIONS[request.match_info["action"]](self.people, {**said, "user": self._me(said.get("user"))})
            answer = await answer if inspect.isawaitable(answer) else answer
        except ApiError as refusal:
            return web.json_response({"ok": False, "error": refusal.error}, status=400)
        except NotAcknowledged as failure:
            return web.json_response({"ok": False, "error": failure.reason}, status=504)
        # A missing field, or a value of another form.
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            return web.json_response({"ok": False, "error": "bad_request"}, status=400)
        return web.json_response({"ok": True, **(answer or {})})

    async def live(self, request: web.Request) -> web.WebSocketResponse:
        """A socket with every update from ``since`` on; ``reset`` when the page must start over."""
        socket = web.WebSocketResponse(heartbeat=20.0)
        await socket.prepare(request)
        me = self._me(request.query.get("user"))
        # Watch before reading the past, or an update in between would be lost.
        with self.workspace.feed.watching() as updates:

            async def send() -> None:
                while (update := await updates.get()) is not None:
                    await socket.send_json(self._update(update, me))
                await socket.close()

            missed = self.workspace.feed.since(request.query.get("run", ""), request.query.get("since", ""))
            for update in missed:
                await socket.send_json(self._update(update, me))
            try:
                async with asyncio.TaskGroup() as group:
                    sending = group.create_task(send())
                    async for _ in socket:  # the page sends nothing; this ends when it is closed
                        pass
                    sending.cancel()
            except* ConnectionError:
                pass
        return socket

    def _update(self, update: Json, me: str) -> Json:
        """Return an update for the page, with the message as it is now, not as it was then."""
        if update["type"] != "message":
            return update
        log = self.workspace.log
        message = log.get(update["channel"], update["ts"])
        if message is None or message.ephemeral_for not in ("", me):
            return {"type": "none", "seq": update["seq"]}
        parent = log.get(message.channel, message.thread_ts) if message.is_reply else None
        return {**update, "message": self._message(message), "parent": self._message(parent) if parent else None}

    def _message(self, message: LocalMessage) -> Json:
        return message_view(message, self.workspace.log, self.workspace.roster.names())

    def _me(self, user: object) -> str:
        """Return the person whose page it is; for an unknown person or a bot, the visitor."""
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
        }


def _slack_text(people: PersonActions, body: Json) -> str:
    return as_slack_text(str(body["text"]).strip(), people.workspace.roster.names())


def _post(people: PersonActions, body: Json) -> Json:
    text = _slack_text(people, body)
    files = [str(one) for one in body.get("files") or [] if one in people.workspace.files]
    if not (text or files):
        raise ApiError(error="no_text")
    return {"ts": people.post(body["user"], body["channel"], text, body.get("thread_ts") or None, files=files)}


def _upload(people: PersonActions, body: Json) -> Json:
    """Upload a file, its bytes in base64; it is visible once a message shares it."""
    try:
        content = base64.b64decode(str(body["content"]), validate=True)
    except binascii.Error:
        raise ApiError(error="invalid_file") from None
    name = Path(str(body["name"])).name or "file"
    return {"file": people.add_file(body["user"], name, content)}


def _edit(people: PersonActions, body: Json) -> None:
    text = _slack_text(people, body)
    if not text:
        raise ApiError(error="no_text")
    people.edit(*_own(people, body), text)


def _own(people: PersonActions, body: Json) -> tuple[str, str]:
    message = people.workspace.log.get(body["channel"], body["ts"])
    if message is None or message.user != body["user"]:
        raise ApiError(error="cant_update_message")
    return message.channel, message.ts


async def _click(people: PersonActions, body: Json) -> None:
    action, user, block_id = body["action_id"], body["user"], str(body.get("block_id", ""))
    if body.get("view_id"):
        await people.click_view(body["view_id"], action, user=user, block_id=block_id)
    else:
        await people.click(body["channel"], body["ts"], action, user=user, block_id=block_id)


async def _submit(people: PersonActions, body: Json) -> Json:
    return {"errors": await people.submit(body["view_id"], body.get("values") or {}, body["user"])}


ACTIONS: Final[dict[str, Action]] = {
    "post": _post,
    "edit": _edit,
    "delete": lambda people, body: people.delete(*_own(people, body)),
    "react": lambda people, body: people.react(body["user"], body["channel"], body["ts"], body["name"]),
    "click": _click,
    "shortcut": lambda people, body: people.use_shortcut(
        body["channel"], body["ts"], body["callback_id"], body["user"]
    ),
    "submit": _submit,
    "dismiss": lambda people, body: people.workspace.views.close(body["view_id"]),
    "stop": lambda people, body: people.stop_session(body["channel"], body["thread_ts"], body["user"]),
    "open_home": lambda people, body: people.open_home(body["user"], str(body["tab"])),
    "upload": _upload,
}
