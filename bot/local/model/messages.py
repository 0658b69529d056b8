"""The messages of the workspace, with Slack's rules for ``ts`` and ``thread_ts``, and the events about them."""

import re
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from agent.knowledge.slack_message import unescape_wire
from bot.local.model.errors import ApiError
from bot.local.model.roster import APP_ID, BOT_ID, BOT_USER, TEAM_ID, Channel, Json

_TOKEN: Final = re.compile(r"(<[@#][A-Z0-9]+(?:\|[^>]*)?>|<[^<>@#!|][^<>|]*(?:\|[^<>]*)?>)")

_OPTIONAL: Final = ("subtype", "client_msg_id", "thread_ts", "blocks", "attachments", "files", "edited")


@dataclass(slots=True, kw_only=True)
class LocalMessage:
    """One message. ``thread_ts`` is set on replies only; ``ephemeral_for`` names the one person who sees it."""

    channel: str
    ts: str
    user: str
    text: str = ""
    blocks: list[Json] = field(default_factory=list)
    thread_ts: str = ""
    subtype: str = ""
    client_msg_id: str = ""
    bot_id: str = ""
    bot_name: str = ""
    metadata: Json | None = None
    edited: Json | None = None
    reactions: dict[str, list[str]] = field(default_factory=dict)
    files: list[Json] = field(default_factory=list)
    attachments: list[Json] = field(default_factory=list)
    streaming: bool = False
    stream_ends: float = 0.0
    stream_mode: str = ""
    ephemeral_for: str = ""

    @property
    def is_reply(self) -> bool:
        """Return whether it is a reply in a thread."""
        return bool(self.thread_ts) and self.thread_ts != self.ts

    def payload(self, *, metadata: bool = False) -> Json:
        """Return the message object as Slack's API shows it, without the thread's fields."""
        shown: Json = {"type": "message", "user": self.user, "text": self.text, "ts": self.ts, "team": TEAM_ID}
        if self.bot_id:
            # Other apps have another id, so that Orion does not mistake their posts for its own.
            app = APP_ID if self.bot_id == BOT_ID else f"A{self.bot_id[1:]}"
            shown |= {"bot_id": self.bot_id, "app_id": app, "bot_profile": {"name": self.bot_name}}
        optional = {
            **{name: getattr(self, name) for name in _OPTIONAL},
            "reactions": [{"name": name, "users": [*who], "count": len(who)} for name, who in self.reactions.items()],
            "streaming_state": "in_progress" if self.streaming else "",
            "metadata": self.metadata if metadata else None,
        }
        return shown | {key: value for key, value in optional.items() if value}


