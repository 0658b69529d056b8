"""Reads conversations back from Slack: the messages of a thread, and Orion's posts for a question."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import structlog

from agent.json_data import mapping, objects, string
from agent.knowledge.slack_message import plain_text, read_message
from agent.thread.conversation import ThreadKey, ThreadMessage
from bot.slack.client import SlackWorkspace
from bot.slack.message import BotIdentity
from bot.slack.rate_limits import Urgency
from bot.slack.web_api import DeliveryFailed

ANSWER_EVENT: Final = "orion_answer"
WORKING_EVENT: Final = "orion_working"
NOTICE_EVENT: Final = "orion_notice"
_STEPS: Final = frozenset({"plan", "task_card"})  # the blocks into which Slack turns a stream's task chunks
_PAGE: Final = 200
_LONG_PAGE: Final = 999  # for the later pages of a long thread, because the latest messages come last
_MAX_PAGES: Final = 20
_SPOKEN: Final = frozenset({"", "file_share", "me_message", "thread_broadcast", "bot_message"})
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class StreamedMessage:
    """The streamed message for a question: not begun, begun with the ``ts`` that Slack confirmed, or unknown."""

    state: Literal["not_begun", "begun", "unknown"] = "not_begun"
    ts: str = ""

    @property
    def is_begun(self) -> bool:
        """Return whether Slack may have begun the stream."""
        return self.state != "not_begun"


NOT_STREAMED: Final = StreamedMessage()
STREAM_UNKNOWN: Final = StreamedMessage("unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """A message that Orion posted for a question: an answer's ``part`` (from 1), or a placeholder for the answer."""

    ts: str
    turn_id: str = ""
    part: int = 1
    placeholder: bool = False
    stream: bool = False  # a placeholder of a stream that was not ended
    blank: bool = False  # it shows nothing
    planned: bool = False  # it shows only the steps of a plan
    about: str = ""  # set for a notice, the same for all of its kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The part of a conversation that was read. A message that was not found is empty."""

    messages: tuple[ThreadMessage, ...]
    first: Mapping[str, Any]  # the thread's first message in Slack
    asked: Mapping[str, Any] = field(default_factory=dict)  # the message up to which it was read


def is_direct(place: ThreadKey) -> bool:
    """Return whether the place is direct messages without a thread."""
    return place.thread_ts == place.channel


def sort_key(ts: str) -> tuple[int, int]:
    """Return an exact sort key for Slack's timestamps: as floats they would lose their last digits."""
    seconds, _, fraction = ts.partition(".")
    return (int(seconds or 0), int(fraction or 0)) if (seconds + fraction).isdecimal() else (0, 0)


def age_s(ts: str) -> float:
    """Return the seconds since a message was posted; 0 if Slack's clock is ahead of ours."""
    whole, fraction = sort_key(ts)
    return max(0.0, time.time() - whole - fraction / 1e6)


