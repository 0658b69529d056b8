"""The messages of the workspace: threads, edits, deletions, and Slack's rules for ``ts`` and ``thread_ts``."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from bot.local.model.errors import ApiError
from bot.local.model.roster import APP_ID, BOT_ID, TEAM_ID, Json

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
        """Return a whole thread with its first message; empty if there is no such message."""
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
