"""Slack's streams: a message that grows by verified blocks while the model writes.

A stream's ts is stored before its first word, and a piece that may have arrived is never sent again: ``delivery`` then
puts the whole answer in its place.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from redis.exceptions import RedisError

from agent.tasks import beside
from agent.thread.conversation import ThreadKey
from bot.queue.lease import LeaseLost
from bot.slack.web_api import DeliveryFailed, LeaseCheck, SlackCalls

_LONGEST: Final = 11_000
"""Characters of one streamed message. A longer answer is put in place as several messages."""
_MISSING: Final = frozenset(
    {"unknown_method", "missing_scope", "method_deprecated", "not_allowed_token_type", "feature_not_enabled"}
)
_NO_TASKS: Final = frozenset({"invalid_arguments", "invalid_chunks", "no_text", "streaming_mode_mismatch"})
"""What a server says that has streams, but takes no tasks in them."""
_WORKSPACE, _TASKS = "", "tasks"  # beside the channels that refused
_OPEN: Final = frozenset({"pending", "in_progress"})
_log = structlog.get_logger()

Task = Mapping[str, str]
"""A ``task_update`` chunk: ``id``, ``title``, ``status`` (``pending``, ``in_progress``, ``complete``, ``error``)."""
NoteTs = Callable[[str], Awaitable[object]]


@dataclass(slots=True, eq=False)
class Streams:
    """The streams of one workspace, as far as this process knows: whether it has them, and how often it may be told.

    Seconds: ``each_s`` between two pieces (Slack takes 100 a minute of a workspace), ``missing_s`` until a workspace or
    channel that refused is asked again, ``limited_s`` after it had enough of streams for a minute; ``call_s`` a start
    or a piece may take.
    """

    calls: SlackCalls
    each_s: float = 0.65
    missing_s: float = 3_600.0
    limited_s: float = 20.0
    call_s: float = 5.0
    _free_at: float = field(default=0.0, init=False)
    _not_before: dict[str, float] = field(default_factory=dict, init=False)

    def may_be_tried(self, place: ThreadKey) -> bool:
        """Whether an answer can be streamed here: in a thread, where nothing refused lately."""
        return self.takes(_WORKSPACE) and self.takes(place.channel)

    def takes(self, what: str) -> bool:
        """Whether nothing of this kind, or in this place, was refused lately."""
        return self._not_before.get(what, 0.0) <= time.monotonic()

    def refused(self, place: ThreadKey, failure: DeliveryFailed) -> None:
        """Remember why no stream began: of the channel, or of the whole workspace."""
        pause_s = self.limited_s if failure.limited else self.missing_s
        where = _WORKSPACE if failure.limited or failure.reason in _MISSING else place.channel
        self._not_before[where] = time.monotonic() + pause_s

    def tasks_refused(self) -> None:
        """Remember that this workspace takes no tasks."""
        self._not_before[_TASKS] = time.monotonic() + self.missing_s

    def rest(self) -> None:
        """Slack had enough of pieces: the next one waits a while. An answer that is whole does not wait for it."""
        self._free_at = max(self._free_at, time.monotonic() + self.limited_s)

    async def pace(self) -> None:
        """Wait for this workspace's next turn to be told something."""
        now = time.monotonic()
        at = max(now, self._free_at)
        self._free_at = at + self.each_s
        await asyncio.sleep(at - now)


