"""The worker: claims messages, runs their turns, and ends each as ok, retry, dead or given back.

A turn is cancelled the moment its lease is lost. If a handler crashes, the message is tried again; in the end the
person is told. ``stop`` drains: turns get ``drain_s`` seconds, then are given back.
"""

import asyncio
import os
import socket
import traceback
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import Literal, Protocol

import structlog
from redis.exceptions import RedisError

from bot.queue.claim import (
    Cancellation,
    Claimed,
    Ending,
    Lease,
    LeaseLost,
    give_back,
    give_up,
    now,
    raise_if_cancelled,
    retry,
)
from bot.queue.queue import EXTRA_NOTIFY_TRIES, Mailbox
from bot.redis.client import OUTAGES, plain_cause

log = structlog.get_logger()

IDLE_S = 0.5
MAX_CLAIM = 8
MAX_CLAIM_WHEN_BUSY = 2
LAG_S = 0.02
MAX_BUSY_WAIT_S = 0.5
# The loops during an outage do not use stamina: `stop` must wake them at once, and shortens their time limit.
OUTAGE_FIRST_S = 0.1
OUTAGE_MAX_S = 2.0
REPORT_TIMEOUT_S = 60.0
SWEEP_S = 2.0
SHUTDOWN_REPORT_TIMEOUT_S = 2.0
DRAIN_S = 25.0
CANCEL_AGAIN_S = 3.0
BACKOFF_FIRST_S = 1.0
BACKOFF_MAX_S = 60.0

# Reasons to interrupt a turn: a person (or an edit) wanted it, its lease is lost, or the process shuts down.
Interruption = Literal["stopped", "lease_lost", "drained"]


def backoff(tries: int) -> float:
    """Seconds to wait after the ``tries``-th failure."""
    return min(BACKOFF_FIRST_S * 2.0 ** (tries - 1), BACKOFF_MAX_S)


def frame_lines(error: BaseException) -> list[str]:
    """Innermost five frames of an error: enough to find a bug, without texts that its message may quote."""
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)][-5:]


class Handler(Protocol):
    """Handler of claimed messages: ``bot.install.workspaces`` finds the team's ``bot.gates.flow.Flow``."""

    async def handle(self, claimed: Claimed, lease: Lease, /) -> Ending:
        """Handle a message. Check ``lease.require()`` right before each outside effect.

        If this is cancelled, ``lease.stopped`` says how a person stopped it.
        """

    async def notify_given_up(self, claimed: Claimed, lease: Lease, reason: str, /) -> None:
        """Tell the person that the message was given up. If this fails, the message is tried again a few times."""


@dataclass(slots=True, eq=False)
class Turn:
    """One running turn. ``why`` is set once it was interrupted."""

    claimed: Claimed
    lease: Lease
    task: asyncio.Task[Ending]
    why: Interruption | None = None
    timer: asyncio.TimerHandle | None = None

    def interrupt(self, why: Interruption) -> None:
        """Cancel the handler unless it has returned."""
        if self.why is None and not self.task.done():
            self.why = why
            self.watch()

    def watch(self) -> None:
        """Interrupt the turn at the moment its lease expires, as renewed by then.

        A library can swallow a cancellation (see ``raise_if_cancelled``): repeat it, leaving time to clean up.
        """
        if self.timer is not None:
            self.timer.cancel()
        if self.task.done():
            return
        if self.why is None and not self.lease.is_held():
            self.why = "lease_lost"
        if self.why is not None:
            self.task.cancel()
        after_s = CANCEL_AGAIN_S if self.why is not None else self.lease.until - now()
        self.timer = asyncio.get_running_loop().call_later(after_s, self.watch)

    def ending(self, *, stopping: bool) -> Ending | None:
        """Ending for the mailbox once the task is done, or None if there is nothing to report."""
        if not self.task.done():
            return None  # the task ignores its cancellation: keep the lease, or two workers would run in one thread
        if not self.task.cancelled():
            ending = self.task.result()
            # A person stopped the turn as it was about to wait for a service: the next try need not wait.
            return replace(ending, after_s=0.0) if self.lease.stopped else ending
        if not self.lease.is_held():
            return None
        # If a person stopped the turn, the next try posts "Stopped.".
        if self.why is not None or stopping:
            return give_back()
        return retry(backoff(self.claimed.tries))  # the handler cancelled itself: a bug, counted as a try


