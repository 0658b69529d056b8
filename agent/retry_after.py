"""When a server wants to be asked again: the ``Retry-After`` header, in seconds or as a date. Pure.

Promises: any header gives a wait or None; no header makes anybody wait longer than ``LONGEST_S``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST_S: Final = 86_400.0


def retry_after_s(headers: Mapping[str, str], *, now: float) -> float | None:
    """Seconds to wait by these headers, None where they do not say. ``now`` is in seconds since 1970."""
    told = {name.lower(): value.strip() for name, value in headers.items()}
    milliseconds = _number(told.get("retry-after-ms", ""))
    if milliseconds is not None:
        return _bounded(milliseconds / 1000)
    value = told.get("retry-after", "")
    seconds = _number(value)
    if seconds is None:
        at = _date(value)
        seconds = None if at is None else at - now
    return None if seconds is None else _bounded(seconds)


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _date(value: str) -> float | None:
    try:
        at: datetime = parsedate_to_datetime(value)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_S)
