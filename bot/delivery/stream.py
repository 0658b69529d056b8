"""Slack's streams: a message to which verified blocks are added while the model writes.

A stream's ts is stored before its first word. A piece that may have arrived is never sent again: ``delivery`` replaces
the message with the whole answer.
"""

import asyncio
import re
import time
import unicodedata
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from redis.exceptions import RedisError

from agent.json_data import string
from agent.tasks import background_tasks
from agent.thread.conversation import ThreadKey
from bot.queue.claim import Claimed, LeaseLost
from bot.queue.queue import Mailbox
from bot.slack.history import NOT_STREAMED, STREAM_UNKNOWN, StreamedMessage
from bot.slack.web_api import DeliveryFailed, LeaseCheck, SlackCalls
from bot.stores.stores import mark_of
from verification.markup.scanner import ZERO_WIDTH, Edit, apply_edits, segments

_MAX_LENGTH: Final = 11_000
"""Characters of one streamed message. A longer answer is posted as several messages."""
_NO_TASKS: Final = frozenset({"invalid_arguments", "invalid_chunks", "no_text", "streaming_mode_mismatch"})
"""Errors of a server that has streams but does not accept tasks in them."""
_START: Final = "chat.startStream"
_WORKSPACE, _TASKS = "", "tasks"  # keys for workspaces, next to channels that refused
_OPEN: Final = frozenset({"pending", "in_progress"})
log = structlog.get_logger()

_EMPHASIS: Final = re.compile(r"(?<![*~\\])(\*\*|\*|~~)(?=[^\s*~])([^*~\n]+)(?<=[^\s\\])\1(?![*~])")

Task = Mapping[str, str]
"""A ``task_update`` chunk: ``id``, ``title``, ``status`` (``pending``, ``in_progress``, ``complete``, ``error``)."""


def join_emphasis(markdown: str) -> str:
    """Put a zero-width space inside marks between a letter and punctuation, where CommonMark sees no emphasis."""
    parts = [(kind == "text", markdown[start:end]) for kind, start, end in segments(markdown)]
    masked = "".join(part if is_text else re.sub(r"[^\n]", "`", part) for is_text, part in parts)
    edits: list[Edit] = []
    for match in _EMPHASIS.finditer(masked):
        (start, end), before = match.span(2), masked[match.start() - 1 : match.start()]
        after = masked[match.end() : match.end() + 1]
        for place, outside, inside in ((start, before, masked[start]), (end, after, masked[end - 1])):
            if _is_letter(outside) and not _is_letter(inside):
                edits.append(Edit(place, place, ZERO_WIDTH))
    return apply_edits(markdown, edits)


def _is_letter(char: str) -> bool:
    """Return True if the character is neither a blank nor punctuation nor a symbol (CommonMark, 6.2)."""
    return bool(char.strip()) and unicodedata.category(char)[0] not in "PS"


