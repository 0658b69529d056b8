"""A message to Orion as stored in the queue, Orion's identity in a workspace, and the lists of people who may ask."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

from agent.json_data import compact_json, parse_json
from agent.thread.conversation import Question, ThreadKey

Command = Literal["stop", "mute", "unmute"]
Kind = Literal["question", "stop", "mute", "unmute", "edit", "delete", "hand_off"]
Addressed = Literal["mention", "direct", "follow_up", "overheard"]
"""``overheard``: a message in a channel, outside threads, that does not mention Orion."""
ADDRESSES_ORION: Final = frozenset({"mention", "direct"})
ThreadMode = Literal["unknown", "engaged", "muted", "lost"]
Files = Literal["none", "some", "unknown"]

MESSAGE_SCHEMA = 1
"""Increase this if an older Orion can no longer read a message; new fields with a default need no new number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BotIdentity:
    """Orion in a workspace: its user id (``U…``), bot id (``B…``) and the workspace's id (``T…``)."""

    user: str
    bot: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Permitted people and channels. An empty allow list allows everyone. A deny list always wins."""

    allow_users: frozenset[str] = frozenset()
    deny_users: frozenset[str] = frozenset()
    allow_channels: frozenset[str] = frozenset()
    deny_channels: frozenset[str] = frozenset()
    allow_bots: frozenset[str] = frozenset()  # user, bot or app ids of other bots
    allow_external: bool = False  # channels shared with another organisation, and its people
    allow_guests: bool = False  # events do not mark guests: ``bot.gates.access`` looks them up

    def refusal(self, user: str, channel: str) -> str:
        """Return why the lists refuse this person or channel, or an empty text. App Home has no channel."""
        if user in self.deny_users or (self.allow_users and user not in self.allow_users):
            return "user_refused"
        if channel and (channel in self.deny_channels or (self.allow_channels and channel not in self.allow_channels)):
            return "channel_refused"
        return ""


@dataclass(kw_only=True)
class Ignored(Exception):  # noqa: N818 - what becomes of most events, not an error
    """Nothing to do. ``reason`` is a snake_case word for the log."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A message for a thread's queue."""

    kind: Kind
    thread: ThreadKey
    user: str
    ts: str  # of the message it is about
    addressed: Addressed
    text: str = ""  # plain text without Orion's mention, followed by a message that it shares
    edited_ts: str = ""  # distinguishes versions of the message
    event_ts: str = ""  # orders messages
    channel_type: str = ""
    mentioned: frozenset[str] = frozenset()
    event_ids: tuple[str, ...] = ()  # the keys that identify a second delivery of the same message
    unproven: bool = False  # Redis lost the thread, so Slack must first say whether Orion was addressed there
    refused: str = ""  # why this person gets no answer
    vouched: bool = False  # the event said whether its channel is shared; if it is and may not be, see ``refused``
    files: Files = "none"  # an event of a mention may not list them
    attached: tuple[Mapping[str, Any], ...] = ()  # the event's facts about the files
    links_message: bool = False  # to another message or to a file, which Slack has not added to it yet
    through_app: bool = False  # posted by an app that is not listed, in the name of ``user``, a person or a bot
    by_app: bool = False  # posted by any app
    action_token: str = ""
    origin: str = ""  # channel and thread_ts of the message that a private question is about
    user_team: str = ""  # the asker's own workspace, if the event names it

    @property
    def turn_id(self) -> str:
        """32 hex digits, equal on every try of the same version of the message. Also the trace's id."""
        return turn_id_for(self.thread, self.ts, self.edited_ts)

    @property
    def costs_tokens(self) -> bool:
        """True if answering may use tokens."""
        return self.kind in {"question", "edit"}

    def question(self) -> Question:
        """The message as the agent's question."""
        return Question(
            thread=self.thread, user=self.user, text=self.text, ts=self.ts, mentioned=self.mentioned,
            addressed=self.addressed in ADDRESSES_ORION,
        )  # fmt: skip

    def to_json(self) -> str:
        """One line of JSON for ``from_json``, without the token, which is stored separately for some minutes."""
        # Not `asdict`, which copies every value. Empty fields, as most are, take no space in Redis.
        fields = {name: value for name in self.__slots__ if (value := getattr(self, name)) or name == "user"}
        fields |= {"action_token": "", "mentioned": sorted(self.mentioned), "schema": MESSAGE_SCHEMA}
        return compact_json(fields)

    @classmethod
    def from_json(cls, body: str) -> Self:
        """Read a stored message without a newer version's unknown fields. Raises ``ValueError`` for anything else."""
        return cls.from_fields(parse_json(body))

    @classmethod
    def from_fields(cls, fields: Any) -> Self:
        """Read the same from parsed JSON."""
        try:
            known = {name: fields[name] for name in cls.__slots__ if name in fields}
            known["thread"] = ThreadKey(**known["thread"])
            if known["kind"] == "help":  # an older version's mention without words
                known["kind"] = "question"
            for name, kind in (("mentioned", frozenset), ("event_ids", tuple), ("attached", tuple)):
                known[name] = kind(known.get(name, ()))
            return cls(**known)
        except (TypeError, KeyError) as exc:
            message = "not a stored message"
            raise ValueError(message) from exc

    @classmethod
    def from_body(cls, body: str) -> Self | None:
        """Read the message in an entry of the queue; None for anything else."""
        try:
            return cls.from_json(body)
        except ValueError:
            return None


def turn_id_for(thread: ThreadKey, ts: str, edited_ts: str) -> str:
    """Return the turn's id for the latest version of the message with this ts."""
    return hashlib.sha256(f"{thread}:{ts}:{edited_ts}".encode()).hexdigest()[:32]