class MessageLog:
    """All messages by channel, in order of ``ts``. ``clock`` gives the time of new ones in unix seconds."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.now = clock
        self._last = 0
        self._channels: defaultdict[str, dict[str, LocalMessage]] = defaultdict(dict)

    def next_ts(self) -> str:
        """Return a new ``ts``, later than all earlier ones: ``seconds.microseconds``."""
        # Even two messages in one microsecond, or after the clock was set back, get distinct, later timestamps.
        self._last = max(int(self.now() * 1_000_000), self._last + 1)
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06d}"

    def add(self, message: LocalMessage) -> None:
        """Store a new message; every ``ts`` from now on is later."""
        seconds, _, micros = message.ts.partition(".")
        self._last = max(self._last, int(seconds) * 1_000_000 + int(micros or 0))
        self._channels[message.channel][message.ts] = message

    def get(self, channel: str, ts: str) -> LocalMessage | None:
        """Return the message, or None."""
        return self._channels[channel].get(ts)

    def visible(self, channel: str, ts: str, error: str = "message_not_found") -> LocalMessage:
        """A message that everyone in the channel sees. Raises ``ApiError``: ``error``."""
        message = self.get(channel, ts)
        if message is None or message.ephemeral_for:
            raise ApiError(error)
        return message

    def root(self, channel: str, ts: str) -> str:
        """The ``ts`` of the first message of this message's thread. Raises ``ApiError``: ``thread_not_found``."""
        return self.visible(channel, ts, "thread_not_found").thread_ts or ts

    def remove(self, message: LocalMessage) -> None:
        """Forget a message."""
        self._channels[message.channel].pop(message.ts, None)

    def everything_in(self, channel: str) -> list[LocalMessage]:
        """Return all messages, including ephemeral ones, in order of arrival."""
        return list(self._channels[channel].values())

    def all_in(self, channel: str) -> Iterator[LocalMessage]:
        """All messages that everyone in the channel can see, oldest first."""
        return (one for one in self._channels[channel].values() if not one.ephemeral_for)

    def replies(self, channel: str, thread_ts: str) -> list[LocalMessage]:
        """The replies of a thread without its first message, oldest first."""
        return [one for one in self.all_in(channel) if one.is_reply and one.thread_ts == thread_ts]

    def thread(self, channel: str, thread_ts: str) -> list[LocalMessage]:
        """Return a whole thread, including its first message; empty if the message does not exist."""
        root = self.get(channel, thread_ts)
        return [root, *self.replies(channel, thread_ts)] if root else []

    def timeline(self, channel: str) -> list[LocalMessage]:
        """Messages of the channel itself, without replies."""
        return [one for one in self.all_in(channel) if not one.is_reply]

    def payload_of(self, message: LocalMessage, *, metadata: bool = False) -> Json:
        """Return the message with its thread's fields: reply count and repliers."""
        shown = message.payload(metadata=metadata)
        replies = [] if message.is_reply else self.replies(message.channel, message.ts)
        if not replies:
            return shown
        return shown | {
            "thread_ts": message.ts,
            "reply_count": len(replies),
            "latest_reply": replies[-1].ts,
            "reply_users": list(dict.fromkeys(reply.user for reply in replies))[:5],
        }


def identifier(prefix: str) -> str:
    """A fresh id such as ``Ev0A1B2C3D4E``."""
    return f"{prefix}0{secrets.token_hex(5).upper()}"


def envelope(event: Json, channel: Channel, team: str) -> Json:
    """The outer payload of an Events API delivery."""
    install = {"user_id": BOT_USER, "is_bot": True, "is_enterprise_install": False}
    return {
        "team_id": team,
        "api_app_id": APP_ID,
        "event": event,
        "type": "event_callback",
        "event_id": identifier("Ev"),
        "event_time": int(time.time()),
        "authorizations": [{"enterprise_id": None, "team_id": team, **install}],
        "is_ext_shared_channel": channel.is_ext_shared,
    }


def message_event(shown: Json, channel: Channel) -> Json:
    """A ``message`` event for a new message, made from its API payload."""
    return {**shown, "channel": channel.id, "event_ts": shown["ts"], "channel_type": channel.kind}


def mention_event(shown: Json, channel: Channel) -> Json:
    """The ``app_mention`` twin: the same message without channel type, files and subtype."""
    # Slack often lists the files only in the message event (decision 8).
    left_out = ("files", "subtype", "reply_count", "reply_users", "latest_reply")
    kept = {key: value for key, value in shown.items() if key not in left_out}
    return {**kept, "type": "app_mention", "channel": channel.id, "event_ts": shown["ts"]}


def with_block_ids(blocks: list[Json]) -> list[Json]:
    """Return the blocks, each with an id: Slack generates one if the app gave none."""
    return [{**block, "block_id": block.get("block_id") or secrets.token_urlsafe(4)} for block in blocks]


def rich_text(text: str) -> list[Json]:
    """The ``rich_text`` block that Slack's composer adds to what a person typed."""
    elements = [_rich_element(part) for part in _TOKEN.split(text) if part]
    return with_block_ids([{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}])


def _rich_element(part: str) -> Json:
    if not _TOKEN.fullmatch(part):
        return {"type": "text", "text": unescape_wire(part)}
    target, _, label = part[1:-1].partition("|")
    if target.startswith("@"):
        return {"type": "user", "user_id": target[1:]}
    if target.startswith("#"):
        return {"type": "channel", "channel_id": target[1:]}
    return {"type": "link", "url": unescape_wire(target)} | ({"text": unescape_wire(label)} if label else {})
