"""Reads a conversation back from Slack: the messages of a thread, and what Orion posted for a question."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from agent.thread.conversation import Message, ThreadKey
from bot.slack.message import BotIdentity
from bot.slack.payload import mapping, objects, string
from bot.slack.text import app_text, plain_text, whole_text
from bot.slack.web_api import DeliveryFailed, SlackCalls, Urgency

ANSWER_EVENT: Final = "orion_answer"
WORKING_EVENT: Final = "orion_working"
NOTICE_EVENT: Final = "orion_notice"
_STEPS: Final = frozenset({"plan", "task_card"})  # the blocks that Slack makes of a stream's task chunks
_PAGE: Final = 200
_MAX_PAGES: Final = 20
_SPOKEN: Final = frozenset({"", "file_share", "thread_broadcast", "bot_message"})
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """A message of Orion's for a question: an answer's ``part`` (from 1), or a placeholder without an answer yet."""

    ts: str
    turn_id: str = ""
    part: int = 1
    placeholder: bool = False
    stream: bool = False  # a placeholder that nobody ended
    blank: bool = False  # it shows nothing
    planned: bool = False  # it shows the steps of a plan and nothing else
    about: str = ""  # where there is one, no answer but a notice, the same for each of its kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What was read of a conversation; a message that was not seen is empty."""

    messages: tuple[Message, ...]
    first: Mapping[str, Any]  # the thread's first message as Slack has it
    asked: Mapping[str, Any] = field(default_factory=dict)  # the one it was read up to


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionStatus:
    """Where Orion stands with a question."""

    posted: tuple[Posted, ...]  # in order of parts, then of time, notices included
    edited_ts: str  # the question's own; empty where it was not edited
    last_word: bool  # Orion's message ends the conversation


def is_direct(place: ThreadKey) -> bool:
    """Whether the place is a direct chat without a thread."""
    return place.thread_ts == place.channel


def sort_key(ts: str) -> tuple[int, int]:
    """Orders Slack's timestamps exactly: as floats they would lose their last digits."""
    seconds, _, fraction = ts.partition(".")
    return (int(seconds or 0), int(fraction or 0)) if (seconds + fraction).isdecimal() else (0, 0)


def age_s(ts: str) -> float:
    """Seconds since a message of Slack's was posted; 0 where its clock is ahead of ours."""
    whole, fraction = sort_key(ts)
    return max(0.0, time.time() - whole - fraction / 1e6)


