"""People's actions in the workspace, for the page and for tests: write, edit, click, submit, stop, open App Home."""

import mimetypes
import time
import uuid
from collections.abc import Sequence
from typing import Any

from bot.local.model.errors import ApiError
from bot.local.model.messages import LocalMessage, identifier, rich_text
from bot.local.model.roster import APP_ID, TEAM_ID, VISITOR, Channel, Json
from bot.local.workspace import StoredFile, WorkspaceState


class PersonActions:
    """Actions of everyone except the app. Raise ``ApiError`` for an unknown object, or ``NotAcknowledged``."""

    def __init__(self, workspace: WorkspaceState) -> None:
        self.workspace = workspace

    def channel(self, reference: str) -> Channel:
        """The channel with this id or name."""
        return self.workspace.roster.channel(reference)

    def post(
        self, user: str, channel: str, text: str, thread_ts: str | None = None, *, files: Sequence[str] = ()
    ) -> str:
        """Write a message in Slack's text form (``<@U0ORION> …``), ``files`` by their ids, and return its ``ts``."""
        message = self._draft(user, channel, text, thread_ts)
        message.blocks = rich_text(text) if text else []
        message.client_msg_id = str(uuid.uuid4())
        message.files = [self.workspace.files[one].payload for one in files]
        message.subtype = "file_share" if files else ""
        self.workspace.add_message(message)
        return message.ts

    def post_as_other_app(self, channel: str, text: str, thread_ts: str | None = None, *, user: str = "U0OTHER") -> str:
        """Write a message as another app, or through that app as ``user``, and return its ``ts``."""
        message = self._draft(user, channel, text, thread_ts)
        message.bot_id, message.bot_name = "B0OTHER", "Another app"
        self.workspace.add_message(message)
        return message.ts

    def join(self, user: str, channel: str) -> None:
        """Add a member to a channel, with the message Slack writes about it."""
        place = self.channel(channel)
        place.members.add(user)
        message = self._draft(user, channel, f"<@{user}> has joined the channel", None)
        message.subtype = "channel_join"
        self.workspace.add_message(message)
        where = {"channel": place.id, "channel_type": "C" if place.kind == "channel" else "G", "team": TEAM_ID}
        self.workspace.emit("member_joined_channel", place, user=user, inviter=VISITOR, **where)

    def _draft(self, user: str, channel: str, text: str, thread_ts: str | None) -> LocalMessage:
        place, log = self.channel(channel), self.workspace.log
        thread = log.root(place.id, thread_ts) if thread_ts else ""
        return LocalMessage(channel=place.id, ts=log.next_ts(), user=user, text=text, thread_ts=thread)

    def add_file(self, user: str, name: str, content: bytes, mimetype: str = "") -> str:
        """Upload a file and return its id. The file appears once a message shares it."""
        file_id = identifier("F")
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
            "url_private": address,
            "url_private_download": address,
        }
        self.workspace.files[file_id] = StoredFile(payload=payload, content=content)
        return file_id

    def _message(self, channel: str, ts: str) -> LocalMessage:
        return self.workspace.log.visible(self.channel(channel).id, ts)

    def edit(self, channel: str, ts: str, text: str) -> None:
        """Edit a person's message."""
        self.workspace.rewrite(self._message(channel, ts), text=text, blocks=rich_text(text))

    def delete(self, channel: str, ts: str) -> None:
        """Delete a message."""
        self.workspace.remove_message(self._message(channel, ts))

    def react(self, user: str, channel: str, ts: str, name: str) -> None:
        """Add a reaction, or remove the one that this user added before."""
        message = self._message(channel, ts)
        users = message.reactions.setdefault(name, [])
        (users.remove if user in users else users.append)(user)
        if not users:
            del message.reactions[name]
        self.workspace.feed.publish("message", channel=message.channel, ts=ts)

    def open_home(self, user: str = VISITOR, tab: str = "home") -> None:
        """Open the app's home or messages tab; the event for the home tab has the view that the app last published."""
        chat, view = self.workspace.roster.direct_message(user), self.workspace.views.homes.get(user)
        before = {"view": view} if view and tab == "home" else {}
        self.workspace.emit("app_home_opened", chat, user=user, channel=chat.id, tab=tab, **before)

    def stop_session(self, channel: str, thread_ts: str, user: str = VISITOR) -> None:
        """Press the stop button of a thread."""
        place = self.channel(channel)
        streams = [one.ts for one in self.workspace.log.thread(place.id, thread_ts) if one.streaming]
        facts = {"channel": place.id, "thread_ts": thread_ts, "user": user, "streaming_message_ts": streams}
        self.workspace.emit("agent_session_stopped", place, **facts)

    async def use_shortcut(self, channel: str, ts: str, callback_id: str, user: str = VISITOR) -> None:
        """Use a message shortcut."""
        message = self._message(channel, ts)
        shown = self.workspace.log.payload_of(message, metadata=True)
        facts = {"callback_id": callback_id, "message_ts": ts, "message": shown}
        await self._interact("message_action", user, **facts, **self._channel_of(message))

    async def click(self, channel: str, ts: str, action_id: str, *, user: str = VISITOR, block_id: str = "") -> None:
        """Click an element of a message, seen by all or by one."""
        message = self.workspace.log.get(self.channel(channel).id, ts)
        if message is None:
            raise ApiError(error="message_not_found")
        action = _action(message.blocks, action_id, block_id)
        container: Json = {"type": "message", "message_ts": ts, "channel_id": message.channel}
        container["is_ephemeral"] = bool(message.ephemeral_for)
        if message.is_reply:
            container["thread_ts"] = message.thread_ts
        facts = {"container": container, "message": self.workspace.log.payload_of(message, metadata=True)}
        state = {"state": {"values": {}}, "actions": [action]}
        await self._interact("block_actions", user, **facts, **state, **self._channel_of(message))

    async def click_view(self, view_id: str, action_id: str, *, user: str = VISITOR, block_id: str = "") -> None:
        """Click an element of an open modal or of the App Home."""
        view = self._view(view_id, user)
        actions = [_action(view["blocks"], action_id, block_id)]
        facts = {"container": {"type": "view", "view_id": view_id}, "view": view, "state": view["state"]}
        await self._interact("block_actions", user, **facts, actions=actions)

    async def submit(self, view_id: str, values: dict[str, Any] | None = None, user: str = VISITOR) -> dict[str, str]:
        """Submit a modal. Returns the errors that keep it open, by block id; empty if it was accepted.

        ``values`` are ``{block_id: {action_id: {"type": …, "value": …}}}``.
        """
        view, views = self._view(view_id, user), self.workspace.views
        view["state"] = {"values": values or {}}
        answer = await self._interact("view_submission", user, view=view) or {}
        if answer.get("response_action") == "errors":
            return dict(answer.get("errors", {}))
        views.close(view_id)
        return {}

    def _view(self, view_id: str, user: str) -> Json:
        views = self.workspace.views
        if (home := views.homes.get(user)) and home["id"] == view_id:
            return home
        if view_id not in views.open:
            raise ApiError(error="not_found")
        return views.open[view_id].view

    async def _interact(self, kind: str, user: str, /, **facts: object) -> Json | None:
        """Send a person's action in the app's own views; return the body of the ack, if it has one."""
        workspace, member = self.workspace, self.workspace.roster.members[user]
        team = workspace.team
        payload = {
            "type": kind,
            "user": {"id": member.id, "username": member.handle, "name": member.handle, "team_id": team},
            "api_app_id": APP_ID,
            "trigger_id": workspace.views.new_trigger(user),
            "team": {"id": team, "domain": "local"},
            "is_enterprise_install": False,
        }
        return await workspace.deliveries.interaction({**payload, **facts})

    def _channel_of(self, message: LocalMessage) -> Json:
        place = self.workspace.roster.channels[message.channel]
        return {"channel": {"id": place.id, "name": place.name or "directmessage"}}


def _action(blocks: Sequence[Json], action_id: str, block_id: str) -> Json:
    for block in blocks:
        for element in [*block.get("elements", []), block.get("accessory") or {}]:
            if element.get("action_id") == action_id and block_id in ("", block.get("block_id")):
                shown = {key: element[key] for key in ("action_id", "type", "text", "value", "style") if key in element}
                return {**shown, "block_id": block.get("block_id", ""), "action_ts": f"{time.time():.6f}"}
    raise ApiError(error="element_not_found")
