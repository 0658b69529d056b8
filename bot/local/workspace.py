"""The state behind the server. Whatever changes it goes to the page through the feed and to the app as events.

Who may do what is checked before, by the Web API and by the page's API.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bot.local.documents import DocsFolder
from bot.local.events import payloads as events
from bot.local.events.dispatch import Deliveries
from bot.local.events.http import HttpEvents
from bot.local.events.socket_mode import SocketMode
from bot.local.model.agent_threads import AgentThreads
from bot.local.model.faults import ApiCall, Faults
from bot.local.model.feed import Feed
from bot.local.model.limits import RateLimiter, Strictness
from bot.local.model.messages import Message, MessageLog
from bot.local.model.roster import BOT_ID, BOT_USER, TEAM_ID, TEAM_NAME, Channel, Json, Roster, seeded
from bot.local.switches import Switches
from bot.local.views import Views

TurnRecord = Callable[[str], Awaitable[Json | None]]

SCOPES: Final = (
    "app_mentions:read",
    "assistant:write",
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "files:read",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "mpim:history",
    "mpim:read",
    "reactions:read",
    "reactions:write",
    "team:read",
    "usergroups:read",
    "users:read",
)
SEARCH_SCOPE: Final = "search:read.public"
_MENTIONING: Final = frozenset({"", "thread_broadcast", "file_share"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a workspace starts with. ``examples`` are questions offered in the empty direct chat.

    ``team`` is the id under which events arrive: two workspaces of one app differ in it. ``clock`` gives the time of
    new messages, in unix seconds. ``kept`` is the folder where the conversations outlive a restart.
    """

    docs: DocsFolder | None = None
    turn_record: TurnRecord | None = None
    examples: Sequence[str] = ()
    strictness: Strictness = field(default_factory=Strictness)
    subscriptions: frozenset[str] = events.SUBSCRIBED
    scopes: tuple[str, ...] = SCOPES
    bot_token: str = ""
    app_token: str = ""
    signing_secret: str = ""
    team: str = TEAM_ID
    name: str = TEAM_NAME
    clock: Callable[[], float] = time.time
    kept: Path | None = None


@dataclass(slots=True, kw_only=True)
class ResponseUrl:
    """Where a ``response_url`` points to, and how often it may still be used."""

    message: Message
    user: str
    uses: int = 5


@dataclass(slots=True, kw_only=True)
class StoredFile:
    """A file that a person shared: Slack's file object and its bytes."""

    payload: Json
    content: bytes