@dataclass(slots=True, eq=False)
class Worker:
    """Claims messages and handles up to ``concurrency`` of them at once, until ``stop``."""

    mailbox: Mailbox
    handler: Handler
    _: KW_ONLY
    concurrency: int = 50
    drain_s: float = DRAIN_S
    sweep: Callable[[], Awaitable[None]] | None = None  # periodic work; raises ``RedisError``
    sweep_s: float = SWEEP_S
    name: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:6]}")
    listening: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _running: set[Turn] = field(default_factory=set, init=False)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    @property
    def in_flight(self) -> int:
        """Number of running turns."""
        return len(self._running)

    def stop(self) -> None:
        """Begin to drain. ``run`` returns when all turns are ended or given back. To end at once, cancel ``run``."""
        self._stopping.set()
        self._changed.set()

    async def cancel(self, wish: Cancellation) -> None:
        """Interrupt this message's turn on any worker. It ends as its handler says. Raises ``RedisError``."""
        self._stop_turn(wish)
        await self.mailbox.cancel(wish)

    async def run(self) -> None:
        """Work until ``stop``. Wait while Redis is down. Any exception is a bug or our own cancellation."""
        lease_s = self.mailbox.lease_s
        async with asyncio.TaskGroup() as service:
            helpers = [
                service.create_task(_repeat(self._renew_leases, lease_s / 4), name="worker:leases"),
                service.create_task(_repeat(self._listen, 0.0), name="worker:listen"),
                service.create_task(_repeat(self._sweep_once, self.sweep_s), name="worker:sweep"),
            ]
            try:
                async with asyncio.TaskGroup() as turns:
                    try:
                        await self._claim_until_stopped(turns)
                        log.info("turns_draining", in_flight=self.in_flight)
                        with suppress(TimeoutError):
                            async with asyncio.timeout(self.drain_s):
                                while self._running:
                                    self._changed.clear()
                                    await self._changed.wait()  # until a turn ends
                        for turn in self._running:
                            turn.interrupt("drained")
                    finally:  # even when we are cancelled: turns cancelled from here on are given back
                        self._stopping.set()
            finally:
                for helper in helpers:
                    helper.cancel()

    async def _claim_until_stopped(self, turns: asyncio.TaskGroup) -> None:
        pause_s = OUTAGE_FIRST_S
        while not self._stopping.is_set():
            raise_if_cancelled()
            try:
                more = await self._claim_some(turns)
                if pause_s > OUTAGE_FIRST_S:
                    log.info("redis_back")
                pause_s = OUTAGE_FIRST_S
                if not more:
                    await self.mailbox.wait(IDLE_S)
            except RedisError as error:
                kind, cause = type(error).__name__, plain_cause(error)
                log.warning("redis_unavailable", error_type=kind, cause=cause, again_in_s=pause_s)
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await self._stopping.wait()
                pause_s = min(pause_s * 2, OUTAGE_MAX_S)

    async def _claim_some(self, turns: asyncio.TaskGroup) -> bool:
        """Claim due messages for the free slots. Return whether there may be more."""
        free = self.concurrency - len(self._running)
        if free <= 0:
            self._changed.clear()
            await self._changed.wait()  # until a turn ends or ``stop`` is called
            return True
        busy = await self._busy()
        if self._stopping.is_set():
            return True
        most = min(free, MAX_CLAIM_WHEN_BUSY if busy else MAX_CLAIM)
        messages = await self.mailbox.claim(self.name, most)
        for claimed in messages:
            lease = Lease(claimed.leased_until)
            task = turns.create_task(self._run_handler(claimed, lease), name=f"turn:{claimed.id}")
            turn = Turn(claimed, lease, task)
            self._running.add(turn)
            turn.watch()
            turns.create_task(self._supervise(turn), name=f"turn:{claimed.id}:end")
        return len(messages) == most

    async def _busy(self) -> bool:
        """Return True if running turns still use all of the processor after a short wait.

        To claim more turns then would finish none of them sooner. A message that stays in Redis can still be overtaken
        by a direct message or one of another workspace. A claimed one competes with them for the processor.
        """
        until = now() + MAX_BUSY_WAIT_S
        # Below this many turns, processor time is left. Checking would delay a single question by a few milliseconds.
        while len(self._running) >= MAX_CLAIM and now() < until:
            began = now()
            await asyncio.sleep(LAG_S / 10)
            if now() - began < LAG_S:
                return False
        return len(self._running) >= MAX_CLAIM

    async def _run_handler(self, claimed: Claimed, lease: Lease) -> Ending:
        """Run the handler and return its ending, or one for the exception that it raised.

        An outage of Redis (``OUTAGES``) gives the message back, and the try does not count. Any other ``RedisError``,
        such as a full Redis or MISCONF, is a crash, and the try counts. It also counts if the lease is lost, which is
        raised as a cancellation.
        """
        tries, most = claimed.tries, self.mailbox.max_tries
        try:
            lease.require()
            # A message that was tried too often kills its worker: do not run it again, only notify the person.
            spent = give_up(f"no end after {most} tries") if tries > most else None
            ending = spent or await self.handler.handle(claimed, lease)
            if ending.verb == "dead":
                await self.handler.notify_given_up(claimed, lease, ending.reason)
        except LeaseLost:
            lease.lost = True
            raise asyncio.CancelledError from None
        except OUTAGES as error:
            log.warning("turn_without_redis", **log_fields(claimed), cause=plain_cause(error))
            return give_back(BACKOFF_FIRST_S)
        except Exception as error:  # noqa: BLE001 (a wall: docs/architecture.md)
            what = type(error).__name__
            log.error("turn_crashed", **log_fields(claimed), error_type=what, places=frame_lines(error))  # noqa: TRY400 (a traceback quotes texts)
            # The very last try ends here even if the person could not be notified. An earlier one leaves that to the
            # next.
            reason = f"crashed: {plain_cause(error) if isinstance(error, RedisError) else what}"
            return give_up(reason) if tries >= most + EXTRA_NOTIFY_TRIES else retry(backoff(tries))
        return ending

    async def _supervise(self, turn: Turn) -> None:
        """Wait for the handler, then report to the mailbox, even while we are cancelled ourselves."""
        began = now()
        try:
            await asyncio.wait({turn.task})
        finally:
            if not turn.task.done():  # we end at once; the handler was cancelled with us
                await asyncio.wait({turn.task}, timeout=SHUTDOWN_REPORT_TIMEOUT_S)
            seconds = round(now() - began, 3)
            try:
                if ending := turn.ending(stopping=self._stopping.is_set()):
                    await self._report_ending(turn.claimed, ending, seconds=seconds)
                else:
                    log.warning("turn_lost", **log_fields(turn.claimed), seconds=seconds, held=turn.lease.is_held())
            finally:
                if turn.timer is not None:
                    turn.timer.cancel()
                self._running.discard(turn)
                self._changed.set()

    async def _report_ending(self, claimed: Claimed, ending: Ending, *, seconds: float) -> None:
        """Report an ending, even through an outage, because an answered question must not be answered again."""
        began = now()
        while True:
            try:
                accepted = await self.mailbox.finish(claimed, **asdict(ending))
            except RedisError as error:
                if now() - began > (SHUTDOWN_REPORT_TIMEOUT_S if self._stopping.is_set() else REPORT_TIMEOUT_S):
                    log.warning("turn_not_reported", **log_fields(claimed), error_type=type(error).__name__)
                    return
                await asyncio.sleep(OUTAGE_FIRST_S)
            else:
                # An answered turn has its own line, ``turn_outcome``. Any other ending has only this one.
                line = log.debug if ending.verb == "ok" else log.info
                line("turn_ended", **log_fields(claimed), verb=ending.verb, accepted=accepted, seconds=seconds)
                return

    async def _renew_leases(self) -> float:
        """Renew all leases, four times per lease length. Retry a failure sooner."""
        turns, pause_s = list(self._running), self.mailbox.lease_s / 4
        try:
            await self.mailbox.renew_leases([(turn.claimed, turn.lease) for turn in turns])
        except RedisError as error:
            log.warning("beat_failed", error_type=type(error).__name__, held=len(turns))
            pause_s /= 4
        for turn in turns:
            if not turn.lease.is_held():
                turn.interrupt("lease_lost")
        return pause_s

    async def _listen(self) -> float:
        try:
            async for wish in self.mailbox.cancellations(self.listening.set):
                self._stop_turn(wish)
        except RedisError as error:
            log.warning("cancellations_unheard", error_type=type(error).__name__)
        return OUTAGE_FIRST_S * 5

    async def _sweep_once(self) -> float:
        """Call ``sweep``. Its failure must not end the turns."""
        try:
            if self.sweep is not None:
                await self.sweep()
        except RedisError as error:
            log.warning("sweep_failed", error_type=type(error).__name__)
        except Exception as error:  # noqa: BLE001 (a wall: docs/architecture.md)
            log.error("sweep_crashed", error_type=type(error).__name__, places=frame_lines(error))  # noqa: TRY400 (a traceback quotes texts)
        return self.sweep_s

    def _stop_turn(self, wish: Cancellation) -> None:
        for turn in list(self._running):
            is_new = turn.lease.stopped != wish.reason  # this worker hears its own wish, too
            if is_new and (turn.claimed.thread, turn.claimed.id) == (wish.thread, wish.message_id):
                log.info("turn_stopped", **log_fields(turn.claimed), reason=wish.reason)
                turn.lease.stopped = wish.reason
                turn.interrupt("stopped")


async def _repeat(step: Callable[[], Awaitable[float]], pause_s: float) -> None:
    while True:
        raise_if_cancelled()
        await asyncio.sleep(pause_s)
        pause_s = await step()


def log_fields(claimed: Claimed) -> dict[str, str | int]:
    """Fields of every log line about a turn."""
    return {"thread": claimed.thread, "message_id": claimed.id, "tries": claimed.tries}
