"""A far end that keeps failing is left alone: H3."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from structlog.testing import capture_logs

from agent.model.circuit_breaker import WHILE_PROBED_S, CircuitBreaker


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def opened(clock: Clock) -> CircuitBreaker:
    breaker = CircuitBreaker("model", failures=2, first_pause_s=5, most_pause_s=15, clock=clock)
    breaker.failed()
    assert breaker.wait_s() == 0
    breaker.failed()
    return breaker


def test_success_starts_the_count_anew() -> None:
    breaker = CircuitBreaker("model", failures=2)
    for _ in range(5):
        breaker.failed()
        breaker.succeeded()
    assert not breaker.is_open


def test_one_probe_at_a_time_and_longer_pauses_after_each_failure() -> None:
    clock = Clock()
    with capture_logs() as lines:
        breaker = opened(clock)
        for pause in (5, 10, 15, 15):
            assert breaker.wait_s() == pause
            breaker.failed()
            assert breaker.wait_s() == pause, "a call that was under way tells nothing new"
            clock.now += pause
            assert breaker.wait_s() == 0
            assert breaker.wait_s() == WHILE_PROBED_S
            breaker.failed()
        clock.now += 15
        assert breaker.wait_s() == 0
        breaker.succeeded()
    assert breaker.wait_s() == 0
    assert not breaker.is_open
    events = [line["event"] for line in lines]
    assert events == ["circuit_opened", *["circuit_probed", "circuit_opened"] * 4, "circuit_probed", "circuit_closed"]


def test_the_pause_the_far_end_asks_for_counts_up_to_the_longest() -> None:
    clock = Clock()
    breaker = CircuitBreaker("model", failures=1, first_pause_s=5, most_pause_s=15, clock=clock)
    breaker.failed(retry_after_s=12)
    assert breaker.wait_s() == 12
    clock.now += 12
    assert breaker.wait_s() == 0
    breaker.failed(retry_after_s=999)
    assert breaker.wait_s() == 15


def test_probe_that_was_cancelled_leaves_room_for_another() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += 5
    assert breaker.wait_s() == 0
    breaker.abandoned()
    assert breaker.wait_s() == 0


class Calls(RuleBasedStateMachine):
    """Whatever happens in whatever order: it can always be called again after the longest pause."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.breaker = CircuitBreaker("model", failures=3, clock=self.clock)
        self.under_way = 0

    @rule()
    def call(self) -> None:
        if self.breaker.wait_s() == 0:
            self.under_way += 1

    @rule(how=st.sampled_from(["succeeded", "failed", "abandoned"]))
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
            self.breaker.abandoned()


TestCalls = Calls.TestCase
