"""What people do in the workspace.

Write, edit, delete, click, submit, stop, open App Home. For the page and for tests.
"""

from __future__ import annotations

import mimetypes
import time
import uuid
from collections.abc import Sequence
from typing import Any

from bot.local.api.places import message_of, thread_root
from bot.local.events import payloads as events
from bot.local.model.errors import ApiError
from bot.local.model.messages import Message
from bot.local.model.roster import TEAM_ID, VISITOR, Channel, Json
from bot.local.workspace import ResponseUrl, StoredFile, Workspace


class People:
    """The hands of everybody who is not the app."""

    def __init__(self, workspace: Workspace) -> None:
        """Acts on ``workspace``."""
        self.workspace = workspace

    def channel(self, reference: str) -> Channel:
        """The channel with this id or name. Raises ``ApiError``: ``channel_not_found``."""
        channel = self.workspace.roster.channel(reference)
        if channel is None:
            raise ApiError(error="channel_not_found")
        return channel

    def post(
        self, user: str, channel: str, text: str, thread_ts: str | None = None, *, files: Sequence[str] = ()
    ) -> str:
        """Writes a message in Slack's text form (``<@U0ORION> …``) and returns its ``ts``.

        ``files`` are ids from ``add_file``.
        """
        message = self._draft(user, channel, text, thread_ts)
        message.blocks = events.rich_text(text) if text else []
        message.client_msg_id = str(uuid.uuid4())
        message.files = [self.workspace.files[one].payload for one in files]
        message.subtype = "file_share" if files else ""
        self.workspace.added(message)
        return message.ts

    def post_as_other_app(
        self, channel: str, text: str, thread_ts: str | None = None, *, bot_id: str = "B0OTHER", user: str = ""
    ) -> str:
        """Writes a message as an app that is not Orion, or through it as ``user``, and returns its ``ts``."""
        message = self._draft(user or f"U{bot_id[1:]}", channel, text, thread_ts)
        message.bot_id, message.bot_name = bot_id, "Another app"
        self.workspace.added(message)
        return message.ts

    def join(self, user: str, channel: str) -> str:
        """Adds a member to a channel, with the message Slack writes about it; returns its ``ts``."""
        place = self.channel(channel)
        place.members.add(user)
        message = self._draft(user, channel, f"<@{user}> has joined the channel", None)
        message.subtype = "channel_join"
        self.workspace.added(message)
        self.workspace.emit(events.joined_event(user, place, VISITOR, message.ts), place, "member_joined_channel")
        return message.ts

    def _draft(self, user: str, channel: str, text: str, thread_ts: str | None) -> Message:
        place = self.channel(channel)
        thread = thread_root(self.workspace, place, thread_ts) if thread_ts else ""
        return Message(channel=place.id, ts=self.workspace.log.next_ts(), user=user, text=text, thread_ts=thread)

    def add_file(self, user: str, name: str, content: bytes, mimetype: str = "") -> str:
        """Uploads a file and returns its id; it is shown once a message shares it."""
        file_id = events.identifier("F")
        kind = mimetype or mimetypes.guess_type(name)[0] or "application/octet-stream"
        address = f"{self.workspace.url}/files-pri/{TEAM_ID}-{file_id}/{name}"
        payload: Json = {
            "id": file_id,
            "created": int(time.time()),
            "name": name,
            "title": name,
            "mimetype": kind,
            "filetype": name.rpartition(".")[2] or "text",
            "user": user,
            "size": len(content),
            "mode": "snippet" if kind.startswith("text/") else "hosted",
            "is_external": False,
            "url_private": address,
            "url_private_download": address,
        }
        self.workspace.files[file_id] = StoredFile(payload=payload, content=content)
        return file_id

    def edit(self, channel: str, ts: str, text: str) -> None:
        """Edits a person's message. Raises ``ApiError``: ``message_not_found``."""
        message = message_of(self.workspace, self.channel(channel), ts)
        before = self.workspace.log.shown(message, metadata=True)
        message.text, message.blocks = text, events.rich_text(text)
        message.edited = {"user": message.user, "ts": self.workspace.log.next_ts()}
        self.workspace.changed(message, before)

    def delete(self, channel: str, ts: str) -> None:
        """Deletes a message. Raises ``ApiError``: ``message_not_found``."""
        self.workspace.removed(message_of(self.workspace, self.channel(channel), ts))

    def react(self, user: str, channel: str, ts: str, name: str) -> None:
        """Adds a reaction, or takes it back."""
        message = message_of(self.workspace, self.channel(channel), ts)
        users = message.reactions.setdefault(name, [])
        kind = "reaction_removed" if user in users else "reaction_added"
        (users.remove if user in users else users.append)(user)
        if not users:
            del message.reactions[name]
        self.workspace.feed.publish("message", channel=message.channel, ts=ts)
        event = events.reaction_event(kind, user, name, message, self.workspace.log.next_ts())
        self.workspace.emit(event, self.channel(channel), kind)

    def open_home(self, user: str = VISITOR, tab: str = "home") -> None:
        """Opens the app's home or messages tab."""
        chat = self.workspace.roster.direct_chat(user)
        view = self.workspace.views.homes.get(user)
        event = events.home_opened_event(user, chat.id, tab, view, self.workspace.log.next_ts())
        self.workspace.emit(event, chat, "app_home_opened")

    async def use_shortcut(self, channel: str, ts: str, callback_id: str, user: str = VISITOR) -> None:
        """Uses a message shortcut.

        Raises ``ApiError``: ``message_not_found``; ``NotAcknowledged``: the app did not answer in time.
        """
        place = self.channel(channel)
        message = message_of(self.workspace, place, ts)
        payload = self._interaction("message_action", user) | {
            "callback_id": callback_id,
            "message_ts": ts,
            "message": self.workspace.log.shown(message),
            "channel": {"id": place.id, "name": place.name or "directmessage"},
            "response_url": self._response_url(message, user),
        }
        await self.workspace.deliveries.interaction(payload)

    def stop_session(self, channel: str, thread_ts: str, user: str = VISITOR) -> None:
        """Presses the stop button of a thread."""
        place = self.channel(channel)
        streams = [one.ts for one in self.workspace.log.thread(place.id, thread_ts) if one.streaming]
        event = events.stopped_event(user, place.id, thread_ts, streams, self.workspace.log.next_ts())
        self.workspace.emit(event, place, "agent_session_stopped")

    async def click(  # noqa: PLR0913 - a click is who, where, what and which side
        self,
        channel: str,
        ts: str,
        action_id: str,
        *,
        user: str = VISITOR,
        value: str | None = None,
        block_id: str = "",
    ) -> None:
        """Clicks an element of a message. ``value`` picks the side of feedback buttons.

        Raises:
            ApiError: ``message_not_found`` or ``element_not_found``.
            NotAcknowledged: the app did not answer in time.
        """
        place = self.channel(channel)
        message = self.workspace.log.get(place.id, ts)
        if message is None:
            raise ApiError(error="message_not_found")
        action = find_action(message.blocks, action_id, block_id, value)
        payload = self._interaction("block_actions", user)
        container = {
            "type": "message",
            "message_ts": ts,
            "channel_id": place.id,
            "is_ephemeral": bool(message.ephemeral_for),
        }
        container |= {"thread_ts": message.thread_ts} if message.is_reply else {}
        payload |= {
            "container": container,
            "channel": {"id": place.id, "name": place.name or "directmessage"},
            "message": self.workspace.log.shown(message, metadata=True),
            "state": {"values": {}},
            "response_url": self._response_url(message, user),
            "actions": [action],
        }
        await self.workspace.deliveries.interaction(payload)

    async def click_view(self, view_id: str, action_id: str, *, user: str = VISITOR, block_id: str = "") -> None:
        """Clicks an element of an open modal or of the App Home.

        Raises:
            ApiError: ``not_found`` or ``element_not_found``.
            NotAcknowledged: the app did not answer in time.
        """
        view = self._view(view_id, user)
        payload = self._interaction("block_actions", user)
        payload |= {
            "container": {"type": "view", "view_id": view_id},
            "view": view,
            "state": view["state"],
            "actions": [find_action(view["blocks"], action_id, block_id, None)],
        }
        await self.workspace.deliveries.interaction(payload)

    async def submit(self, view_id: str, values: dict[str, Any] | None = None, user: str = VISITOR) -> dict[str, str]:
        """Submits a modal. Returns the errors by block id that keep it open; empty when it went through.

        ``values`` are ``{block_id: {action_id: {"type": …, "value": …}}}``.

        Raises ``ApiError``: ``not_found``; ``NotAcknowledged``: the app did not answer in time.
        """
        view = self._view(view_id, user)
        view["state"] = {"values": values or {}}
        payload = self._interaction("view_submission", user) | {"view": view, "response_urls": []}
        answer = await self.workspace.deliveries.interaction(payload) or {}
        action = answer.get("response_action")
        if action == "errors":
            return dict(answer.get("errors", {}))
        if action == "update":
            self.workspace.views.update(view_id, "", answer["view"], "")
        elif action == "push":
            self.workspace.views.show(user, answer["view"], parent=view_id)
        else:
            self.workspace.views.close(view_id, whole_stack=action == "clear")
        return {}

    async def dismiss(self, view_id: str, user: str = VISITOR) -> None:
        """Closes a modal; the app hears of it only if the view asked for that."""
        view = self._view(view_id, user)
        self.workspace.views.close(view_id)
        if view["notify_on_close"]:
            payload = self._interaction("view_closed", user) | {"view": view, "is_cleared": False}
            await self.workspace.deliveries.interaction(payload)

    def _view(self, view_id: str, user: str) -> Json:
        home = self.workspace.views.homes.get(user)
        if home is not None and home["id"] == view_id:
            return home
        found = self.workspace.views.open.get(view_id)
        if found is None:
            raise ApiError(error="not_found")
        return found.view

    def _interaction(self, kind: str, user: str) -> Json:
        member = self.workspace.roster.members[user]
        trigger = self.workspace.views.new_trigger(user)
        token, team = self.workspace.verification_token, self.workspace.setup.team
        return events.interaction(kind, member, token, trigger, team)

    def _response_url(self, message: Message, user: str) -> str:
        key = events.identifier("R")
        self.workspace.response_urls[key] = ResponseUrl(message=message, user=user)
        return f"{self.workspace.url}/actions/{TEAM_ID}/{key}"


def find_action(blocks: Sequence[Json], action_id: str, block_id: str, value: str | None) -> Json:
    """The action payload for a click on the element with this id. Raises ``ApiError``: ``element_not_found``."""
    for block in blocks:
        if block_id and block.get("block_id") != block_id:
            continue
        for element in [*block.get("elements", []), block.get("accessory") or {}]:
            if element.get("action_id") == action_id:
                return _action(block, element, value)
    raise ApiError(error="element_not_found")


def _action(block: Json, element: Json, value: str | None) -> Json:
    sides = [element[side] for side in ("positive_button", "negative_button") if side in element]
    chosen = next((side for side in sides if value is None or side.get("value") == value), element)
    kept: Json = {
        "action_id": element["action_id"],
        "block_id": block.get("block_id", ""),
        "type": element["type"],
        "action_ts": f"{time.time():.6f}",
    }
    return kept | {key: chosen[key] for key in ("text", "value", "style") if key in chosen}
