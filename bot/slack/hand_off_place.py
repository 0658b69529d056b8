"""The place for "Ask a human": a user group in the thread itself, or a channel."""

from dataclasses import dataclass
from typing import Final

import structlog

from agent.json_data import mapping, objects, string
from agent.texts.catalogue import say
from agent.thread.conversation import ThreadKey
from bot.channel_settings import ChannelFile
from bot.slack.directory import SlackDirectory, find_channel
from bot.slack.web_api import DeliveryFailed, SlackCalls

MAX_LABEL_CHARS: Final = 80
log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class HandOffPlace:
    """Value of ORION_HANDOFF: a user group's id, a channel's id or its ``#name``; empty: people cannot be asked."""

    name: str
    people: SlackDirectory
    channels: ChannelFile | None = None
    _channel: str = ""  # the id of a ``#name``, once it was looked up

    def in_channel(self, thread: ThreadKey) -> "HandOffPlace":
        """Return the place for a thread, because a channel may have its own."""
        own = self.channels.of(thread.team, thread.channel).handoff if self.channels else ""
        return HandOffPlace(own, self.people) if own else self

    @property
    def is_group(self) -> bool:
        """Return whether a user group is asked, in the thread itself."""
        return self.name.startswith("S")

    async def label(self, thread: ThreadKey, language: str | None = None) -> str:
        """Return the name of the place to show before the click; empty if people cannot be asked from this thread."""
        if not self.name or (self.is_group and thread.channel.startswith("D")):  # no one else sees a direct message
            return ""
        label = self.name if self.name.startswith("#") else ""
        try:
            look = self.people.group_name if self.is_group else self.people.channel_name
            label = label or await look(thread.team, self.name)
        except DeliveryFailed as failure:
            log.warning("hand_off_place_not_named", reason=failure.reason)
        unnamed = say("hand_off_group" if self.is_group else "hand_off_private", language)
        return (label or unnamed)[:MAX_LABEL_CHARS]

    async def find(self, thread: ThreadKey) -> ThreadKey:
        """Return where to post: the thread itself for a user group, else the channel. Raises ``DeliveryFailed``."""
        if self.is_group:
            return thread
        if not self._channel:
            by_name, calls = self.name.startswith("#"), self.people.calls
            self._channel = await find_channel(calls, self.name[1:]) if by_name else self.name
        return ThreadKey(team=thread.team, channel=self._channel, thread_ts=self._channel)


async def find_fault(calls: SlackCalls, name: str, setting: str = "ORION_HANDOFF") -> tuple[str, str] | None:
    """Return what is wrong with the place in this setting and how to fix it, or None. Raises ``DeliveryFailed``."""
    if name.startswith("S"):
        groups = await calls.read("usergroups.list")
        if any(string(group, "id") == name for group in objects(groups, "usergroups")):
            return None
        return f"there is no user group {name}", f"Put the group's id (S…) into {setting}."
    try:
        channel = await find_channel(calls, name[1:]) if name.startswith("#") else name
        found = mapping(await calls.read("conversations.info", channel=channel), "channel")
    except DeliveryFailed as failure:
        if failure.reason != "channel_not_found":
            raise
        remedy = f"Put a channel's id or #name into {setting}; a private one must have Orion in it."
        return f"there is no channel {name} that Orion can see", remedy
    if found.get("is_archived"):
        return f"{name} is archived", f"Unarchive it, or put another channel into {setting}."
    if found.get("is_member") is False:
        return f"Orion is not in {name}", "Invite it there: /invite @Orion"
    return None
