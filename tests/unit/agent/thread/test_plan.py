"""The todo list of a mission: E1."""

from __future__ import annotations

from agent.actions import Step
from agent.thread.state import MAX_INPUT_CHARS, Plan, begin_step, finish_step


def test_call_belongs_to_the_first_open_step_that_names_its_tool() -> None:
    steps = (Step(description="a"), Step(description="b", tool="search"), Step(description="c", tool="search"))
    plan = Plan(id="p", steps=steps)
    once = begin_step(plan, "search", '{"query": "one"}')
    twice = begin_step(once, "search", '{"query": "two"}')
    assert [step.input for step in once.steps] == ["", '{"query": "one"}', ""]
    assert [step.input for step in twice.steps] == ["", '{"query": "one"}', '{"query": "two"}']
    assert begin_step(twice, "search", "{}") == twice
    assert begin_step(plan, "file_read", "{}") == plan
    assert [step.input for step in begin_step(finish_step(plan, 2, "done"), "search", "{}").steps] == ["", "", "{}"]


def test_long_input_is_cut() -> None:
    plan = Plan(id="p", steps=(Step(description="a", tool="search"),))
    assert len(begin_step(plan, "search", "x" * 5_000).steps[0].input) == MAX_INPUT_CHARS
