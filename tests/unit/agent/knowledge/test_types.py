"""What is known of a source survives being written down, and a damaged note is none."""

from __future__ import annotations

import pytest

from agent.knowledge.types import MOST_FAILURES, SourceState, due_at, shortened, state_of, states_of


def test_d2_a_state_is_read_as_it_was_written() -> None:
    state = SourceState(tried=2.5, synced=1.5, seconds=0.5, read=3, size=4, failed=(("ä.md", "is empty"),), more=7)
    assert state_of(state.to_note()) == state
    assert state.failures == 8


@pytest.mark.parametrize(
    "note", ["", "nonsense", "[]", "{}", '{"tried": 1, "failed": 3}', '{"tried": 1, "failed": [], "new": 1}', "null"]
)
def test_d2_a_note_that_says_nothing_is_none(note: str) -> None:
    assert state_of(note) is None
    assert states_of({"source:a": note}) == {}


def test_d2_of_very_many_failures_the_first_are_kept_by_name() -> None:
    kept, more = shortened([(str(n), "is empty") for n in range(MOST_FAILURES + 5)])
    assert (len(kept), kept[0], more) == (MOST_FAILURES, ("0", "is empty"), 5)


def test_d2_sources_are_due_when_the_first_of_them_is() -> None:
    states = {"a": SourceState(tried=100.0), "b": SourceState(tried=50.0)}
    assert due_at(states, ["a", "b"], 10.0) == 60.0
    assert due_at(states, ["a", "new"], 10.0) == 0.0
    assert due_at(states, [], 10.0) == float("inf")
