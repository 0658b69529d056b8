"""From a claimed letter to a delivered answer: load, run the turn, write down, deliver, save.

Promises: what is to be said is written into the outbox before it is said; every outside effect is preceded by a look at
the lease; a model or Slack that is away is waited for with backoff, and what cannot be answered in the end is said so.
Must never post a text that is neither a verified answer nor one of Orion's own messages.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import dataclass, replace
from typing import Final

import structlog

from agent.conversation import Question, ThreadKey
from agent.outcome import Cancelled, Failed, TurnOutcome, outcome_name
from agent.phrases import say
from agent.progress import Save
from agent.thread_state import StateNotSaved, ThreadState
from agent.thread_store import StateFenced, ThreadStore
from bot.blocks import Mark
from bot.delivery import Delivery, Ticket
from bot.engine import Engine
from bot.intake import Incoming
from bot.mailbox import Claimed, Lease, LeaseLost, Mailbox
from bot.observing import Observers, TurnObserver
from bot.outbox import Entry, read_entry
from bot.slack_calls import DeliveryFailed
from bot.status import working
from bot.turns import OK, Ending, backoff, dead, retry
from bot.wording import HELP, MUTED, STOPPED
from verification.language import detect

log = structlog.get_logger()

PASSING_FAILURES: Final = frozenset({"RateLimitError", "TimeoutError", "LLMError"})
MODEL_TRIES: Final = 3
"""A model that is away gets this many tries, seconds apart, before the person is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One letter in our hands."""

    claimed: Claimed
    lease: Lease
    letter: Incoming
    turn_id: str

    @property
    def place(self) -> ThreadKey:
        """Where the answer goes."""
        return self.letter.thread

    @property
    def first_try(self) -> bool:
        """Nothing can have been posted yet."""
        return self.claimed.tries == 1 and self.letter.kind != "edit"

    def ticket(self, *marks: Mark) -> Ticket:
        """The identity that makes the answer unique in Slack."""
        return Ticket(
            question_ts=self.letter.ts,
            turn_id=self.turn_id,
            may_exist=not self.first_try,
            lease_check=self.lease.require,
            marks=marks,
        )


def turn_id_of(letter: Incoming) -> str:
    """32 hex digits, the same on every try of the same version of the same message: also the trace's id."""
    return hashlib.sha256(f"{letter.thread}:{letter.ts}:{letter.edited_ts}".encode()).hexdigest()[:32]


