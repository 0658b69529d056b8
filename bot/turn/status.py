"""The status of a question: its place in the queue, then what its turn is doing.

It is renewed, and cleared at the end. It neither slows a turn down nor makes it fail. Slack gets at most one change a
second, and a reminder before it removes the status after two minutes. A workspace without statuses gets a placeholder
message instead.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, Self

import structlog

from agent.tasks import background_tasks
from agent.texts.catalogue import LOADING, say, translate_status, truncate
from agent.thread.conversation import ThreadKey
from agent.turn.events import StepSeen
from bot.delivery.answer_key import ENDS_SESSION, AnswerKey
from bot.delivery.delivery import Delivery
from bot.delivery.stream import Task
from bot.install.workspaces import Workspaces
from bot.queue.claim import LeaseLost
from bot.queue.queue import Mailbox, Waiting
from bot.slack.agent_session import begin_session
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed
from verification.text.language import detect_language

log = structlog.get_logger()
THINKING: Final = "is thinking…"
BUSY: Final = "is busy: you are number {number} in the queue…"
BEHIND: Final = "is working on an earlier question; yours is next…"
_TASK_STATES: Final = {"done": "complete", "failed": "error", "skipped": "error"}
_NO_TOKENS: Final = str.maketrans("<>", "‹›")
_MAX_STEP_LENGTH: Final = 60  # Slack documents no limit and shows one line
NOTICE_AGAIN_S: Final = 30.0  # for a question that still waits
_LAST_CALL_S: Final = 3.0  # of a placeholder, which the answer waits for


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Pace of updates in seconds: at most one per ``change_s``, at least one per ``remind_s`` (below 120).

    The first one waits for ``first_s``, and a change for ``settle_s``, because a faster answer saves the calls.
    """

    first_s: float = 0.0
    settle_s: float = 0.2
    change_s: float = 1.0
    remind_s: float = 90.0


