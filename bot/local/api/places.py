"""Where a Web API call wants to go: the channel, thread or message it names, or Slack's refusal."""

from __future__ import annotations

from bot.local.api.arguments import Arguments
from bot.local.model.errors import ApiError
from bot.local.model.messages import Message
from bot.local.model.roster import BOT_USER, Channel, Member
from bot.local.workspace import Workspace


def channel_of(workspace: Workspace, arguments: Arguments, name: str = "channel") -> Channel:
    """The channel that the argument names.

    Raises ``ApiError``: ``channel_not_found``, also for private places that the app is no member of.
    """
    channel = workspace.roster.channel(arguments.required(name))
    if channel is None or (channel.kind != "channel" and BOT_USER not in channel.members):
        raise ApiError(error="channel_not_found")
    return channel


def own_channel(workspace: Workspace, arguments: Arguments, name: str = "channel") -> Channel:
    """A channel that the app is a member of.

    Raises ``ApiError``: ``channel_not_found``, ``not_in_channel`` or ``is_archived``.
    """
    channel = channel_of(workspace, arguments, name)
    if BOT_USER not in channel.members:
        raise ApiError(error="not_in_channel")
    if channel.is_archived:
        raise ApiError(error="is_archived")
    return channel


def thread_root(workspace: Workspace, channel: Channel, thread_ts: str) -> str:
    """The ``ts`` of the thread's first message; a reply's ``ts`` leads to its parent.

    Raises ``ApiError``: ``thread_not_found``.
    """
    message = workspace.log.get(channel.id, thread_ts)
    if message is None or message.ephemeral_for:
        raise ApiError(error="thread_not_found")
    return message.thread_ts or message.ts


def message_of(workspace: Workspace, channel: Channel, ts: str) -> Message:
    """A message that everybody in the channel sees. Raises ``ApiError``: ``message_not_found``."""
    message = workspace.log.get(channel.id, ts)
    if message is None or message.ephemeral_for:
        raise ApiError(error="message_not_found")
    return message


def member_of(workspace: Workspace, user: str) -> Member:
    """A member of the team. Raises ``ApiError``: ``user_not_found``."""
    member = workspace.roster.members.get(user)
    if member is None:
        raise ApiError(error="user_not_found")
    return member