class Answering:
    """Handles letters for the worker."""

    def __init__(
        self, engine: Engine, delivery: Delivery, *, mailbox: Mailbox, threads: ThreadStore, observers: Observers
    ) -> None:
        self._engine = engine
        self._delivery = delivery
        self._mailbox = mailbox
        self._threads = threads
        self._observers = observers

    async def handle(self, claimed: Claimed, lease: Lease) -> Ending:
        """Do what the letter asks. Returns how the message ends in its mailbox."""
        try:
            letter = Incoming.from_json(claimed.body)
        except ValueError:
            return dead("unreadable letter")
        work = Work(claimed=claimed, lease=lease, letter=letter, turn_id=turn_id_of(letter))
        with structlog.contextvars.bound_contextvars(thread=claimed.thread, turn_id=work.turn_id):
            try:
                return await self._do(work)
            except DeliveryFailed as failure:
                log.warning("delivery_failed", reason=failure.reason, permanent=failure.permanent)
                return dead(failure.reason) if failure.permanent else retry(backoff(claimed.tries))

    async def tell_dead(self, claimed: Claimed, lease: Lease, reason: str) -> None:
        """A message was given up: its person is told, with an id that the log knows (I6)."""
        try:
            letter = Incoming.from_json(claimed.body)
        except ValueError:
            return
        turn_id = turn_id_of(letter)
        log.error("question_given_up", thread=claimed.thread, turn_id=turn_id, reason=reason)
        try:
            text = say("internal", detect(letter.text), id=turn_id[:12])
            await self._delivery.say(letter.thread, text, letter.ts, lease.require)
        except DeliveryFailed as failure:
            log.warning("delivery_failed", reason=failure.reason, permanent=failure.permanent)

    async def _do(self, work: Work) -> Ending:
        letter, require = work.letter, work.lease.require
        match letter.kind:
            case "help":
                await self._delivery.say(work.place, HELP, letter.ts, require)
            case "mute":
                await self._delivery.say(work.place, MUTED, letter.ts, require)
            case "delete":
                await self._delivery.withdraw(work.place, letter.ts, require)
            case "stop":
                pass  # taken care of at the reception; a stop has no answer of its own
            case "question" | "edit":
                return await self._question(work)
        return OK

    async def _question(self, work: Work) -> Ending:
        try:
            entry = read_entry(await self._mailbox.marked(work.claimed.thread, f"outbox:{work.turn_id}"))
            if entry is None:
                found = await self._answer(work)
                if not isinstance(found, Entry):
                    return found
                entry = found
            else:
                await self._deliver(work, entry)
        except asyncio.CancelledError:
            if not work.lease.stopped:
                raise
            await self._delivery.say(work.place, STOPPED, work.letter.ts, work.lease.require)
            return OK
        await self._save(work, entry.state)
        return OK

    async def _answer(self, work: Work) -> Entry | Ending:
        """Run the turn under a status, write down what came out, deliver it."""
        state = await self._state(work)
        if state is None:
            return OK
        question = work.letter.question()
        with self._observers.turn(question, work.turn_id, self._engine) as observer:
            observer.waited(max(0.0, time.time() - work.claimed.enqueued_at))
            async with working(self._delivery, work.place, work.ticket()) as status:
                observer.status = status
                outcome, after = await self._run(work, question, state, observer)
                if _may_pass(outcome) and work.claimed.tries < MODEL_TRIES:
                    return retry(backoff(work.claimed.tries + 1))
                if isinstance(outcome, Cancelled):
                    return OK
                entry = await self._write_down(
                    work, Entry(outcome=outcome_name(outcome), answer=outcome.answer, state=after)
                )
                await observer.decided(question, outcome)
                with observer.timed("deliver"):
                    await self._deliver(work, entry)
            await observer.ended(question, outcome)
        return entry

    async def _run(
        self, work: Work, question: Question, state: ThreadState, observer: TurnObserver
    ) -> tuple[TurnOutcome, ThreadState]:
        return await self._engine.run(question, state, emit=observer, save=self._saving(work))

    async def _write_down(self, work: Work, entry: Entry) -> Entry:
        """Into the outbox, once. What stands there counts, also if another worker wrote it before us."""
        standing = await self._mailbox.mark(work.claimed, f"outbox:{work.turn_id}", entry.to_json())
        return read_entry(standing) or entry

    async def _deliver(self, work: Work, entry: Entry) -> None:
        marks: list[Mark] = ["partial"] if entry.outcome == "partial" else []
        if self._engine.model.quotes_only and entry.answer.sources and entry.answer.verified:
            marks.append("quotes")
        await self._delivery.answer(work.place, entry.answer, work.ticket(*marks))

    async def _state(self, work: Work) -> ThreadState | None:
        """The thread as it stands before this question; None when an edit is of no interest any more (A3)."""
        state = await self._threads.load(work.place)
        if work.letter.kind == "edit":
            return _before_latest(state, work.letter.ts)
        if not state.history and work.place.thread_ts not in {work.letter.ts, work.place.channel}:
            earlier = await self._delivery.reader.messages(work.place, before=work.letter.ts)
            return replace(state, history=earlier)
        return state

    def _saving(self, work: Work) -> Save:
        async def save(state: ThreadState) -> ThreadState:
            return await self._threads.save(work.place, state, fence=work.claimed.fence)

        return save

    async def _save(self, work: Work, state: ThreadState) -> None:
        """The answer stands in Slack: a state that cannot be saved is logged, never a reason to answer again."""
        try:
            await self._threads.save(work.place, state, fence=work.claimed.fence)
        except StateFenced:
            raise LeaseLost from None
        except StateNotSaved as error:
            log.warning("state_save_failed", reason=type(error).__name__)


def _may_pass(outcome: TurnOutcome) -> bool:
    return isinstance(outcome, Failed) and outcome.reason in PASSING_FAILURES


def _before_latest(state: ThreadState, ts: str) -> ThreadState | None:
    """The state before the latest question, if that is the one that was edited."""
    asked = [index for index, message in enumerate(state.history) if message.role == "user" and message.addressed]
    if not asked or state.history[asked[-1]].ts != ts:
        return None
    return replace(state, history=state.history[: asked[-1]])
