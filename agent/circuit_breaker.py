"""A circuit breaker: a far end that failed several times in a row is left alone for a while, then probed by one call.

Promises: after ``failures`` failures in a row nobody calls for a pause that doubles up to ``most_pause_s``; then one
call may try, and the rest go on when it succeeded. One success closes it. Belongs to one process and one event loop.
Must never sleep or call anything itself: whoever asks is told how long to wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import structlog

log = structlog.get_logger()

WHILE_PROBED_S: Final = 1.0
"""How long to wait while somebody else's call finds out whether the far end is back."""


class CircuitBreaker:
    """``far_end`` is its name in the log; ``clock`` gives seconds that only rise."""

    def __init__(
        self,
        far_end: str,
        *,
        failures: int = 5,
        first_pause_s: float = 5.0,
        most_pause_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.far_end = far_end
        self._most_failures = failures
        self._first_pause_s = first_pause_s
        self._most_pause_s = most_pause_s
        self._clock = clock
        self._failures = 0
        self._pause_s = 0.0
        self._until = 0.0
        self._probing = False

    @property
    def is_open(self) -> bool:
        """Whether the far end is being left alone, or probed."""
        return self._pause_s > 0

    def wait_s(self) -> float:
        """0: call now, and tell how it went; else seconds to wait before asking here again."""
        if not self.is_open:
            return 0.0
        left = self._until - self._clock()
        if left > 0:
            return left
        if self._probing:
            return WHILE_PROBED_S
        self._probing = True
        log.info("circuit_probed", far_end=self.far_end)
        return 0.0

    def succeeded(self) -> None:
        """The far end answered, be it with a refusal: it is there."""
        if self.is_open:
            log.info("circuit_closed", far_end=self.far_end)
        self._failures, self._pause_s, self._probing = 0, 0.0, False

    def failed(self, retry_after_s: float | None = None) -> None:
        """The far end failed in a way that may pass; ``retry_after_s`` is what it asked for itself."""
        self._failures += 1
        if self.is_open and not self._probing:
            return  # a call that was under way when it opened
        if self._failures < self._most_failures:
            return
        doubled = min(self._pause_s * 2, self._most_pause_s) if self.is_open else self._first_pause_s
        self._pause_s = doubled
        pause = max(doubled, min(retry_after_s or 0.0, self._most_pause_s))
        self._until = self._clock() + pause
        self._probing = False
        log.warning("circuit_opened", far_end=self.far_end, failures=self._failures, pause_s=round(pause, 2))

    def abandoned(self) -> None:
        """The call was cancelled before it told anything: somebody else may probe."""
        self._probing = False
