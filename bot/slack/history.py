"""Reads a conversation back from Slack: the messages of a thread, and what Orion posted for a question."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from agent.thread.conversation import Message, ThreadKey
from bot.slack.message import Own
from bot.slack.payload import mapping, objects, string
from bot.slack.text import app_text, plain_text, whole_text
from bot.slack.web_api import DeliveryFailed, SlackCalls, Urgency

ANSWER_EVENT: Final = "orion_answer"
WORKING_EVENT: Final = "orion_working"
NOTICE_EVENT: Final = "orion_notice"
_STEPS: Final = frozenset({"plan", "task_card"})
HAND_OFF_EVENT: Final = "orion_hand_off"
_PAGE: Final = 200
_MOST_PAGES: Final = 20
_SPOKEN: Final = frozenset({"", "file_share", "thread_broadcast", "bot_message"})
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """A message of Orion's for a question: an answer's ``part`` (from 1), or a placeholder without an answer yet.

    A placeholder may be a ``stream`` that nobody ended; ``blank`` tells that it shows nothing, ``planned`` that it
    shows the steps of a plan and nothing else. What has an ``about`` is no answer but a notice, the same for each of
    its kind.
    """

    ts: str
    turn_id: str = ""
    part: int = 1
    placeholder: bool = False
    stream: bool = False
    blank: bool = False
    planned: bool = False
    about: str = ""

    @property
    def wordless(self) -> bool:
        """Whether no word of an answer can be seen."""
        return self.blank or self.planned


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What was read of a conversation.

    ``first`` is a thread's first message as Slack has it, ``asked`` the one it was read up to; empty if not seen.
    """

    messages: tuple[Message, ...]
    first: Mapping[str, Any]
    asked: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Where Orion stands with a question: what it posted, in order of parts, then of time, notices included.

    ``edited_ts`` is the question's own, empty where it was not edited; ``last_word`` tells whether Orion's message ends
    the conversation.
    """

    posted: tuple[Posted, ...]
    edited_ts: str
    last_word: bool


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


class ThreadReader:
    """Reads one workspace's conversations; ``identity`` tells who Orion is there."""

    def __init__(self, calls: SlackCalls, identity: Callable[[], Awaitable[Own]]) -> None:
        self._calls = calls
        self._identity = identity

    async def messages(
        self, place: ThreadKey, *, before: str = "", after: str = "", limit: int = 200
    ) -> tuple[Message, ...]:
        """The last ``limit`` messages of the conversation, oldest first, those between ``after`` and ``before`` (ts).

        Raises:
            DeliveryFailed: the thread or channel is gone, or Slack is away for too long.
        """
        return (await self.conversation(place, before=before, after=after, limit=limit)).messages

    async def conversation(
        self, place: ThreadKey, *, before: str = "", after: str = "", limit: int = 200
    ) -> Conversation:
        """The same messages, and the one that opened the thread, which Slack puts before every page.

        Raises:
            DeliveryFailed: the thread or channel is gone, or Slack is away for too long.
        """
        own, first, asked = await self._identity(), dict[str, Any](), dict[str, Any]()
        ends = {"oldest": after, "latest": before, "inclusive": True}
        bounds = {name: end for name, end in ends.items() if end != ""}
        kept: deque[Message] = deque(maxlen=limit)
        async for message in self._each(place, bounds, limit, "spare"):
            if string(message, "ts") == place.thread_ts:
                first = dict(message)
            if string(message, "ts") == before:
                asked = dict(message)
            ts = sort_key(string(message, "ts"))
            if (before and ts >= sort_key(before)) or (after and ts <= sort_key(after)):
                continue
            if string(message, "subtype") in _SPOKEN and (said := _said(message, own, direct=is_direct(place))).text:
                kept.append(said)
        return Conversation(messages=tuple(kept), first=first, asked=asked)

    async def message(self, place: ThreadKey, ts: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """One message of the conversation as Slack has it, and the one that opened its thread; empty when it is gone.

        Raises:
            DeliveryFailed: the thread or channel is gone, or Slack is away for too long.
        """
        bounds = {"oldest": ts, "latest": ts, "inclusive": True}
        found = {string(message, "ts"): message async for message in self._each(place, bounds, 1)}
        return found.get(ts, {}), found.get(place.thread_ts, {})

    async def own(self) -> Own:
        """Who Orion is in this workspace. Raises ``DeliveryFailed``."""
        return await self._identity()

    async def since(self, place: ThreadKey, oldest: str) -> list[Mapping[str, Any]]:
        """The conversation's messages from ``oldest`` (a ts) on as Slack has them, oldest first, with metadata.

        Of a direct chat the latest page or two, of a thread its first message as well.

        Raises:
            DeliveryFailed: the thread or channel is gone, or Slack is away for too long.
        """
        bounds = {"oldest": oldest, "inclusive": True, "include_all_metadata": True}
        return [message async for message in self._each(place, bounds, _PAGE * 2)]

    async def posted(self, place: ThreadKey, question_ts: str, streamed: str | None = None) -> tuple[Posted, ...]:
        """What Orion already posted for this question, in order of its parts, then of time.

        ``streamed`` is the ts of a stream that was begun for it; empty where a stream may have been begun unknown: then
        whatever message of Orion's still grows, or stayed empty, is taken for it.

        Raises:
            DeliveryFailed: the thread or channel is gone, or Slack is away for too long.
        """
        own = await self._identity()
        bounds = {"oldest": question_ts, "inclusive": True, "include_all_metadata": True}
        found: list[Posted] = []
        try:
            async for message in self._each(place, bounds, _PAGE * _MOST_PAGES, "must"):
                found += _as_posted(message, own, question_ts)
                found += _as_stream(message, own, streamed)
        except DeliveryFailed as failure:
            if failure.reason != "missing_scope":
                raise
            _log.warning("delivery_cannot_look", reason=failure.reason)
        return tuple(sorted(found, key=_in_order))

    async def seen(self, place: ThreadKey, question_ts: str) -> Seen:
        """All that Orion posted since this question and for it, streams that nobody ended too.

        Raises:
            DeliveryFailed: the thread or channel is gone, or Slack is away for too long.
        """
        own = await self._identity()
        bounds = {"oldest": question_ts, "inclusive": True, "include_all_metadata": True}
        found: list[Posted] = []
        edited_ts, last_word = "", False
        async for message in self._each(place, bounds, _PAGE * _MOST_PAGES, "spare"):
            found += (*_as_posted(message, own, question_ts), *_as_stream(message, own, ""), *_as_notice(message, own))
            if string(message, "ts") == question_ts:
                edited_ts = string(message, "edited", "ts")
            if string(message, "subtype") in _SPOKEN:
                last_word = is_own(message, own)
        return Seen(posted=tuple(sorted(found, key=_in_order)), edited_ts=edited_ts, last_word=last_word)

    async def noted(self, place: ThreadKey, about: str) -> bool:
        """Whether a notice about this stands here; ``about`` begins with the ts of the message it was posted for.

        Raises:
            DeliveryFailed: the thread or channel is gone, or Slack is away for too long.
        """
        own = await self._identity()
        return any(
            is_own(message, own)
            and string(message, "metadata", "event_type") == NOTICE_EVENT
            and string(message, "metadata", "event_payload", "about") == about
            for message in await self.since(place, about.partition(":")[0])
        )

    def _each(
        self, place: ThreadKey, bounds: Mapping[str, Any], enough: int, urgency: Urgency = "asked"
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Oldest first. A thread is read whole, page by page; a direct chat comes newest first, as far as needed."""
        if is_direct(place):
            return self._in_chat({"channel": place.channel, **bounds}, enough, urgency)
        return self._in_thread({"channel": place.channel, "ts": place.thread_ts, **bounds}, urgency)

    async def _in_thread(self, params: Mapping[str, Any], urgency: Urgency) -> AsyncIterator[Mapping[str, Any]]:
        seen: set[str] = set()  # Slack repeats a thread's first message on its pages
        async for page in self._pages("conversations.replies", params, urgency):
            for message in page:
                if (ts := string(message, "ts")) not in seen:
                    seen.add(ts)
                    yield message

    async def _in_chat(
        self, params: Mapping[str, Any], enough: int, urgency: Urgency
    ) -> AsyncIterator[Mapping[str, Any]]:
        newest_first: list[Mapping[str, Any]] = []
        async with aclosing(self._pages("conversations.history", params, urgency)) as pages:
            async for page in pages:
                newest_first += page
                if len(newest_first) >= enough:
                    break
        for message in reversed(newest_first):
            yield message

    async def _pages(
        self, method: str, params: Mapping[str, Any], urgency: Urgency
    ) -> AsyncGenerator[list[Mapping[str, Any]]]:
        cursor: dict[str, str] = {}
        for _ in range(_MOST_PAGES):
            reply = await self._calls.read(method, urgency=urgency, **params, **cursor, limit=_PAGE)
            yield list(objects(reply, "messages"))
            following = string(reply, "response_metadata", "next_cursor")
            if not following:
                return
            cursor = {"cursor": following}
        _log.warning("thread_too_long_to_read_whole", pages=_MOST_PAGES)


def is_own(message: Mapping[str, Any], own: Own) -> bool:
    """Whether Orion itself wrote this message."""
    return string(message, "user") == own.user or bool(own.bot and string(message, "bot_id") == own.bot)


def _said(message: Mapping[str, Any], own: Own, *, direct: bool) -> Message:
    raw, ts = string(message, "text"), string(message, "ts")
    if is_own(message, own):
        return Message(role="assistant", text=plain_text(raw, own.user), ts=ts)
    text = plain_text(app_text(message), own.user) if string(message, "bot_id") else whole_text(message, own.user)
    # What people told each other may be evidence; what they asked Orion is not.
    addressed = direct or f"<@{own.user}" in raw
    who = string(message, "user") or string(message, "bot_id")
    return Message(role="user", text=text, user=who, ts=ts, addressed=addressed)


def _as_posted(message: Mapping[str, Any], own: Own, question_ts: str) -> tuple[Posted, ...]:
    metadata = mapping(message, "metadata")
    payload = mapping(metadata, "event_payload")
    if not is_own(message, own) or string(payload, "question_ts") != question_ts:
        return ()
    ts = string(message, "ts")
    if string(metadata, "event_type") == WORKING_EVENT:
        return (Posted(ts=ts, placeholder=True),)
    if string(metadata, "event_type") != ANSWER_EVENT:
        return ()
    part = payload.get("part", 1)
    return (Posted(ts=ts, turn_id=string(payload, "turn_id"), part=part if isinstance(part, int) else 1),)


def _in_order(posted: Posted) -> tuple[int, tuple[int, int]]:
    return posted.part, sort_key(posted.ts)


def _as_notice(message: Mapping[str, Any], own: Own) -> tuple[Posted, ...]:
    """What is said once without being an answer: a notice, or people who were asked."""
    kind, payload = string(message, "metadata", "event_type"), mapping(message, "metadata", "event_payload")
    if not is_own(message, own) or kind not in {NOTICE_EVENT, HAND_OFF_EVENT}:
        return ()
    about = string(payload, "about") or string(payload, "turn_id")
    return (Posted(ts=string(message, "ts"), about=f"{kind}:{about}"),)


def _as_stream(message: Mapping[str, Any], own: Own, streamed: str | None) -> tuple[Posted, ...]:
    """A stream that was not ended: Slack lets metadata be set only at its end."""
    if streamed is None or not is_own(message, own) or mapping(message, "metadata"):
        return ()
    ts, blank = string(message, "ts"), not any(message.get(part) for part in ("text", "blocks", "attachments", "files"))
    if ts == streamed or blank or string(message, "streaming_state") == "in_progress":
        kinds = {string(block, "type") for block in objects(message, "blocks")}
        planned = bool(kinds) and kinds <= _STEPS
        return (Posted(ts=ts, placeholder=True, stream=True, blank=blank, planned=planned),)
    return ()
