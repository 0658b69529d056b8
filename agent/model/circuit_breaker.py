"""Leaves a far end alone that failed several times in a row, for pauses that double, then probes it with one call.

It belongs to one process and one event loop and never sleeps itself. ``Retry-After`` headers are read here too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

import structlog

log = structlog.get_logger()

WHILE_PROBED_S: Final = 1.0  # how long to wait while somebody else's call finds out whether the far end is back


@dataclass(slots=True, eq=False)
class CircuitBreaker:
    """``far_end`` is its name in the log, ``failures`` how many open it; ``clock`` gives seconds that only rise."""

    far_end: str
    _: KW_ONLY
    failures: int = 5
    first_pause_s: float = 5.0
    most_pause_s: float = 60.0
    clock: Callable[[], float] = time.monotonic
    _failed: int = field(default=0, init=False)
    _pause_s: float = field(default=0.0, init=False)
    _until: float = field(default=0.0, init=False)
    _probing: bool = field(default=False, init=False)

    @property
    def is_open(self) -> bool:
        """Whether the far end is being left alone, or probed."""
        return self._pause_s > 0

    def wait_s(self) -> float:
        """0: call now, and tell how it went; else seconds to wait before asking here again."""
        if not self.is_open:
            return 0.0
        left = self._until - self.clock()
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
        self._failed, self._pause_s, self._probing = 0, 0.0, False

    def failed(self, retry_after_s: float | None = None) -> None:
        """The far end failed in a way that may pass; ``retry_after_s`` is what it asked for itself."""
        self._failed += 1
        if self.is_open and not self._probing:
            return  # a call that was under way when it opened
        if self._failed < self.failures:
            return
        self._pause_s = min(self._pause_s * 2, self.most_pause_s) if self.is_open else self.first_pause_s
        pause = max(self._pause_s, min(retry_after_s or 0.0, self.most_pause_s))
        self._until = self.clock() + pause
        self._probing = False
        log.warning("circuit_opened", far_end=self.far_end, failures=self._failed, pause_s=round(pause, 2))

    def abandoned(self) -> None:
        """The call was cancelled before it told anything: somebody else may probe."""
        self._probing = False


LONGEST_S: Final = 86_400.0


def retry_after_s(headers: Mapping[str, str], *, now: float) -> float | None:
    """Seconds to wait by these headers, None where they do not say. ``now`` is in seconds since 1970."""
    told = {name.lower(): value.strip() for name, value in headers.items()}
    value = told.get("retry-after", "")
    # Milliseconds are OpenAI's own; seconds and a date are what RFC 9110 has.
    said = (_number(told.get("retry-after-ms", "")) / 1000, _number(value), _date(value) - now)
    seconds = next(filter(math.isfinite, said), None)
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_S)


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan


def _date(value: str) -> float:
    try:
        at = parsedate_to_datetime(value)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return math.nan
