"""State of the workspace: each change goes to the page through the feed and to the app as events.

The Web API and the page's API check permissions first. ``save`` and ``load`` keep the conversations across a restart.
"""

import base64
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Final

from structlog import get_logger

from bot.local.agent_views import AgentThreads, Views
from bot.local.deliveries import Deliveries, HttpEvents, SocketMode
from bot.local.model.faults import ApiCall, Faults
from bot.local.model.feed import UpdateFeed
from bot.local.model.limits import RateLimiter, Strictness
from bot.local.model.messages import LocalMessage, MessageLog, envelope, mention_event, message_event, with_block_ids
from bot.local.model.roster import BOT_ID, BOT_USER, TEAM_ID, TEAM_NAME, Channel, Json, Roster, sample_roster

TurnRecord = Callable[[str], Awaitable[Json | None]]

SCOPES: Final = (
    "app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands", "files:read",
    "groups:history", "groups:read", "im:history", "im:read", "im:write", "mpim:history", "mpim:read",
    "usergroups:read", "users:read",
)  # fmt: skip
SEARCH_SCOPE: Final = "search:read.public"
# Streams belong to this run only.
_FIELDS: Final = {field.name for field in fields(LocalMessage)} - {"streaming", "stream_ends"}


@dataclass(slots=True, kw_only=True)
class StoredFile:
    """A file that a person shared: Slack's file object and its bytes."""

    payload: Json
    content: bytes


@dataclass(kw_only=True, eq=False)
class WorkspaceState:
    """All state of one local workspace, from its settings on."""

    docs: Sequence[Path] = ()  # folders, or single files, whose documents can be opened
    turn_record: TurnRecord | None = None
    examples: Sequence[str] = ()  # questions offered before the first direct message
    shortcuts: Sequence[Json] = ()  # the message shortcuts of the app's manifest
    roster: Roster = field(default_factory=sample_roster)
    strictness: Strictness = field(default_factory=Strictness)
    scopes: tuple[str, ...] = SCOPES
    bot_token: str = field(default_factory=lambda: f"xoxb-local-{secrets.token_hex(12)}")
    app_token: str = field(default_factory=lambda: f"xapp-1-local-{secrets.token_hex(12)}")
    signing_secret: str = field(default_factory=lambda: secrets.token_hex(16))
    team: str = TEAM_ID
    name: str = TEAM_NAME
    clock: Callable[[], float] = time.time  # of new messages, in unix seconds
    kept: Path | None = None  # the folder that stores the conversations across restarts
    url: str = ""
    notice: str = ""  # for every visitor, above the messages

    def __post_init__(self) -> None:
        self.log = MessageLog(self.clock)
        self.feed = UpdateFeed()
        self.faults = Faults()
        self.calls: list[ApiCall] = []
        self.files: dict[str, StoredFile] = {}
        self.action_tokens: set[str] = set()
        self.sockets = SocketMode(self._app_changed)
        self.http = HttpEvents(self.signing_secret)
        self.deliveries = Deliveries(self.sockets, self.http, self.faults, self.strictness, self.feed.touch)
        self.deliveries.may_go.set()
        self.rates = RateLimiter(self.strictness)
        self.threads = AgentThreads(self.feed, self.strictness.status_seconds)
        self.views = Views(self.feed, self.strictness.trigger_seconds)

    def tell(self, notice: str) -> None:
        """Show a notice on every page; an empty one removes it."""
        self.notice = notice
        self.feed.publish("notice", text=notice)

    def app_is_starting(self, notice: str) -> None:
        """Hold events back, and tell the page why, until the app connects."""
        self.deliveries.may_go.clear()
        self.tell(notice)

    def _app_changed(self, connected: bool) -> None:  # noqa: FBT001 - the callback's one value
        self.feed.publish("app", connected=connected)
        if connected and not self.deliveries.may_go.is_set():
            self.deliveries.may_go.set()
            self.tell("")

    def emit(self, kind: str, channel: Channel, /, **facts: object) -> None:
        """Send an event of this kind to the app, if it is in the channel."""
        self._send({"type": kind, **facts, "event_ts": self.log.next_ts()}, channel)

    def _send(self, event: Json, channel: Channel) -> None:
        if BOT_USER in channel.members:
            self.deliveries.event(envelope(event, channel, self.team))

    def add_message(self, message: LocalMessage) -> None:
        """Store a new message and notify everyone."""
        message.blocks = with_block_ids(message.blocks)
        self.log.add(message)
        self.feed.publish("message", channel=message.channel, ts=message.ts)
        channel = self.roster.channels[message.channel]
        if message.bot_id == BOT_ID:
            self.threads.end_status((message.channel, message.thread_ts or message.ts))
        if message.ephemeral_for:
            return
        shown = self.log.payload_of(message, metadata=True)
        if SEARCH_SCOPE in self.scopes and not message.bot_id:  # for an app that may search
            shown["action_token"] = secrets.token_urlsafe(24)
            self.action_tokens.add(shown["action_token"])
        mentions = f"<@{BOT_USER}>" in message.text or f"<@{BOT_USER}|" in message.text
        if mentions and channel.kind != "im" and message.user != BOT_USER and message.subtype in {"", "file_share"}:
            self._send(mention_event(shown, channel), channel)
        self._send(message_event(shown, channel), channel)

    def rewrite(self, message: LocalMessage, **parts: object) -> None:
        """Replace a message's content, and notify everyone of the edit."""
        before = self.log.payload_of(message, metadata=True)
        for name, value in parts.items():
            setattr(message, name, value)
        message.edited = {"user": message.user, "ts": self.log.next_ts()}
        self.publish_change(message, before)

    def publish_change(self, message: LocalMessage, before: Json) -> None:
        """Notify everyone of an edit, an update or a tombstone; ``before`` is the message's old payload."""
        message.blocks = with_block_ids(message.blocks)
        self.feed.publish("message", channel=message.channel, ts=message.ts)
        facts = {"message": self.log.payload_of(message, metadata=True), "previous_message": before}
        self._send_hidden("message_changed", message, facts)

    def _send_hidden(self, subtype: str, message: LocalMessage, facts: Json) -> None:
        if not message.ephemeral_for:
            channel, ts = self.roster.channels[message.channel], self.log.next_ts()
            event = {"type": "message", "subtype": subtype, "hidden": True, "ts": ts, **facts}
            self._send(message_event(event, channel), channel)

    def remove_message(self, message: LocalMessage) -> None:
        """Delete a message; the first one of a thread leaves a tombstone behind, as in Slack."""
        before = self.log.payload_of(message, metadata=True)
        if self.log.replies(message.channel, message.ts) and not message.ephemeral_for:
            message.subtype, message.text, message.user = "tombstone", "This message was deleted.", "USLACKBOT"
            message.blocks, message.metadata, message.bot_id, message.files = [], None, "", []
            self.publish_change(message, before)
            return
        self.log.remove(message)
        self.threads.forget((message.channel, message.ts))
        self.feed.publish("message_deleted", channel=message.channel, ts=message.ts, thread_ts=message.thread_ts)
        self._send_hidden("message_deleted", message, {"deleted_ts": message.ts, "previous_message": before})

    def permalink(self, message: LocalMessage) -> str:
        """The address of a message on the page."""
        link = f"{self.url}/archives/{message.channel}/p{message.ts.replace('.', '')}"
        return link + (f"?thread_ts={message.thread_ts}&cid={message.channel}" if message.is_reply else "")


