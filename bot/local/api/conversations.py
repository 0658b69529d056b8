"""``conversations.*`` and ``reactions.*``: reading what was said, with cursors, and marking it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final, TypeVar

from bot.local.api.arguments import Arguments
from bot.local.api.places import channel_of, member_of, message_of, own_channel, thread_root
from bot.local.events.payloads import reaction_event
from bot.local.model.errors import ApiError
from bot.local.model.messages import Message
from bot.local.model.roster import BOT_USER, Channel, Json
from bot.local.workspace import Workspace

Item = TypeVar("Item")

MOST: Final = 1_000
"""Items on one page at most, whatever ``limit`` says."""


def page(items: Sequence[Item], arguments: Arguments, usual: int) -> tuple[list[Item], str]:
    """One page of ``items`` and the cursor of the next (empty at the end).

    Raises ``ApiError``: ``invalid_cursor`` or ``invalid_limit``.
    """
    limit = arguments.number("limit", usual) or usual
    if limit < 0:
        raise ApiError(error="invalid_limit")
    start = _position(arguments.text("cursor"))
    end = start + min(limit, MOST)
    following = base64.b64encode(f"next:{end}".encode()).decode() if end < len(items) else ""
    return list(items[start:end]), following


def _position(cursor: str) -> int:
    if not cursor:
        return 0
    try:
        kind, _, number = base64.b64decode(cursor, validate=True).decode().partition(":")
        if kind != "next":
            raise ApiError(error="invalid_cursor")
        return int(number)
    except (binascii.Error, ValueError):
        raise ApiError(error="invalid_cursor") from None


def _paged(key: str, items: Sequence[Json], following: str) -> Json:
    answer: Json = {key: list(items), "has_more": bool(following)}
    return answer | {"response_metadata": {"next_cursor": following}}


def _in_window(message: Message, arguments: Arguments) -> bool:
    """Whether a message lies between ``oldest`` and ``latest`` (ends count only with ``inclusive``)."""
    ts = float(message.ts)
    try:
        oldest, latest = float(arguments.text("oldest", "0") or 0), float(arguments.text("latest") or "inf")
    except ValueError:
        raise ApiError(error="invalid_ts_oldest") from None
    return oldest <= ts <= latest if arguments.flag("inclusive") else oldest < ts < latest


def history(workspace: Workspace, arguments: Arguments) -> Json:
    """``conversations.history``: newest first."""
    channel = own_channel(workspace, arguments)
    found = [one for one in reversed(workspace.log.timeline(channel.id)) if _in_window(one, arguments)]
    messages, following = page(found, arguments, 100)
    metadata = arguments.flag("include_all_metadata")
    shown = [workspace.log.shown(one, metadata=metadata) for one in messages]
    return _paged("messages", shown, following) | {"pin_count": 0}


def replies(workspace: Workspace, arguments: Arguments) -> Json:
    """``conversations.replies``: oldest first, the thread's first message in front of every page's window."""
    channel = own_channel(workspace, arguments)
    ts = arguments.required("ts")
    root = thread_root(workspace, channel, ts)
    if root != ts:
        reply = message_of(workspace, channel, ts)
        return _paged("messages", [workspace.log.shown(reply, metadata=arguments.flag("include_all_metadata"))], "")
    thread = workspace.log.thread(channel.id, root)
    found = [one for one in thread if one.ts == root or _in_window(one, arguments)]
    messages, following = page(found, arguments, MOST)
    metadata = arguments.flag("include_all_metadata")
    return _paged("messages", [workspace.log.shown(one, metadata=metadata) for one in messages], following)


def info(workspace: Workspace, arguments: Arguments) -> Json:
    """``conversations.info``."""
    channel = channel_of(workspace, arguments)
    shown = channel.payload()
    if not arguments.flag("include_num_members"):
        shown.pop("num_members", None)
    return {"channel": shown}


_KINDS: Final = {"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}


def _listed(workspace: Workspace, arguments: Arguments) -> list[Channel]:
    """The channels of the wanted types that the app can see. Raises ``ApiError``: ``invalid_types``."""
    wanted = arguments.text("types", "public_channel").replace(" ", "").split(",")
    if not set(wanted) <= set(_KINDS):
        raise ApiError(error="invalid_types")
    kinds = {_KINDS[one] for one in wanted}
    exclude = arguments.flag("exclude_archived")
    return [
        one
        for one in workspace.roster.channels.values()
        if one.kind in kinds
        and (one.kind == "channel" or BOT_USER in one.members)
        and not (exclude and one.is_archived)
    ]


def list_channels(workspace: Workspace, arguments: Arguments) -> Json:
    """``conversations.list``."""
    channels, following = page(_listed(workspace, arguments), arguments, 100)
    return {"channels": [one.payload() for one in channels], "response_metadata": {"next_cursor": following}}


def members(workspace: Workspace, arguments: Arguments) -> Json:
    """``conversations.members``."""
    channel = channel_of(workspace, arguments)
    found, following = page(sorted(channel.members), arguments, 100)
    return {"members": found, "response_metadata": {"next_cursor": following}}


def open_chat(workspace: Workspace, arguments: Arguments) -> Json:
    """``conversations.open``: the direct chat with one user."""
    if "channel" in arguments:
        channel = channel_of(workspace, arguments)
    else:
        users = [user for user in arguments.required("users").split(",") if user]
        if len(users) != 1:
            raise ApiError(error="too_many_users")
        channel = workspace.roster.direct_chat(member_of(workspace, users[0]).id)
    shown = channel.payload() if arguments.flag("return_im") else {"id": channel.id}
    return {"channel": shown, "already_open": True, "no_op": True}


def add_reaction(workspace: Workspace, arguments: Arguments) -> Json:
    """``reactions.add``."""
    message, name = _reacted(workspace, arguments)
    users = message.reactions.setdefault(name, [])
    if BOT_USER in users:
        raise ApiError(error="already_reacted")
    users.append(BOT_USER)
    _announce_reaction(workspace, "reaction_added", name, message)
    return {}


def remove_reaction(workspace: Workspace, arguments: Arguments) -> Json:
    """``reactions.remove``."""
    message, name = _reacted(workspace, arguments)
    if BOT_USER not in message.reactions.get(name, []):
        raise ApiError(error="no_reaction")
    message.reactions[name].remove(BOT_USER)
    if not message.reactions[name]:
        del message.reactions[name]
    _announce_reaction(workspace, "reaction_removed", name, message)
    return {}


def _reacted(workspace: Workspace, arguments: Arguments) -> tuple[Message, str]:
    channel = own_channel(workspace, arguments)
    name = arguments.required("name").strip(":")
    if not name.replace("_", "").replace("-", "").replace("+", "").replace(":", "").isalnum():
        raise ApiError(error="invalid_name")
    return message_of(workspace, channel, arguments.required("timestamp")), name


def _announce_reaction(workspace: Workspace, kind: str, name: str, message: Message) -> None:
    workspace.feed.publish("message", channel=message.channel, ts=message.ts)
    event = reaction_event(kind, BOT_USER, name, message, workspace.log.next_ts())
    workspace.emit(event, workspace.roster.channels[message.channel], kind)


METHODS: Final = {
    "conversations.history": history,
    "conversations.replies": replies,
    "conversations.info": info,
    "conversations.list": list_channels,
    "conversations.members": members,
    "conversations.open": open_chat,
    "reactions.add": add_reaction,
    "reactions.remove": remove_reaction,
}
