"""Reading Retry-After headers."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.circuit_breaker import MAX_RETRY_AFTER_S, retry_after_s

NOW = datetime(2026, 11, 22, 10, 0, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "30"}, 30.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"Retry-After": "Sun, 22 Nov 2026 10:00:20 GMT"}, 20.0),
        ({"Retry-After": "Sun, 22 Nov 2026 10:00:20 -0000"}, 20.0),
        ({"Retry-After": "Sun, 22 Nov 2026 09:00:00 GMT"}, 0.0),
        ({"Retry-After": "-5"}, 0.0),
        ({"Retry-After": "1e9"}, MAX_RETRY_AFTER_S),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({}, None),
    ],
)
def test_seconds_and_dates_are_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, now=NOW) == seconds


@given(st.integers(0, 80_000))
def test_date_is_as_good_as_its_seconds(wait: int) -> None:
    date = format_datetime(datetime.fromtimestamp(NOW + wait, UTC), usegmt=True)
    assert retry_after_s({"Retry-After": date}, now=NOW) == wait


@given(st.text())
def test_any_header_gives_a_bounded_wait(value: str) -> None:
    wait = retry_after_s({"Retry-After": value}, now=NOW)
    assert wait is None or 0 <= wait <= MAX_RETRY_AFTER_S