def save(workspace: WorkspaceState, file: Path) -> None:
    """Write all messages and files atomically. The page says if that is impossible."""
    messages = [asdict(one) for channel in workspace.roster.channels for one in workspace.log.everything_in(channel)]
    files = {
        key: {"payload": one.payload, "content": base64.b64encode(one.content).decode()}
        for key, one in workspace.files.items()
    }
    part = file.with_suffix(".part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part.touch(mode=0o600)
        part.write_text(json.dumps({"messages": messages, "files": files}), encoding="utf-8")
        part.replace(file)  # complete, so that a crash in the middle leaves the previous file
    except OSError as error:
        workspace.tell(f"These conversations cannot be kept in {file.parent}: {error.strerror}.")


def load(workspace: WorkspaceState, file: Path) -> None:
    """Load what ``save`` wrote. A damaged file is renamed, because ``save`` would overwrite it."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        messages = [LocalMessage(**{name: one[name] for name in one.keys() & _FIELDS}) for one in kept["messages"]]
        files = {
            key: StoredFile(payload=one["payload"], content=base64.b64decode(one["content"]))
            for key, one in kept["files"].items()
        }
    except OSError:
        return
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        kept_as = file.replace(file.with_suffix(".damaged"))
        get_logger().warning("conversations_unreadable", reason=repr(error), kept_as=str(kept_as))
        return
    for member in workspace.roster.members.values():
        if not member.is_bot:
            workspace.roster.direct_message(member.id)  # chats are created on first use
    for message in messages:
        if message.channel in workspace.roster.channels:
            workspace.log.add(message)
    workspace.files.update(files)
