"""What people see while Orion works: a status that is kept alive, changed as the turn proceeds, and ended.

Showing it never fails and never slows a turn. Slack hears at most one change a second and is reminded before it forgets
after two minutes; a workspace without statuses gets a placeholder message instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

import structlog

from agent.tasks import beside
from agent.texts.catalogue import LOADING, say, status_in
from agent.thread.conversation import ThreadKey
from agent.turn.events import StepSeen
from agent.turn.plan_view import cut
from bot.delivery.answer_key import AnswerKey
from bot.delivery.delivery import Delivery
from bot.delivery.stream import Task
from bot.queue.lease import LeaseLost
from bot.slack.web_api import DeliveryFailed

_log = structlog.get_logger()
THINKING: Final = "is thinking…"
LATE: Final = "is waiting for the language model…"
MODEL_AWAY: Final = "is waiting for the language model and keeps trying…"
DOCUMENTS_AWAY: Final = "cannot reach the documents and keeps trying…"
_TASK_STATES: Final = {"done": "complete", "failed": "error", "skipped": "error"}
_LONGEST_STEP: Final = 60  # characters of a step in a status: Slack names no limit, and shows one line


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often Slack is told, in seconds: at most each ``change_s``, at least each ``remind_s`` (below 120).

    A model that has said nothing for ``late_s`` is what Orion waits for, and people are shown so. Nothing is told for
    ``first_s``, and a change not for ``settle_s``: an answer that comes sooner saves the calls.
    """

    first_s: float = 0.0
    settle_s: float = 0.2
    change_s: float = 1.0
    remind_s: float = 90.0
    late_s: float = 5.0


@dataclass(slots=True, eq=False)
class WorkingStatus:
    """The status of one turn: what it begins with (``first``) and what its conversation is called at its end."""

    delivery: Delivery
    place: ThreadKey
    answer_key: AnswerKey
    pace: Pace = field(default_factory=Pace)
    first: str = THINKING
    title: str = ""
    _text: str = ""
    _loading: Sequence[str] = ()
    _before: str = ""
    _has_status: bool = True
    _left: bool = False
    _told: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _keeper: asyncio.Task[None] | None = None
    _alarm: asyncio.TimerHandle | None = None

    @property
    def language(self) -> str | None:
        """What the question was asked in; None for English or unsure."""
        return self.answer_key.language

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[WorkingStatus]:
        """Keeps the status up for as long as the block runs, and ends it."""
        self._text, self._loading = self.first, LOADING if self.first == THINKING else ()
        try:
            async with beside() as group:
                self._keeper = group.create_task(self._keep(), name="status")
                try:
                    yield self
                finally:
                    self.model_spoke()
                    self._keeper.cancel()
        finally:
            await self._clear()

    async def leave(self, text: str) -> None:
        """Let this stand when the block ends: the question waits, and whoever takes it up next changes it."""
        await self.hold()
        self._left, self._loading = True, ()
        with suppress(LeaseLost):
            await self._tell(text)

    def stand(self) -> None:
        """Let what is shown stand when the block ends: the answer waits for its turn under Slack's limits."""
        self._left = True

    async def hold(self) -> None:
        """Say nothing more, and return when nothing is on its way: the answer may take over a placeholder now."""
        self.model_spoke()
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait({self._keeper})

    def show(self, text: str) -> None:
        """From now on this is what people see. Returns at once; of several within a second the last is sent."""
        self._text, self._loading, self._before = text, (), ""
        self._changed.set()

    def again(self) -> None:
        """Slack took the status away, as it does when a message appears: it is told once more."""
        self._changed.set()

    def model_asked(self) -> None:
        """The model was asked: if it says nothing for a while, that is what people see."""
        self.model_spoke()
        self._alarm = asyncio.get_running_loop().call_later(self.pace.late_s, self._late)

    def model_spoke(self) -> None:
        """The model said something, or the call is over: what was shown before holds again."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._before:
            self.show(self._before)

    def _late(self) -> None:
        before = self._text
        self.show(LATE)
        self._before = before

    async def _keep(self) -> None:
        """Tells Slack each change and reminds it, until cancelled or the lease is lost (which ends the turn itself)."""
        await asyncio.sleep(self.pace.first_s)
        while True:
            self._changed.clear()
            try:
                await self._tell(self._text)
            except LeaseLost:
                return
            await asyncio.sleep(self.pace.change_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(self.pace.remind_s):
                    await self._changed.wait()
                    await asyncio.sleep(self.pace.settle_s)  # the check of an answer that passes takes moments

    async def _clear(self) -> None:
        """Takes away a placeholder that no answer has taken over, and ends the session and with it the status."""
        if self._left:
            return
        delivery, key = self.delivery, self.answer_key
        with suppress(LeaseLost):  # whoever has the thread now shows, and ends, its own
            if not self._has_status:
                with suppress(DeliveryFailed):
                    await delivery.delete_placeholders(self.place, key)
            if self._told or key.may_exist:  # an earlier try, which may have died, may have told something too
                await delivery.sessions.end(self.place, key.lease_check, title=self.title)

    async def _tell(self, text: str) -> None:
        language, answer_key = self.answer_key.language, self.answer_key
        spoken = status_in(text, language)
        self._told = True  # also where this is cut off
        try:
            if self._has_status:
                loading = [status_in(line, language) for line in self._loading]
                await self.delivery.set_status(self.place, spoken, loading, lease_check=answer_key.lease_check)
            else:
                await self.delivery.show_placeholder(self.place, f"_Orion {spoken}_", answer_key)
        except DeliveryFailed as failure:
            _log.info("status_not_shown", reason=failure.reason, as_status=self._has_status)
            if failure.permanent and self._has_status:
                self._has_status = False
                await self.delivery.sessions.begin(self.place, answer_key.lease_check)
                await self._tell(text)


def tasks_of(steps: Sequence[StepSeen], language: str | None) -> tuple[Task, ...]:
    """A plan's steps as tasks of a stream, in their order."""
    at = _in_hand(steps)
    return tuple(
        {
            "id": f"step-{number}",
            "title": step.title or say("status_step", language, number=str(number)),
            "status": "in_progress" if number == at else _TASK_STATES.get(step.status, "pending"),
        }
        for number, step in enumerate(steps, 1)
    )


def status_of(steps: Sequence[StepSeen], language: str | None) -> str:
    """The status that names the step in hand; empty when none is open any more."""
    number = _in_hand(steps)
    if not number:
        return ""
    short = cut(steps[number - 1].title or "…", _LONGEST_STEP)
    return say("status_at_step", language, number=str(number), total=str(len(steps)), step=short)


def _in_hand(steps: Sequence[StepSeen]) -> int:
    """The number of the first open step; 0 where there is none."""
    return next((number for number, step in enumerate(steps, 1) if step.status == "open"), 0)
