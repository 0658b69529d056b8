"""Input of the agent: threads, questions, messages and their audiences. Independent of Slack's payloads.

An audience is ``public``, or a list of entries with commas between: the id of a channel (everyone in it), a person, a
user group or a workspace, or an e-mail address. An id after a workspace and a slash (``T1/C1``) counts only in that
workspace. Entries joined by ``+`` must all apply. A source may be used in a place if everyone who can see the place may
see the source: the place's own channel or workspace is listed, or, in a direct message, the one person, one of their
groups or channels, or their address. Anything not listed is denied. ``requests.toml`` has the words of special
requests.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, tzinfo
from pathlib import Path
from typing import Final, Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from verification.markup.lines import drawn_rows, is_drawn
from verification.markup.scanner import fences, segments
from verification.rules.references import citations
from verification.text.language import detect_language

# Earliest possible time of a Slack message, in seconds since 1970; a terminal numbers its questions differently.
_EARLIEST: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadKey:
    """One conversation: a thread, or direct messages without one (``thread_ts`` is then the channel's own id)."""

    team: str
    channel: str
    thread_ts: str

    def __str__(self) -> str:
        """``team:channel:thread_ts``, the form used in keys, logs and traces."""
        return f"{self.team}:{self.channel}:{self.thread_ts}"


FileTrouble = Literal[
    "", "form", "big", "slow", "unreadable", "elsewhere", "not_allowed", "away", "many", "unseen", "clip"
]
"""Reason why a file could not be read. ``file_…`` in ``agent/texts`` has the text for it."""


class FilePart(NamedTuple):
    """A passage of a file: the headings above it, and its first line."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedFile:
    """A file attached to a question: its text, or the ``trouble`` with reading it."""

    name: str
    text: str = ""
    parts: tuple[FilePart, ...] = ()
    url: str = ""  # the link for people
    trouble: FileTrouble = ""
    opening: bool = False  # it was attached to the first message of the thread, not to the question
    is_cut: bool = False  # only its beginning was read


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One message for Orion."""

    thread: ThreadKey
    user: str
    text: str
    ts: str
    files: tuple[AttachedFile, ...] = ()
    mentioned: frozenset[str] = frozenset()  # ids of the people it mentions, without Orion
    addressed: bool = True  # False: it does not mention Orion and may be meant for other people
    memberships: frozenset[str] = frozenset()  # in a direct message: groups, channels and address of the asker
    tz: str = ""  # time zone of the asker, as an IANA name
    names: Mapping[str, str] = field(default_factory=dict)  # of people in the conversation, by id
    instruction: str = ""  # an admin's request for answers in this channel
    documents: tuple[str, ...] = ()  # prefixes of the paths or sources used there
    language: str = ""  # set for the channel, else of the conversation, if known

    @property
    def reply_language(self) -> str | None:
        """Language of Orion's own messages: the channel's or the conversation's, else the question's, if known."""
        return self.language or detect_language(self.text)

    @property
    def zone(self) -> tzinfo:
        """The asker's time zone, or UTC if it is not known."""
        try:
            return ZoneInfo(self.tz) if self.tz else UTC
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return UTC

    def date_asked(self) -> date:
        """Return the date of the question in the asker's time zone, by its time stamp, or today if it has none."""
        seconds = self.ts.partition(".")[0]
        asked = int(seconds) if seconds.isdecimal() and len(seconds) <= len(str(_EARLIEST)) else 0
        at = datetime.fromtimestamp(asked, UTC) if asked >= _EARLIEST else datetime.now(UTC)
        return at.astimezone(self.zone).date()


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadMessage:
    """One line of the conversation so far. ``user`` is an id, empty for Orion."""

    role: Literal["user", "assistant"]
    text: str
    user: str = ""
    ts: str = ""
    addressed: bool = True  # addressed to Orion: only messages between people may be evidence


_WORDS: Final = tomllib.loads(Path(__file__).with_name("requests.toml").read_text(encoding="utf-8"))
_SIGNS: Final = ("ja", "zh")  # written without spaces between words


def _alternatives(kind: str, *, signs: bool = False) -> str:
    return "|".join(words for language, words in _WORDS[kind].items() if (language in _SIGNS) is signs)


_FILE: Final = re.compile(rf"\b(?:{_alternatives('file')})\b|{_alternatives('file', signs=True)}", re.IGNORECASE)
_MATERIAL: Final = re.compile(
    rf"^\W*(?:please\s+|bitte\s+)?(?:{_alternatives('work')})\b[^\n:\"“„«「]{{0,80}}[:\n\"“„«「](?P<rest>.+)",
    re.IGNORECASE | re.DOTALL,
)
_CJK: Final = re.compile(
    rf"(?:{_alternatives('work', signs=True)})[^:：\n「『“]{{0,40}}[:：\n「『“](?P<rest>.+)", re.DOTALL
)
_PLAY: Final = re.compile(
    rf"^\W*(?:please\s+|bitte\s+)?(?:{_alternatives('make')})\w*\s(?:[\w']+\s){{0,3}}?(?:{_alternatives('play')})\b",
    re.IGNORECASE,
)
_MIN_MATERIAL_WORDS: Final = 3  # words after the colon: `summarise: on-call` still asks for a document


def asks_for_file(question: Question) -> bool:
    """Return True if a question is about an attached file as a whole ("summarise this")."""
    return any(file.text for file in question.files) and _FILE.search(question.text) is not None


def is_from_own_words(question: str) -> bool:
    """Return True if the person gave the words (translate this) or asked for play (write a limerick)."""
    if _PLAY.search(question):
        return True
    if match := _MATERIAL.search(question):
        return len(match["rest"].split()) >= _MIN_MATERIAL_WORDS
    match = _CJK.search(question)
    return match is not None and len(match["rest"].strip()) >= 2 * _MIN_MATERIAL_WORDS


# the form of a citation in Slack's text of an answer
_LINKED: Final = re.compile(r" ?\[\d{1,9}\] \(https?://[^\s()]+\)")
_IN_CELL: Final = re.compile(r" ?\[\d{1,9}\]")
_BOLD: Final = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*(?![\w*])")
_BULLET: Final = re.compile(r"^([ \t\u2003]*)• ", re.MULTILINE)
_ENTITIES: Final = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


def as_markdown(text: str) -> str:
    """Return the mrkdwn of an answer as Markdown without citations: their numbers differ in each turn."""
    text = _LINKED.sub("", text)
    for citation in reversed(citations(text)):
        text = text[: citation.start].rstrip(" ") + text[citation.end :]
    for fence in reversed(fences(text)):
        if is_drawn(text[fence.body : fence.body_end]):
            rows = drawn_rows(_IN_CELL.sub("", text[fence.body : fence.body_end]).strip("\n"))
            head, *body = ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
            table = "\n".join([head, "|---" * len(rows[0]) + "|", *body])
            text = text[: fence.start] + table + text[fence.end :]
    return "".join(_to_markdown(text[segment.start : segment.end], segment.kind) for segment in segments(text))


def _to_markdown(part: str, kind: str) -> str:
    """Convert a segment: text, code or a token. Code stays as it is."""
    if kind not in {"text", "token"}:
        return part
    if kind == "token":
        target, _, label = part[1:-1].partition("|")
        part = f"[{label}]({target})" if label else part
    else:
        part = _BULLET.sub(r"\1- ", _BOLD.sub(r"**\1**", part)).replace("\u200b", "")
    for entity, character in _ENTITIES:
        part = part.replace(entity, character)
    return part


PUBLIC: Final = "public"
NOBODY: Final = "nobody"
_ONE: Final = r"(?:(?:[TE][A-Z0-9]{2,20}/)?[CDGSUWTE][A-Z0-9]{2,20}|[^\s,+@]{1,80}@[^\s,+@]{1,120})"
_ENTRY: Final = re.compile(rf"{_ONE}(?:\+{_ONE})*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewers:
    """The people who can read messages in a place."""

    team: str
    channel: str
    user: str = ""  # in a direct message
    memberships: frozenset[str] = frozenset()  # ids of their groups and channels, and their e-mail address


def viewers_of(question: Question) -> Viewers:
    """Return the people who will see the answer to a question."""
    place = Viewers(team=question.thread.team, channel=question.thread.channel)
    is_direct = place.channel.startswith("D")
    return replace(place, user=question.user, memberships=question.memberships) if is_direct else place


def may_see(audience: str, viewers: Viewers) -> bool:
    """Return whether all of these viewers belong to the audience."""
    names = {viewers.channel, viewers.user, *viewers.memberships} - {""}
    own = {PUBLIC, viewers.team, *names, *(f"{viewers.team}/{name}" for name in names)} - {""}
    return any(own.issuperset(entry.strip().split("+")) for entry in audience.split(","))


def needs_memberships(audience: str) -> bool:
    """Return whether a person may belong to an audience through a group, a channel or an address."""
    return re.search(r"(?:^|[,+/])[CGS][A-Z0-9]+(?=[,+]|$)|@", audience) is not None


def parse_audience(entries: object) -> str | None:
    """Return the audience that an admin wrote (``public`` or a list of entries), or None if it is neither."""
    if entries == PUBLIC:
        return PUBLIC
    if not isinstance(entries, list) or not entries:
        return None
    if not all(isinstance(entry, str) and _ENTRY.fullmatch(entry) for entry in entries):
        return None
    return ",".join(sorted({entry.lower() if "@" in entry and "+" not in entry else entry for entry in entries}))