@dataclass(slots=True, eq=False)
class WorkingStatus:
    """The status of one turn. ``first`` is its first text, empty to show nothing until ``show`` is called.

    ``title`` names the conversation at the end. Set ``changed`` to send the status again.
    """

    delivery: Delivery
    place: ThreadKey
    answer_key: AnswerKey
    pace: Pace = field(default_factory=Pace)
    first: str = THINKING
    title: str = ""
    _text: str = ""
    _loading: Sequence[str] = ()
    _has_status: bool = True
    keeps_text: bool = False  # when the block ends: the question waits
    _was_sent: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _sending: asyncio.Lock = field(default_factory=asyncio.Lock)
    _keeper: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def updating(self) -> AsyncIterator[Self]:
        """Keep the status up to date during the block, then clear it."""
        self._text, self._loading = self.first, LOADING if self.first == THINKING else ()
        try:
            async with background_tasks() as group:
                self._keeper = group.create_task(self._run_updates(), name="status")
                try:
                    yield self
                finally:
                    self._keeper.cancel()
        finally:
            if not self.keeps_text:
                with suppress(LeaseLost):  # the worker that now has the thread shows and ends its own status
                    await self._clear()

    async def leave_text(self, text: str) -> None:
        """Show this text and keep it when the block ends: the next try changes it."""
        await self.stop_updates()
        if not self._text:
            return
        self.keeps_text, self._loading = True, ()
        with suppress(LeaseLost):
            await self._send(text)

    async def stop_updates(self) -> None:
        """Send nothing more. Wait for a running call: Slack could carry it out after the answer and overwrite it."""
        if self._keeper is None:
            return
        if not self._has_status:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_CALL_S), self._sending:
                    self._keeper.cancel()
        self._keeper.cancel()
        await asyncio.wait({self._keeper})

    def show(self, text: str) -> None:
        """Show this text from now on. Return at once; if several come within a second, only the last is sent."""
        self._text, self._loading = text, ()
        self.changed.set()

    async def _run_updates(self) -> None:
        """Send changes and reminders until cancelled or until the lease is lost, which ends the turn itself."""
        await asyncio.sleep(self.pace.first_s)
        while True:
            self.changed.clear()
            try:
                async with self._sending:
                    if self._text:
                        await self._send(self._text)
            except LeaseLost:
                return
            await asyncio.sleep(self.pace.change_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(self.pace.remind_s):
                    await self.changed.wait()
                    await asyncio.sleep(self.pace.settle_s)  # the check of a good answer takes only a moment

    async def _clear(self) -> None:
        """Delete a placeholder that no answer replaced, and end the session and with it the status."""
        key = self.answer_key
        if not self._has_status:
            with suppress(DeliveryFailed):
                await self.delivery.delete_answer(self.place, key.question_ts, key.lease_check, only_placeholders=True)
        if self._was_sent or key.may_exist:  # an earlier try may have crashed and left a status
            title = " ".join(self.title.split()).translate(_NO_TOKENS)
            await self.delivery.end_session(self.place, key.lease_check, title=title)

    async def _send(self, text: str) -> None:
        language, answer_key = self.answer_key.language, self.answer_key
        spoken = translate_status(text, language)
        self._was_sent = True  # even if this call is cancelled
        try:
            if self._has_status:
                loading = [translate_status(line, language) for line in self._loading]
                await self.delivery.set_status(self.place, spoken, loading, lease_check=answer_key.lease_check)
            else:
                await self.delivery.show_placeholder(self.place, f"_Orion {spoken}_", answer_key)
        except DeliveryFailed as failure:
            log.info("status_not_shown", reason=failure.reason, as_status=self._has_status)
            if failure.permanent and self._has_status:
                self._has_status = False
                await begin_session(self.delivery.calls, self.place, answer_key.lease_check)
                await self._send(text)


def stream_tasks(steps: Sequence[StepSeen], language: str | None) -> tuple[Task, ...]:
    """Return a plan's steps as tasks of a stream, in their order."""
    at = _current_step(steps)
    return tuple(
        {
            "id": f"step-{number}",
            "title": step.title or say("status_step", language, number=str(number)),
            "status": "in_progress" if number == at else _TASK_STATES.get(step.status, "pending"),
        }
        for number, step in enumerate(steps, 1)
    )


def step_status(steps: Sequence[StepSeen], language: str | None) -> str:
    """Return the status that names the current step; empty if no step is open."""
    number = _current_step(steps)
    if not number:
        return ""
    short = truncate(steps[number - 1].title or "…", _MAX_STEP_LENGTH)
    return say("status_at_step", language, number=str(number), total=str(len(steps)), step=short)


def _current_step(steps: Sequence[StepSeen]) -> int:
    """Return the number of the first open step, or 0."""
    return next((number for number, step in enumerate(steps, 1) if step.status == "open"), 0)


@dataclass(frozen=True, slots=True)
class QueueNotices:
    """Shows waiting people their position after ``for_s``, and again every ``again_s`` (Slack removes it after 120 s).

    Only one process shows at most ``limit`` of them per ``each_s``.
    """

    mailbox: Mailbox
    workspaces: Workspaces
    for_s: float = 3.0
    again_s: float = NOTICE_AGAIN_S
    limit: int = 10
    each_s: float = 1.5

    async def sweep(self) -> None:
        """Notify everyone whose notice is due. Raises ``RedisError``."""
        paces = {"for_s": self.for_s, "again_s": self.again_s, "each_s": self.each_s}
        for waiting in await self.mailbox.list_waiting(limit=self.limit, **paces):
            incoming = Incoming.from_body(waiting.entry.body)  # an unreadable message is handled by its turn
            is_question = incoming is not None and incoming.kind in {"question", "edit"}
            if incoming and is_question and incoming.addressed != "follow_up" and not incoming.refused:
                await self.notify(waiting, incoming)

    async def notify(self, waiting: Waiting, incoming: Incoming) -> None:
        """Notify one person, unless their Slack is down or has no statuses. Raises ``RedisError``."""
        text = translate_status(BUSY if waiting.place else BEHIND, detect_language(incoming.text))
        try:
            delivery = (await self.workspaces.of(incoming.thread.team)).delivery
            if not await self.mailbox.is_waiting(waiting.thread) and waiting.place:
                return  # its turn began while we notified others
            await delivery.set_status(incoming.thread, text.format(number=waiting.place))
            if all(one.id != waiting.entry.id for one in await self.mailbox.list_messages(waiting.thread)):
                await delivery.end_session(incoming.thread)  # the answer came first, so only this can clear the notice
            elif not await self.mailbox.is_waiting(waiting.thread):  # its turn may have cleared the status before us
                await delivery.recheck_later(incoming.thread, ENDS_SESSION)
        except DeliveryFailed as failure:
            log.info("queue_not_shown", thread=waiting.thread, reason=failure.reason)
        else:
            log.info("queue_shown", thread=waiting.thread, message_id=waiting.entry.id, place=waiting.place)