@dataclass(frozen=True, slots=True)
class ThreadReader:
    """Reads one workspace's conversations. Raises ``DeliveryFailed``: the place is gone, or Slack away for too long."""

    calls: SlackCalls
    own: Callable[[], Awaitable[BotIdentity]]  # who Orion is there

    async def read_conversation(
        self, place: ThreadKey, *, before: str = "", after: str = "", limit: int = 200
    ) -> Conversation:
        """The last ``limit`` messages of the conversation between ``after`` and ``before`` (ts), oldest first."""
        own = await self.own()
        ends = {"oldest": after, "latest": before, "inclusive": True}
        bounds = {name: end for name, end in ends.items() if end != ""}
        # A question can be answered without its thread: readings leave room for posts under Slack's limits.
        read = {string(one, "ts"): one for one in await self._read(place, bounds, limit, "spare")}
        said = [
            _as_message(message, own, direct=is_direct(place))
            for ts, message in read.items()
            # Slack puts the message that opened the thread before every page.
            if not (before and sort_key(ts) >= sort_key(before))
            and not (after and sort_key(ts) <= sort_key(after))
            and string(message, "subtype") in _SPOKEN
        ]
        kept = tuple(message for message in said if message.text)[-limit:]
        return Conversation(messages=kept, first=read.get(place.thread_ts, {}), asked=read.get(before, {}))

    async def find_message(self, place: ThreadKey, ts: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """One message as Slack has it, and the one that opened its thread; empty when it is gone."""
        bounds = {"oldest": ts, "latest": ts, "inclusive": True, "include_all_metadata": True}
        read = await self._read(place, bounds, 1)
        found = {string(message, "ts"): message for message in read}
        return found.get(ts, {}), found.get(place.thread_ts, {})

    async def read_since(
        self, place: ThreadKey, oldest: str, urgency: Urgency = "asked", *, enough: int = _PAGE * 2
    ) -> list[Mapping[str, Any]]:
        """The messages from ``oldest`` (a ts) on as Slack has them, oldest first; of a thread its first one as well."""
        # By its metadata Orion knows its own posts.
        bounds = {"oldest": oldest, "inclusive": True, "include_all_metadata": True}
        return await self._read(place, bounds, enough, urgency)  # of a direct chat the latest page or two

    async def find_posts(self, place: ThreadKey, question_ts: str, streamed: str | None = None) -> tuple[Posted, ...]:
        """What Orion already posted for this question, in order of its parts, then of time.

        ``streamed`` is the ts of a stream that was begun for it; empty where a stream may have been begun unknown: then
        whatever message of Orion's still grows, or stayed empty, is taken for it.
        """
        own = await self.own()
        try:
            # Once a storm of readings kept decided answers waiting: this look keeps its place.
            messages = await self.read_since(place, question_ts, "must", enough=_PAGE * _MAX_PAGES)
        except DeliveryFailed as failure:
            if failure.reason != "missing_scope":
                raise
            _log.warning("delivery_cannot_look", reason=failure.reason)  # an older manifest must not silence Orion
            return ()
        return tuple(one for one in _find_posts(messages, own, question_ts, streamed) if not one.about)

    async def find_status(self, place: ThreadKey, question_ts: str) -> QuestionStatus:
        """All that Orion posted since this question and for it, streams that nobody ended too."""
        own = await self.own()
        messages = await self.read_since(place, question_ts, "spare", enough=_PAGE * _MAX_PAGES)
        asked = next((one for one in messages if string(one, "ts") == question_ts), {})
        spoken = [one for one in messages if string(one, "subtype") in _SPOKEN]
        return QuestionStatus(
            posted=tuple(_find_posts(messages, own, question_ts, "")),
            edited_ts=string(asked, "edited", "ts"),
            last_word=bool(spoken) and is_own(spoken[-1], own),
        )

    async def has_notice(self, place: ThreadKey, about: str) -> bool:
        """Whether a notice about this stands here; ``about`` begins with the ts of the message it was posted for."""
        own, since = await self.own(), about.partition(":")[0]
        found = _find_posts(await self.read_since(place, since), own, since, None)
        return any(posted.about == about for posted in found)

    async def _read(
        self, place: ThreadKey, bounds: Mapping[str, Any], enough: int, urgency: Urgency = "asked"
    ) -> list[Mapping[str, Any]]:
        """Oldest first. A thread is read whole, page by page; a direct chat comes newest first, as far as needed."""
        direct, cursor = is_direct(place), ""
        method = "conversations.history" if direct else "conversations.replies"
        where = {"channel": place.channel, **({} if direct else {"ts": place.thread_ts}), **bounds}
        found: dict[str, Mapping[str, Any]] = {}  # Slack repeats a thread's first message on its pages
        for _ in range(_MAX_PAGES):
            more = {"cursor": cursor} if cursor else {}
            reply = await self.calls.read(method, urgency=urgency, **where, **more, limit=_PAGE)
            for message in objects(reply, "messages"):
                found.setdefault(string(message, "ts"), message)
            cursor = string(reply, "response_metadata", "next_cursor")
            if not cursor or (direct and len(found) >= enough):
                break
        else:
            _log.warning("thread_too_long_to_read_whole", pages=_MAX_PAGES)
        return [*reversed(found.values())] if direct else [*found.values()]


def is_own(message: Mapping[str, Any], own: BotIdentity) -> bool:
    """Whether Orion itself wrote this message."""
    return string(message, "user") == own.user or bool(own.bot and string(message, "bot_id") == own.bot)


def _as_message(message: Mapping[str, Any], own: BotIdentity, *, direct: bool) -> Message:
    raw, ts = string(message, "text"), string(message, "ts")
    if is_own(message, own):
        return Message(role="assistant", text=plain_text(raw, own.user), ts=ts)
    text = plain_text(app_text(message), own.user) if string(message, "bot_id") else whole_text(message, own.user)
    # What people told each other may be evidence; what they asked Orion is not.
    addressed = direct or f"<@{own.user}" in raw
    who = string(message, "user") or string(message, "bot_id")
    return Message(role="user", text=text, user=who, ts=ts, addressed=addressed)


def _find_posts(
    messages: Iterable[Mapping[str, Any]], own: BotIdentity, question_ts: str, streamed: str | None
) -> list[Posted]:
    """What Orion posted for a question among these messages, and its notices, in order of parts, then of time."""
    found = (_as_post(message, question_ts, streamed) for message in messages if is_own(message, own))
    return sorted(filter(None, found), key=lambda posted: (posted.part, sort_key(posted.ts)))


def _as_post(message: Mapping[str, Any], question_ts: str, streamed: str | None) -> Posted | None:
    ts, metadata = string(message, "ts"), mapping(message, "metadata")
    kind, payload = string(metadata, "event_type"), mapping(metadata, "event_payload")
    if not metadata:  # Slack lets a stream's metadata be set only at its end
        return None if streamed is None else _as_open_stream(message, streamed)
    if kind == NOTICE_EVENT:
        return Posted(ts=ts, about=string(payload, "about"))
    if kind not in {ANSWER_EVENT, WORKING_EVENT} or string(payload, "question_ts") != question_ts:
        return None
    if kind == WORKING_EVENT:
        return Posted(ts=ts, placeholder=True)
    part = payload.get("part", 1)
    return Posted(ts=ts, turn_id=string(payload, "turn_id"), part=part if isinstance(part, int) else 1)


def _as_open_stream(message: Mapping[str, Any], streamed: str) -> Posted | None:
    ts, blank = string(message, "ts"), not any(message.get(part) for part in ("text", "blocks", "attachments", "files"))
    if ts != streamed and not blank and string(message, "streaming_state") != "in_progress":
        return None
    kinds = {string(block, "type") for block in objects(message, "blocks")}
    planned = bool(kinds) and kinds <= _STEPS
    return Posted(ts=ts, placeholder=True, stream=True, blank=blank, planned=planned)