@dataclass(frozen=True, slots=True)
class ThreadReader:
    """Reads conversations of one workspace. Raises ``DeliveryFailed`` if the place is gone or Slack is down."""

    workspace: SlackWorkspace

    async def read_conversation(
        self, place: ThreadKey, *, before: str = "", after: str = "", limit: int = 200
    ) -> Conversation:
        """Read the last ``limit`` messages between ``after`` and ``before`` (ts), oldest first."""
        own = await self.workspace.identity()
        ends = {"oldest": after, "latest": before, "inclusive": True}
        bounds = {name: end for name, end in ends.items() if end != ""}
        # A question can be answered without its thread, so posts take precedence under Slack's limits.
        read = {string(one, "ts"): one for one in await self._read(place, bounds, limit, "spare")}
        messages = [
            _as_message(message, own, direct=is_direct(place))
            for ts, message in read.items()
            # Slack puts the first message of the thread before every page.
            if not (before and sort_key(ts) >= sort_key(before))
            and not (after and sort_key(ts) <= sort_key(after))
            and string(message, "subtype") in _SPOKEN
        ]
        latest = tuple(message for message in messages if message.text)[-limit:]
        return Conversation(messages=latest, first=read.get(place.thread_ts, {}), asked=read.get(before, {}))

    async def find_message(self, place: ThreadKey, ts: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Find a message in Slack, and the one that opened its thread; empty if it is gone."""
        bounds = {"oldest": ts, "latest": ts, "inclusive": True, "include_all_metadata": True}
        read = {string(message, "ts"): message for message in await self._read(place, bounds, 1)}
        return read.get(ts, {}), read.get(place.thread_ts, {})

    async def permalink(self, channel: str, ts: str) -> str:
        """Return the link to a message."""
        reply = await self.workspace.calls.read("chat.getPermalink", channel=channel, message_ts=ts)
        return string(reply, "permalink")

    async def read_since(
        self, place: ThreadKey, oldest: str, urgency: Urgency = "asked", *, enough: int = _PAGE * 2
    ) -> list[Mapping[str, Any]]:
        """Read the messages from ``oldest`` (a ts) on, oldest first, and a thread's first message."""
        bounds = {"oldest": oldest, "inclusive": True, "include_all_metadata": True}  # own posts have metadata
        return await self._read(place, bounds, enough, urgency)  # only the latest pages of direct messages

    async def find_posts(
        self, place: ThreadKey, question_ts: str, streamed: StreamedMessage = NOT_STREAMED
    ) -> tuple[Posted, ...]:
        """Find Orion's posts for this question, in order of its parts, then of time.

        If ``streamed`` was begun with an unknown ts, any of Orion's messages that still grows or is empty counts.
        """
        own = await self.workspace.identity()
        try:
            # This read keeps its place in the queue, or other reads would delay decided answers.
            messages = await self.read_since(place, question_ts, "must", enough=_PAGE * _MAX_PAGES)
        except DeliveryFailed as failure:
            if failure.reason != "missing_scope":
                raise
            log.warning("delivery_cannot_look", reason=failure.reason)  # an older manifest must not stop answers
            return ()
        return tuple(one for one in _find_posts(messages, own, question_ts, streamed) if not one.about)

    async def find_all_posts(self, place: ThreadKey, question_ts: str) -> tuple[list[Posted], str, bool]:
        """Find Orion's posts and notices for this question, and streams that were not ended, of it or a later question.

        Also return the ts of the question's edit (empty if it was not edited), and whether Orion has the last word.
        """
        own = await self.workspace.identity()
        messages = await self.read_since(place, question_ts, "spare", enough=_PAGE * _MAX_PAGES)
        asked = next((one for one in messages if string(one, "ts") == question_ts), {})
        spoken = [one for one in messages if string(one, "subtype") in _SPOKEN]
        posts = _find_posts(messages, own, question_ts, STREAM_UNKNOWN)
        return posts, string(asked, "edited", "ts"), bool(spoken) and is_own(spoken[-1], own)

    async def has_notice(self, place: ThreadKey, about: str) -> bool:
        """Return whether a notice ``about`` this was posted. It begins with the ts of the message it was posted for."""
        own, since = await self.workspace.identity(), about.partition(":")[0]
        read = await self.read_since(place, since, enough=_PAGE * _MAX_PAGES)
        return any(posted.about == about for posted in _find_posts(read, own, since, NOT_STREAMED))

    async def _read(
        self, place: ThreadKey, bounds: Mapping[str, Any], enough: int, urgency: Urgency = "asked"
    ) -> list[Mapping[str, Any]]:
        """Read all pages of a thread, or the latest of direct messages. Return the messages oldest first."""
        direct, cursor = is_direct(place), ""
        method = "conversations.history" if direct else "conversations.replies"
        where = {"channel": place.channel, **({} if direct else {"ts": place.thread_ts}), **bounds}
        found: dict[str, Mapping[str, Any]] = {}  # Slack repeats a thread's first message on its pages
        for _ in range(_MAX_PAGES):
            page = {"cursor": cursor} if cursor else {}
            size = _PAGE if direct or not cursor else _LONG_PAGE
            reply = await self.workspace.calls.read(method, urgency=urgency, **where, **page, limit=size)
            for message in objects(reply, "messages"):
                found.setdefault(string(message, "ts"), message)
            cursor = string(reply, "response_metadata", "next_cursor")
            if not cursor or (direct and len(found) >= enough):
                break
        else:
            log.warning("thread_too_long_to_read_whole", pages=_MAX_PAGES)
        return [*reversed(found.values())] if direct else [*found.values()]


def is_own(message: Mapping[str, Any], own: BotIdentity) -> bool:
    """Return whether Orion itself wrote this message."""
    return string(message, "user") == own.user or bool(own.bot and string(message, "bot_id") == own.bot)


def _as_message(message: Mapping[str, Any], own: BotIdentity, *, direct: bool) -> ThreadMessage:
    raw, ts = string(message, "text"), string(message, "ts")
    if is_own(message, own):
        text = plain_text(raw, own.user) if raw else read_message(message, own.user).text
        return ThreadMessage(role="assistant", text=text, ts=ts)
    content = read_message(message, own.user)
    # Messages between people may be evidence. A question to Orion is not.
    addressed = direct or own.user in content.mentioned
    who = string(message, "user") or string(message, "bot_id")
    return ThreadMessage(role="user", text=content.text, user=who, ts=ts, addressed=addressed)


def _find_posts(
    messages: Iterable[Mapping[str, Any]], own: BotIdentity, question_ts: str, streamed: StreamedMessage
) -> list[Posted]:
    posts = (_as_post(message, question_ts, streamed) for message in messages if is_own(message, own))
    return sorted(filter(None, posts), key=lambda posted: (posted.part, sort_key(posted.ts)))


def _as_post(message: Mapping[str, Any], question_ts: str, streamed: StreamedMessage) -> Posted | None:
    ts, metadata = string(message, "ts"), mapping(message, "metadata")
    kind, payload = string(metadata, "event_type"), mapping(metadata, "event_payload")
    if not metadata:  # Slack lets a stream's metadata be set only at its end
        blank = not any(message.get(part) for part in ("text", "blocks", "attachments", "files"))
        grows = ts == streamed.ts or blank or string(message, "streaming_state") == "in_progress"
        kinds = {string(block, "type") for block in objects(message, "blocks")}
        planned = bool(kinds) and kinds <= _STEPS
        post = Posted(ts=ts, placeholder=True, stream=True, blank=blank, planned=planned)
        return post if grows and streamed.is_begun else None
    if kind == NOTICE_EVENT:
        return Posted(ts=ts, about=string(payload, "about"))
    if kind not in {ANSWER_EVENT, WORKING_EVENT} or string(payload, "question_ts") != question_ts:
        return None
    if kind == WORKING_EVENT:
        return Posted(ts=ts, placeholder=True)
    part = payload.get("part", 1)
    return Posted(ts=ts, turn_id=string(payload, "turn_id"), part=part if isinstance(part, int) else 1)
