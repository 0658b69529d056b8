"""Parallel and speculative work of a turn that is cancelled or runs out of time: all of it ends, none of it answers."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from agent.actions import ToolCall, ToolCalls
from agent.budget import Budget
from agent.outcome import OutOfBudget, TurnOutcome
from agent.thread.state import ThreadState
from agent.tools.tool import Tool, ToolResult, ToolSpec
from agent.turn.events import Done
from agent.turn.loop import run_turn
from tests.support.fakes import Listener, PassageTool, ScriptedModel, question
from tests.support.waiting import wait_until

GOOD = "<answer>Each key may send 120 requests a minute [1].</answer>"


class Endless:
    """A tool that never comes to an end by itself; it notes when it begins and when it is made to end."""

    def __init__(self, name: str, *, swallows: bool = False) -> None:
        self.spec = ToolSpec(name=name, description="Waits.", parameters={"type": "object", "properties": {}})
        self.swallows = swallows
        self.notes: list[str] = []

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        self.notes.append("begun")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not self.swallows:
                raise
        finally:
            self.notes.append("ended")
        return ToolResult(content=str(len(arguments)))


def both() -> ToolCalls:
    return ToolCalls(calls=(ToolCall(call_id="a", tool="one"), ToolCall(call_id="b", tool="two")))


async def turn(model: ScriptedModel, listener: Listener, *tools: Tool, deadline_s: float = 60.0) -> TurnOutcome:
    named = {tool.spec.name: tool for tool in tools}
    budget = Budget(deadline_s=deadline_s)
    outcome, _ = await run_turn(question(), ThreadState(), model=model, tools=named, budget=budget, emit=listener)
    return outcome


async def cancel_turn(running: asyncio.Task[TurnOutcome], after: Any) -> None:
    """Cancel a turn once something is true; it ends as cancelled and leaves no task behind."""
    others = asyncio.all_tasks() - {running}
    await wait_until(after, "the work is under way")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert asyncio.all_tasks() <= others


@pytest.mark.parametrize("swallows", [False, True])
async def test_a_cancellation_ends_all_running_tools(*, swallows: bool) -> None:
    one, two, listener = Endless("one", swallows=swallows), Endless("two"), Listener()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(turn(ScriptedModel([GOOD], decisions=[both()]), listener, one, two))
        await cancel_turn(running, lambda: one.notes == two.notes == ["begun"])
    assert one.notes == two.notes == ["begun", "ended"]
    assert not any(isinstance(event, Done) for event in listener.events)


async def test_a_cancellation_ends_the_search_before_the_first_decision() -> None:
    search, model = Endless("search"), ScriptedModel([GOOD])
    search.spec = PassageTool().spec
    async with asyncio.TaskGroup() as group:
        running = group.create_task(turn(model, Listener(), search))
        await cancel_turn(running, lambda: search.notes == ["begun"])
    assert search.notes == ["begun", "ended"]
    assert (model.decided, model.written) == ([], [])


async def test_the_deadline_ends_tools_that_run_at_once_and_says_so() -> None:
    one, two = Endless("one"), Endless("two")
    outcome = await turn(ScriptedModel([GOOD], decisions=[both()]), Listener(), one, two, deadline_s=0.05)
    assert isinstance(outcome, OutOfBudget)
    assert one.notes == two.notes == ["begun", "ended"]
