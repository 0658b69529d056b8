"""A message that a worker claimed, its lease on the thread, and the ending of its turn.

The lease is the worker's local view, by its own clock. Checking it needs no call to Redis.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from agent.thread.store import LeaseFence

Verb = Literal["ok", "retry", "dead", "give_back"]


def now() -> float:
    """Seconds of a clock that is never set back and, if the system has one, also runs while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def raise_if_cancelled() -> None:
    """Raise a cancellation that a library swallowed. ``Task.cancelling`` still counts it.

    On Python 3.11 ``asyncio.wait_for`` loses one that arrives as it ends (python/cpython#86296).
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


class LeaseLost(Exception):  # noqa: N818 (a fact, not an error: the turn may cause no further effect)
    """Another worker has, or may have, this thread."""


@dataclass(slots=True, eq=False)
class Lease:
    """A lease as this worker knows it: its last confirmed start plus its length, in seconds of ``now()``.

    It errs on the safe side: the start is taken before the call to Redis. Check it right before each outside effect.
    Once Redis has refused it, it is ``lost`` for good. ``stopped`` says how a person stopped this turn (button, word or
    edit).
    """

    until: float
    lost: bool = False
    stopped: str | None = None

    def is_held(self) -> bool:
        """Return True as long as no other worker can have claimed the thread."""
        return not self.lost and now() < self.until

    def require(self) -> None:
        """Raise ``LeaseLost`` unless the lease is held."""
        if not self.is_held():
            raise LeaseLost


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A message that this worker has claimed. A *try* is one claim: ``tries`` counts them, with this one. ``id`` stays.

    ``enqueued_at`` is Redis' time in seconds since 1970, ``leased_until`` is in seconds of ``now()``.
    """

    thread: str
    id: str
    body: str
    tries: int
    enqueued_at: float
    leased_until: float
    fence: LeaseFence

    @property
    def waited_s(self) -> float:
        """Seconds since the message was stored, by Redis' clock and ours."""
        return max(0.0, time.time() - self.enqueued_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """A request to end the turn of this message."""

    thread: str
    reason: str
    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The result of a turn for the mailbox. ``retry`` and ``give_back`` wait ``after_s``, ``dead`` has a ``reason``.

    ``deletes_mark`` names a mark that is deleted with the message.
    """

    verb: Verb
    after_s: float = 0.0
    reason: str = ""
    deletes_mark: str = field(default="", compare=False)


OK = Ending(verb="ok")
"""The message is done, with or without an answer: it leaves its mailbox."""


def retry(after_s: float) -> Ending:
    """Retry the message after this many seconds. Later messages of its thread wait. This counts as a try."""
    return Ending(verb="retry", after_s=after_s)


def give_back(after_s: float = 0.0) -> Ending:
    """Like ``retry``, without counting this try: a service was down, or the worker shuts down."""
    return Ending(verb="give_back", after_s=after_s)


def give_up(reason: str) -> Ending:
    """Give up the message. ``reason`` is for the operator. The person is told first."""
    return Ending(verb="dead", reason=reason)


Cancel = Callable[[Cancellation], Awaitable[None]]
"""Interrupts the turn of one message, on any worker. Raises ``RedisError``."""