@dataclass(slots=True, eq=False)
class Streams:
    """This process's knowledge of a workspace: whether it can stream, and how fast.

    In seconds: ``each_s`` between two pieces (Slack allows 100 a minute per workspace), ``missing_s`` until a workspace
    or channel that refused is tried again, ``limited_s`` after a rate limit, and ``call_s`` for a start or a piece.
    """

    calls: SlackCalls
    each_s: float = 0.65
    missing_s: float = 3_600.0
    limited_s: float = 20.0
    call_s: float = 5.0
    _free_at: float = field(default=0.0, init=False)
    _not_before: dict[str, float] = field(default_factory=dict, init=False)

    def may_be_tried(self, place: ThreadKey) -> bool:
        """Return whether an answer can be streamed here: neither workspace nor channel refused recently."""
        return self.calls.is_supported(_START) and self.accepts(_WORKSPACE) and self.accepts(place.channel)

    def accepts(self, what: str) -> bool:
        """Return True unless Slack recently refused this kind of stream, or streams in this channel."""
        return self._not_before.get(what, 0.0) <= time.monotonic()

    def remember_refusal(self, place: ThreadKey, failure: DeliveryFailed) -> None:
        """Remember that the channel refused a stream, or a rate limit. ``calls`` remembers a missing method."""
        if failure.is_limited:
            self._not_before[_WORKSPACE] = time.monotonic() + self.limited_s
        elif self.calls.is_supported(_START):
            self._not_before[place.channel] = time.monotonic() + self.missing_s

    def remember_failed_piece(self, failure: DeliveryFailed, *, tasks: bool) -> None:
        """Delay the next piece after a rate limit, or remember that this workspace accepts no tasks."""
        if failure.is_limited:
            self._free_at = max(self._free_at, time.monotonic() + self.limited_s)
        elif tasks and failure.reason in _NO_TASKS:
            self._not_before[_TASKS] = time.monotonic() + self.missing_s

    async def wait_turn(self) -> None:
        """Wait until the workspace accepts the next piece. A finished answer does not."""
        now = time.monotonic()
        at = max(now, self._free_at)
        self._free_at = at + self.each_s
        await asyncio.sleep(at - now)


