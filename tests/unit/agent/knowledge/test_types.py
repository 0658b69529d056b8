from __future__ import annotations

from agent.knowledge.types import SourceState, due_at


def test_sources_are_due_when_the_first_of_them_is() -> None:
    states = {"a": SourceState(tried=100.0), "b": SourceState(tried=50.0)}
    assert due_at(states, ["a", "b"], 10.0) == 60.0
    assert due_at(states, ["a", "new"], 10.0) == 0.0
    assert due_at(states, [], 10.0) == float("inf")
