"""Stops calling a service that failed several times in a row; after each pause, one call probes it.

The pauses double. A breaker belongs to one process and one event loop, and never sleeps. This module also
reads ``Retry-After`` headers.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

import structlog

log = structlog.get_logger()

PROBE_WAIT_S: Final = 1.0  # how long to wait while another call probes the service
MAX_RETRY_AFTER_S: Final = 86_400.0


@dataclass(slots=True, eq=False)
class CircuitBreaker:
    """Breaker for one service, whose ``name`` goes into the log. ``failures`` in a row open it."""

    name: str
    _: KW_ONLY
    failures: int = 5
    first_pause_s: float = 5.0
    max_pause_s: float = 60.0
    clock: Callable[[], float] = time.monotonic  # seconds
    _failed: int = field(default=0, init=False)
    _pause_s: float = field(default=0.0, init=False)
    _until: float = field(default=0.0, init=False)
    _probing: bool = field(default=False, init=False)

    @property
    def is_open(self) -> bool:
        """True while the service is paused or probed."""
        return self._pause_s > 0

    def wait_s(self) -> float:
        """Return 0 to call now, and record the result afterwards; otherwise the seconds until the next request."""
        if not self.is_open:
            return 0.0
        left = self._until - self.clock()
        if left > 0:
            return left
        if self._probing:
            return PROBE_WAIT_S
        self._probing = True
        log.info("circuit_probed", service=self.name)
        return 0.0

    def record_success(self) -> None:
        """Close the circuit: the service answered, even if it refused the request."""
        if self.is_open:
            log.info("circuit_closed", service=self.name)
        self._failed, self._pause_s, self._probing = 0, 0.0, False

    def record_failure(self, retry_after_s: float | None = None) -> None:
        """Count a temporary failure. ``retry_after_s`` is the pause the service asked for."""
        self._failed += 1
        if self.is_open and not self._probing:
            return  # this call was running when the circuit opened
        if self._failed < self.failures:
            return
        self._pause_s = min(self._pause_s * 2, self.max_pause_s) if self.is_open else self.first_pause_s
        pause = max(self._pause_s, min(retry_after_s or 0.0, self.max_pause_s))
        self._until = self.clock() + pause
        self._probing = False
        log.warning("circuit_opened", service=self.name, failures=self._failed, pause_s=round(pause, 2))

    def release_probe(self) -> None:
        """Let another call probe, because this one was cancelled before its result was known."""
        self._probing = False


def retry_after_s(headers: Mapping[str, str], *, now: float) -> float | None:
    """Return the seconds that these headers ask for, or None if they do not say. ``now`` is in seconds since 1970."""
    values = {name.lower(): value.strip() for name, value in headers.items()}
    value = values.get("retry-after", "")
    # Milliseconds are OpenAI's own header; RFC 9110 has seconds and a date.
    candidates = (_number(values.get("retry-after-ms", "")) / 1000, _number(value), _timestamp(value) - now)
    seconds = next(filter(math.isfinite, candidates), None)
    return None if seconds is None else min(max(seconds, 0.0), MAX_RETRY_AFTER_S)


def clock_offset_s(headers: Mapping[str, str], *, now: float) -> float:
    """Return the seconds by which this host's clock is ahead of the server that sent these headers; 0 if unknown."""
    offset = now - _timestamp(headers.get("Date", ""))
    return offset if math.isfinite(offset) else 0.0


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan


def _timestamp(value: str) -> float:
    try:
        at = parsedate_to_datetime(value)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return math.nan