@dataclass(slots=True, kw_only=True, eq=False)
class AnswerStream:
    """One answer's stream, begun with a plan or with its first block (an ``agent.turn.live.Stage``).

    ``user`` asked; in a Slack Connect channel their team may be ``user_team``. Marks of the ``claimed`` message in
    ``mailbox``, set before the start and right after it, let another worker find the stream. ``begun`` is set at the
    start. ``streamed`` is the message's current state.
    """

    streams: Streams
    place: ThreadKey
    user: str
    user_team: str = ""
    lease_check: LeaseCheck
    mailbox: Mailbox
    claimed: Claimed
    turn_id: str
    begun: asyncio.Event
    streamed: StreamedMessage = NOT_STREAMED
    _broken: str = ""
    _text: str = ""
    _length: int = 0
    _waiting: str = ""
    _tasks: dict[str, Task] = field(default_factory=dict)
    _unsent: dict[str, Task] = field(default_factory=dict)
    _stopped: bool = False
    _beginning: asyncio.Lock = field(default_factory=asyncio.Lock)
    _grew: asyncio.Event = field(default_factory=asyncio.Event)
    _sending: asyncio.Lock = field(default_factory=asyncio.Lock)

    def show_plan(self, tasks: Iterable[Task]) -> None:
        """Queue the plan's current steps for the next update. Return at once."""
        if not self._length and self.streams.accepts(_TASKS):
            self._queue_tasks(tasks)

    async def show(self, markdown: str, text: str) -> bool:
        """Queue one more block. Return False if no stream could be begun."""
        if not await self._ensure_started():
            return False
        piece, self._text = join_emphasis(markdown), text
        if self._length:
            piece = f"\n\n{piece}"
        else:
            unfinished = [task for task in self._tasks.values() if task["status"] in _OPEN]
            self._queue_tasks({**task, "status": "complete"} for task in unfinished)
        self._length += len(piece)
        if self._length > _MAX_LENGTH:
            self._break("too_long")
        else:
            self._waiting += piece
            self._grew.set()
        return True

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[None]:
        """Send changes during the block."""
        async with background_tasks() as group:
            keeper = group.create_task(self.send_changes(), name="stream")
            try:
                yield
            finally:
                keeper.cancel()

    async def send_changes(self) -> None:
        """Send additions at Slack's pace until cancelled or until the lease is lost."""
        while True:
            await self._grew.wait()
            await self.streams.wait_turn()
            self._grew.clear()
            try:
                if await self._ensure_started():
                    await self._send()
            except LeaseLost:
                return
            except RedisError as error:  # the turn notices Redis itself, or ends before it matters
                log.warning("stream_not_kept", error_type=type(error).__name__)
                return

    async def stop_sending(self) -> None:
        """Send nothing more, and wait for running calls. Afterwards the answer may close or replace the stream."""
        self._stopped = True
        async with self._beginning, self._sending:
            pass

    async def close(self, text: str, blocks: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any]) -> bool:
        """End the stream as the answer with this ``text``. Return False if it may not show that text."""
        async with self._sending:
            if not self.streamed.ts or self._broken or text.strip() != self._text.strip():
                return False
            rest = self._content(self._waiting, self._unsent)
            self._waiting, self._unsent = "", {}
            self._broken = "closed"  # nothing more may be added, even if the call fails
            end = {"blocks": list(blocks), "metadata": metadata}
            body = {"channel": self.place.channel, "ts": self.streamed.ts, **rest, **end}
            try:
                await self.streams.calls.write("chat.stopStream", body, lease_check=self.lease_check)
            except DeliveryFailed as failure:
                if not failure.permanent:
                    raise
                log.warning("stream_not_closed", reason=failure.reason)
                return False
            return True

    def _queue_tasks(self, tasks: Iterable[Task]) -> None:
        news = {task["id"]: task for task in tasks if self._tasks.get(task["id"]) != task}
        self._tasks |= news
        self._unsent |= news
        if news:
            self._grew.set()

    def _content(self, piece: str, tasks: Mapping[str, Task]) -> dict[str, Any]:
        """Return the additions as arguments. A stream takes either text or chunks, not both."""
        if not self._tasks:
            return {"markdown_text": piece} if piece else {}
        text = [{"type": "markdown_text", "text": piece}] if piece else []
        chunks = [*({"type": "task_update", **task} for task in tasks.values()), *text]
        return {"chunks": chunks} if chunks else {}

    async def _ensure_started(self) -> bool:
        async with self._beginning:
            place = self.place
            if self.streamed.is_begun or self._stopped or not self.streams.may_be_tried(place):
                return bool(self.streamed.ts)
            await self.mailbox.mark(self.claimed, mark_of(self.turn_id, "streams"), "begun")
            to = {"recipient_team_id": self.user_team or place.team, "recipient_user_id": self.user}
            body = {"channel": place.channel, "thread_ts": place.thread_ts, **to}
            self.lease_check()
            self.streamed = STREAM_UNKNOWN  # even if this call is cancelled
            try:
                reply = await self.streams.calls.call_once(_START, body, timeout_s=self.streams.call_s)
            except DeliveryFailed as failure:
                if failure.permanent or failure.is_limited:
                    self.streamed = NOT_STREAMED
                    self.streams.remember_refusal(place, failure)
                log.info("stream_not_started", reason=failure.reason, unsure=self.streamed.is_begun)
                return False
            self.streamed = StreamedMessage("begun", string(reply, "ts"))
            await self.mailbox.mark(self.claimed, mark_of(self.turn_id, "stream"), self.streamed.ts)
            self.begun.set()
            return True

    async def _send(self) -> None:
        async with self._sending:
            piece, tasks = self._waiting, self._unsent
            if self._broken or self._stopped or not (piece or tasks):
                return
            self._waiting, self._unsent = "", {}
            body = {"channel": self.place.channel, "ts": self.streamed.ts, **self._content(piece, tasks)}
            self._broken = "cut_off"
            try:
                self.lease_check()
                await self.streams.calls.call_once("chat.appendStream", body, timeout_s=self.streams.call_s)
            except DeliveryFailed as failure:
                self.streams.remember_failed_piece(failure, tasks=bool(tasks))
                if not failure.is_limited:
                    self._break(failure.reason)  # it may have arrived, and must not appear twice
                    return
                # If the stream is closed first, that call sends them.
                self._waiting, self._unsent = piece + self._waiting, {**tasks, **self._unsent}
                self._grew.set()
                log.info("stream_waits", reason=failure.reason)
            self._broken = self._broken.replace("cut_off", "")

    def _break(self, reason: str) -> None:
        log.warning("stream_broken", reason=reason, length=self._length)
        self._broken = reason