class Workspace:
    """All state of one local workspace."""

    def __init__(self, setup: Setup, roster: Roster | None = None, beside: Workspace | None = None) -> None:
        """Makes an idle workspace; ``roster`` replaces the usual people and channels.

        One ``beside`` another may install the same app: events then go over the same connections.
        """
        self.all: list[Workspace] = beside.all if beside else []
        """Every workspace of this Slack, the first one first."""
        self.all.append(self)
        self.installed = beside is None
        self.install_url = ""
        """Where a visitor lets the app into another workspace; empty where it cannot be."""
        self.setup = setup
        self.roster = roster or seeded()
        self.log = MessageLog(setup.clock)
        self.feed = Feed()
        self.faults = Faults()
        self.switches = Switches(self.faults)
        self.calls: list[ApiCall] = []
        self.files: dict[str, StoredFile] = {}
        self.response_urls: dict[str, ResponseUrl] = {}
        self.action_tokens: set[str] = set()
        self.url = ""
        self.bot_token = setup.bot_token or f"xoxb-local-{secrets.token_hex(12)}"
        self.app_token = setup.app_token or f"xapp-1-local-{secrets.token_hex(12)}"
        self.signing_secret = setup.signing_secret or secrets.token_hex(16)
        self.verification_token = secrets.token_hex(12)
        self.sockets: SocketMode = beside.sockets if beside else SocketMode(self.faults, self._app_changed)
        self.notice = ""
        """What everybody at the page is told, above the messages."""
        self.http: HttpEvents = beside.http if beside else HttpEvents(self.signing_secret)
        self.deliveries = Deliveries(self.sockets, self.http, self.faults, setup.strictness, self.feed.touch)
        self.rates = RateLimiter(setup.strictness)
        self.threads = AgentThreads(self.feed, setup.strictness.status_seconds)
        self.views = Views(self.feed, setup.strictness)

    def tell(self, notice: str) -> None:
        """Shows a notice at every page; an empty one takes it away."""
        for one in self.all:
            one.notice = notice
            one.feed.publish("notice", text=notice)

    def app_is_starting(self, notice: str) -> None:
        """Holds events back, and tells the page why, until the app connects."""
        for one in self.all:
            one.deliveries.hold()
        self.tell(notice)

    def _app_changed(self, connected: bool) -> None:  # noqa: FBT001 - the callback's one value
        for one in self.all:
            one.feed.publish("app", connected=connected, faults=one.switches.shown())
        if connected and self.deliveries.held:
            for one in self.all:
                one.deliveries.release()
            self.tell("")

    def install(self) -> None:
        """The app may come in from now on."""
        self.installed = True
        for one in self.all:
            one.feed.publish("teams", teams=self.teams())

    def teams(self) -> list[Json]:
        """The workspaces that have the app."""
        return [{"name": one.setup.name, "url": f"{one.url}/"} for one in self.all if one.installed]

    def emit(self, event: Json, channel: Channel | None, subscription: str) -> None:
        """Sends an event to the app if it subscribed to it and can see the channel."""
        if subscription not in self.setup.subscriptions or not self.installed:
            return
        # Slack sends an app nothing from channels that it is no member of.
        if channel is not None and BOT_USER not in channel.members:
            return
        self.deliveries.event(events.envelope(event, channel, self.verification_token, self.setup.team))

    def added(self, message: Message) -> None:
        """Keeps a new message and tells everybody."""
        message.blocks = with_block_ids(message.blocks)
        self.log.add(message)
        self.feed.publish("message", channel=message.channel, ts=message.ts)
        channel = self.roster.channels[message.channel]
        if message.bot_id == BOT_ID:
            self.threads.app_spoke(message)
        if message.ephemeral_for:
            return
        shown = self.log.shown(message, metadata=True) | self._action_token(message)
        mentions = f"<@{BOT_USER}>" in message.text or f"<@{BOT_USER}|" in message.text
        if mentions and channel.kind != "im" and message.user != BOT_USER and message.subtype in _MENTIONING:
            self.emit(events.mention_event(shown, channel), channel, "app_mention")
        self.emit(events.message_event(shown, channel), channel, events.subscription_of(channel))

    def _action_token(self, message: Message) -> Json:
        """What an event about a person's message brings to an app that may search."""
        if SEARCH_SCOPE not in self.setup.scopes or message.bot_id:
            return {}
        token = secrets.token_urlsafe(24)
        self.action_tokens.add(token)
        return {"action_token": token}

    def changed(self, message: Message, before: Json) -> None:
        """Tells everybody that a message is different now; ``before`` is its payload until then."""
        message.blocks = with_block_ids(message.blocks)
        self.feed.publish("message", channel=message.channel, ts=message.ts)
        if message.ephemeral_for:
            return
        channel = self.roster.channels[message.channel]
        now = self.log.shown(message, metadata=True)
        facts = {"message": now, "previous_message": before}
        event = events.hidden_event("message_changed", channel, self.log.next_ts(), **facts)
        self.emit(event, channel, events.subscription_of(channel))

    def removed(self, message: Message) -> None:
        """Deletes a message; the first one of a thread leaves a tombstone behind, as in Slack."""
        channel = self.roster.channels[message.channel]
        before = self.log.shown(message, metadata=True)
        if self.log.replies(message.channel, message.ts) and not message.ephemeral_for:
            message.subtype, message.text, message.user = "tombstone", "This message was deleted.", "USLACKBOT"
            message.blocks, message.metadata, message.bot_id, message.files = [], None, "", []
            self.changed(message, before)
            return
        self.log.remove(message)
        self.threads.forget((message.channel, message.ts))
        self.feed.publish("message_deleted", channel=message.channel, ts=message.ts, thread_ts=message.thread_ts)
        if not message.ephemeral_for:
            facts = {"deleted_ts": message.ts, "previous_message": before}
            event = events.hidden_event("message_deleted", channel, self.log.next_ts(), **facts)
            self.emit(event, channel, events.subscription_of(channel))


def with_block_ids(blocks: list[Json]) -> list[Json]:
    """The blocks, each with an id: Slack makes one up where the app gave none."""
    return [{**block, "block_id": block.get("block_id") or secrets.token_urlsafe(4)} for block in blocks]
