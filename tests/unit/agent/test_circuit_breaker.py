"""A service that keeps failing is not called for a while, nor sooner than it asks."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from structlog.testing import capture_logs

from agent.circuit_breaker import MAX_RETRY_AFTER_S, PROBE_WAIT_S, CircuitBreaker, retry_after_s
from tests.support.clock import Clock


def test_one_probe_at_a_time_and_longer_pauses_after_each_failure() -> None:
    clock = Clock()
    with capture_logs() as lines:
        breaker = CircuitBreaker("model", failures=2, first_pause_s=5, max_pause_s=15, clock=clock)
        breaker.record_failure()
        assert breaker.wait_s() == 0
        breaker.record_failure()
        for pause in (5, 10, 15, 15):
            assert breaker.wait_s() == pause
            breaker.record_failure()
            assert breaker.wait_s() == pause, "a call that was under way changes nothing"
            clock.now += pause
            assert breaker.wait_s() == 0
            assert breaker.wait_s() == PROBE_WAIT_S
            breaker.record_failure()
        clock.now += 15
        assert breaker.wait_s() == 0
        breaker.record_success()
    assert breaker.wait_s() == 0
    assert not breaker.is_open
    events = [line["event"] for line in lines]
    assert events == ["circuit_opened", *["circuit_probed", "circuit_opened"] * 4, "circuit_probed", "circuit_closed"]


def test_a_requested_pause_counts_up_to_the_maximum() -> None:
    clock = Clock()
    breaker = CircuitBreaker("model", failures=1, first_pause_s=5, max_pause_s=15, clock=clock)
    breaker.record_failure(retry_after_s=12)
    assert breaker.wait_s() == 12
    clock.now += 12
    assert breaker.wait_s() == 0
    breaker.record_failure(retry_after_s=999)
    assert breaker.wait_s() == 15


class Calls(RuleBasedStateMachine):
    """After any events in any order a call is possible again after the longest pause."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.breaker = CircuitBreaker("model", failures=3, clock=self.clock)
        self.under_way = 0

    @rule()
    def call(self) -> None:
        if self.breaker.wait_s() == 0:
            self.under_way += 1

    @rule(how=st.sampled_from(["record_success", "record_failure", "release_probe"]))
    def end(self, how: str) -> None:
        if self.under_way:
            self.under_way -= 1
            getattr(self.breaker, how)()

    @rule(seconds=st.floats(0, 100))
    def passes(self, seconds: float) -> None:
        self.clock.now += seconds

    @invariant()
    def never_stuck(self) -> None:
        if not self.under_way:
            self.clock.now += 60
            assert self.breaker.wait_s() == 0
            self.breaker.release_probe()


TestCalls = Calls.TestCase


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


@given(st.text())
def test_any_header_gives_a_bounded_wait(value: str) -> None:
    wait = retry_after_s({"Retry-After": value}, now=NOW)
    assert wait is None or 0 <= wait <= MAX_RETRY_AFTER_S