@dataclass(slots=True, kw_only=True, eq=False)
class AnswerStream:
    """One answer's stream, begun with a plan or with its first block (an ``agent.turn.live.Stage``).

    It is seen in ``place``, by ``user`` first, who in a channel shared between organisations may be of ``user_team``.
    ``before`` is called before the start, ``note`` with the ts right after it, then ``began``: a status is gone then,
    as when any message appears. ``unsure`` tells that a stream may have begun of which nobody knows the ts.
    """

    streams: Streams
    place: ThreadKey
    user: str
    user_team: str = ""
    lease_check: LeaseCheck
    before: Callable[[], Awaitable[object]]
    note: NoteTs
    began: Callable[[], None] = lambda: None
    ts: str = ""
    unsure: bool = False
    _broken: str = ""
    _text: str = ""
    _length: int = 0
    _waiting: str = ""
    _tasks: dict[str, Task] = field(default_factory=dict)
    _untold: dict[str, Task] = field(default_factory=dict)
    _held: bool = False
    _beginning: asyncio.Lock = field(default_factory=asyncio.Lock)
    _grew: asyncio.Event = field(default_factory=asyncio.Event)
    _sending: asyncio.Lock = field(default_factory=asyncio.Lock)

    def plan(self, tasks: Iterable[Task]) -> None:
        """The plan's steps as they stand now. Returns at once: they are seen as soon as Slack may be told."""
        if not self._length and self.streams.takes(_TASKS):
            self._tell(tasks)

    async def show(self, markdown: str, text: str) -> bool:
        """One more block. False where no stream could be begun."""
        if not await self._begun():
            return False
        if not self._length:
            self._tell({**task, "status": "complete"} for task in self._tasks.values() if task["status"] in _OPEN)
        piece = f"\n\n{markdown}" if self._length else markdown
        self._text = text
        self._length += len(piece)
        if self._length > _LONGEST:
            self._break("too_long")
        else:
            self._waiting += piece
            self._grew.set()
        return True

    async def keep(self) -> None:
        """Tell Slack what was added, as often as it may be told, until cancelled or the lease is lost."""
        while True:
            await self._grew.wait()
            await self.streams.pace()
            self._grew.clear()
            try:
                if await self._begun():
                    await self._send()
            except LeaseLost:
                return
            except RedisError as error:  # the turn itself finds out, or ends before it matters
                _log.warning("stream_not_kept", error_type=type(error).__name__)
                return

    async def hold(self) -> None:
        """Tell nothing more, and return when nothing is on its way: the answer may close this, or take its place."""
        self._held = True
        async with self._beginning, self._sending:
            pass

    async def close(self, text: str, blocks: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any]) -> bool:
        """End the stream as the answer whose text is ``text``. False when what stands is not, or may not be, that."""
        async with self._sending:
            if not self.ts or self._broken or text.strip() != self._text.strip():
                return False
            rest = self._news(self._waiting, self._untold)
            self._waiting, self._untold = "", {}
            self._break("closed")  # whatever comes of it, nothing may be added any more
            body = {"channel": self.place.channel, "ts": self.ts, **rest, "blocks": list(blocks), "metadata": metadata}
            try:
                await self.streams.calls.write("chat.stopStream", body, lease_check=self.lease_check)
            except DeliveryFailed as failure:
                if not failure.permanent:
                    raise
                _log.warning("stream_not_closed", reason=failure.reason)
                return False
            return True

    def _tell(self, tasks: Iterable[Task]) -> None:
        news = {task["id"]: task for task in tasks if self._tasks.get(task["id"]) != task}
        self._tasks |= news
        self._untold |= news
        if news:
            self._grew.set()

    def _news(self, piece: str, tasks: Mapping[str, Task]) -> dict[str, Any]:
        """What is added, as arguments. Slack takes either text or chunks over all of a stream's life."""
        if not self._tasks:
            return {"markdown_text": piece} if piece else {}
        text = [{"type": "markdown_text", "text": piece}] if piece else []
        chunks = [*({"type": "task_update", **task} for task in tasks.values()), *text]
        return {"chunks": chunks} if chunks else {}

    async def _begun(self) -> bool:
        async with self._beginning:
            return bool(self.ts) or await self._started()

    async def _started(self) -> bool:
        place = self.place
        if self.unsure or self._held or not self.streams.may_be_tried(place):
            return False
        await self.before()
        to = {"recipient_team_id": self.user_team or place.team, "recipient_user_id": self.user}
        body = {"channel": place.channel, "thread_ts": place.thread_ts, **to}
        self.lease_check()
        self.unsure = True  # also when this is cut off
        try:
            reply = await self.streams.calls.once("chat.startStream", body, timeout_s=self.streams.call_s)
        except DeliveryFailed as failure:
            self.unsure = not (failure.permanent or failure.limited)
            if not self.unsure:
                self.streams.refused(place, failure)
            _log.info("stream_not_started", reason=failure.reason, unsure=self.unsure)
            return False
        self.ts, self.unsure = str(reply.get("ts", "")), False
        await self.note(self.ts)
        self.began()
        return True

    async def _send(self) -> None:
        async with self._sending:
            piece, tasks = self._waiting, self._untold
            if self._broken or self._held or not (piece or tasks):
                return
            self._waiting, self._untold = "", {}
            body = {"channel": self.place.channel, "ts": self.ts, **self._news(piece, tasks)}
            self._broken = "cut_off"
            try:
                self.lease_check()
                await self.streams.calls.once("chat.appendStream", body, timeout_s=self.streams.call_s)
            except DeliveryFailed as failure:
                if not failure.limited:
                    if tasks and failure.reason in _NO_TASKS:
                        self.streams.tasks_refused()
                    self._break(failure.reason)  # it may stand there by now, and must not stand there twice
                    return
                self.streams.rest()
                # The end takes them along, if that comes first.
                self._waiting, self._untold = piece + self._waiting, {**tasks, **self._untold}
                self._grew.set()
                _log.info("stream_waits", reason=failure.reason)
            self._broken = self._broken.replace("cut_off", "")

    def _break(self, reason: str) -> None:
        if reason != "closed":
            _log.warning("stream_broken", reason=reason, length=self._length)
        self._broken = reason


@asynccontextmanager
async def streaming(stream: AnswerStream | None) -> AsyncIterator[AnswerStream | None]:
    """Keeps a stream told for as long as the block runs."""
    if stream is None:
        yield None
        return
    async with beside() as group:
        keeper = group.create_task(stream.keep(), name="stream")
        try:
            yield stream
        finally:
            keeper.cancel()
