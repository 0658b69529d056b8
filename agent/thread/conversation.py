"""Values that enter and leave the agent: threads, questions, messages. Independent of Slack's payloads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from verification.text.language import detect_language


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadKey:
    """One conversation: a thread, or a direct chat (``thread_ts`` is then the channel's own id)."""

    team: str
    channel: str
    thread_ts: str

    def __str__(self) -> str:
        """``team:channel:thread_ts``, the form used in keys, logs and traces."""
        return f"{self.team}:{self.channel}:{self.thread_ts}"


FileTrouble = Literal["", "form", "big", "unreadable", "elsewhere", "not_allowed", "away", "many", "unseen"]
"""Reason why a file could not be read. ``file_…`` in ``agent/texts`` has the text for it."""


class FilePart(NamedTuple):
    """A passage of a file: the headings above it, and its first line."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedFile:
    """A file that came with a question: its text, or the ``trouble`` with reading it. ``url`` is the link for people.

    ``opening``: it came with the thread's first message, not with the question itself. ``is_cut``: only its beginning
    was read.
    """

    name: str
    text: str = ""
    parts: tuple[FilePart, ...] = ()
    url: str = ""
    trouble: FileTrouble = ""
    opening: bool = False
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One message for Orion. ``mentioned`` are the user ids it names (Orion's own left out).

    ``addressed`` is False for a message in a thread that does not mention Orion: it may be meant for other people.
    ``memberships`` are looked up in a direct chat: the asker's groups, channels and e-mail address. ``tz`` is their
    time zone (an IANA name), ``names`` are those of people in the conversation, by user id. ``instruction`` is an
    admin's request for answers in this channel, ``documents`` are prefixes of the paths or sources used there.
    ``language`` is the language set for the channel.
    """

    thread: ThreadKey
    user: str
    text: str
    ts: str
    files: tuple[AttachedFile, ...] = ()
    mentioned: frozenset[str] = frozenset()
    addressed: bool = True
    memberships: frozenset[str] = frozenset()
    tz: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    instruction: str = ""
    documents: tuple[str, ...] = ()
    language: str = ""

    @property
    def reply_language(self) -> str | None:
        """Language of Orion's own messages: the one set for the channel, else that of the question, if known."""
        return self.language or detect_language(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One line of the conversation so far. ``user`` is an id, empty for Orion.

    ``addressed`` marks a message to Orion: a question is not evidence, but messages between people may be.
    """

    role: Literal["user", "assistant"]
    text: str
    user: str = ""
    ts: str = ""
    addressed: bool = True
