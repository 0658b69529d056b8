"""A worker's local view of its lease, by its own clock. Checking it needs no call to Redis."""

from __future__ import annotations

import asyncio
import time


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
    """Another worker has this thread, or may have it."""


class Lease:
    """A lease as this worker knows it: its last confirmed start plus its length.

    It errs on the safe side: the start is read before Redis is asked. Check it right before each outside effect.
    """

    def __init__(self, until: float) -> None:
        self._until = until
        self._lost = False
        # Why a person stopped this turn (button, word or edit). They no longer want an answer.
        self.stopped: str | None = None

    def is_held(self) -> bool:
        """Return True while no other worker can have claimed the thread."""
        return not self._lost and now() < self._until

    def require(self) -> None:
        """Raise ``LeaseLost`` unless the lease is held."""
        if not self.is_held():
            message = "the lease ran out or was taken over"
            raise LeaseLost(message)

    @property
    def remaining_s(self) -> float:
        """Seconds until the lease expires if it is not renewed. 0 once it is lost."""
        return max(0.0, self._until - now()) if not self._lost else 0.0

    def renew(self, until: float) -> None:
        """Note that Redis confirmed the lease up to ``until``. A lost lease stays lost."""
        self._until = max(self._until, until)

    def lose(self) -> None:
        """Note that Redis refused the lease."""
        self._lost = True
