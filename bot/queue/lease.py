"""A worker's own belief that it holds a lease, by its own clock. Checking it asks nobody and so never waits."""

from __future__ import annotations

import asyncio
import time


def now() -> float:
    """Seconds that also pass while the machine sleeps, where the system can tell; never set back."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def raise_if_cancelled() -> None:
    """Raise a cancellation that a library swallowed on its way; ``cancelling`` still knows of it.

    On Python 3.11 ``asyncio.wait_for`` loses one that comes as it ends (python/cpython#86296): under redis-py's own
    connections 1,200 of 1,500 aimed at a loop of commands, under ours (``bot.redis.connection``) none.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


class LeaseLost(Exception):  # noqa: N818 (it states a fact: the turn has no right to any effect any more)
    """This thread belongs, or may belong, to somebody else."""


class Lease:
    """Our local belief in a lease: its last confirmed beginning plus its length, by a clock that cannot be set back.

    It errs on the safe side: time is taken before Redis was asked. Check it right before each outside effect.
    """

    def __init__(self, until: float) -> None:
        self._until = until
        self._lost = False
        # Why a person (by a button, a word, an edit) stopped this turn: they want no answer any more.
        self.stopped: str | None = None

    def is_held(self) -> bool:
        """Whether nobody else can have the thread yet."""
        return not self._lost and now() < self._until

    def require(self) -> None:
        """Raise ``LeaseLost`` unless the lease is held."""
        if not self.is_held():
            message = "the lease ran out or was taken over"
            raise LeaseLost(message)

    @property
    def remaining_s(self) -> float:
        """Seconds until the lease runs out unless it is prolonged; 0 when it is lost."""
        return max(0.0, self._until - now()) if not self._lost else 0.0

    def renew(self, until: float) -> None:
        """Redis confirmed the lease up to ``until``. A lease once found lost stays lost."""
        self._until = max(self._until, until)

    def lose(self) -> None:
        """Redis refused it."""
        self._lost = True
