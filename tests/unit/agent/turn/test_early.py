"""The first draft begins beside the first decision."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import pytest

from agent.actions import Action, AskUser, Complete, Respond, ToolCall, ToolCalls
from agent.budget import Usage
from agent.model.protocol import DecideContext, Decision, ModelError, Piece, WriteContext, WriteStream
from agent.outcome import Answered, Asked, TurnOutcome
from agent.turn.events import Done, ModelEnd, ModelStart, Token
from agent.turn.progress import Policy
from tests.support.fakes import Listener, PassageTool, ScriptedModel, take_turn

GOOD = "<answer>Each key may send 120 requests a minute [1].</answer>"
AGAIN = ToolCalls(calls=(ToolCall(call_id="a", tool="search", input={"query": "keys"}),))


class OneAfterTheOther(ScriptedModel):
    """Decides only once the early draft has said its first piece, or has failed."""

    def __init__(self, drafts: list[str | ModelError], *decisions: Action | ModelError) -> None:
        super().__init__(drafts, decisions=list(decisions))
        self.spoke = asyncio.Event()
        self.closed = 0

    async def decide(self, context: DecideContext) -> Decision:
        async with asyncio.timeout(10):
            await self.spoke.wait()
        return await super().decide(context)

    def write(self, context: WriteContext) -> WriteStream:
        stream = super().write(context)
        stream.pieces = self._noted(stream.pieces)
        return stream

    async def _noted(self, pieces: AsyncGenerator[Piece]) -> AsyncGenerator[Piece]:
        try:
            async for piece in pieces:
                yield piece
                self.spoke.set()
        finally:
            self.spoke.set()
            self.closed += 1


@dataclass
class Told:
    """One turn and what was heard of it."""

    listener: Listener = field(default_factory=Listener)

    async def turn(self, model: ScriptedModel, *, early: bool = True, found: bool = True) -> TurnOutcome:
        tools = None if found else [PassageTool()]
        outcome, _ = await take_turn(model, tools=tools, emit=self.listener, policy=Policy(early_draft=early))
        return outcome

    @property
    def calls(self) -> list[str]:
        """The model calls as they began and ended, in order; where the first text of a draft was heard."""
        lines: list[str] = []
        for event in self.listener.events:
            match event:
                case ModelStart(phase=phase):
                    lines.append(f"{phase} starts")
                case ModelEnd(phase=phase, error=error):
                    lines.append(f"{phase} ends {error}".strip())
                case Token() if lines[-1] != "text":
                    lines.append("text")
                case _:
                    pass
        return lines


async def test_draft_begun_early_is_the_answer_once_the_decision_is_to_respond() -> None:
    model, told = OneAfterTheOther([GOOD], Respond()), Told()
    assert isinstance(await told.turn(model), Answered)
    assert told.calls == ["decide starts", "write starts", "decide ends", "text", "write ends"]
    assert (len(model.written), model.closed) == (1, 1)


@pytest.mark.parametrize("decision", [AGAIN, AskUser(question="Which key?", key="key"), Complete(summary="Hello!")])
async def test_on_any_other_decision_it_is_stopped_unread_and_its_cost_counted(decision: Action) -> None:
    model, told = OneAfterTheOther([GOOD], decision, Respond()), Told()
    outcome = await told.turn(model)
    assert isinstance(outcome, Answered | Asked)
    assert told.calls[:4] == ["decide starts", "write starts", "decide ends", "write ends discarded"]
    assert model.closed == len(model.written)
    spent = sum((e.usage for e in told.listener.events if isinstance(e, ModelEnd)), Usage())
    done = told.listener.events[-1]
    assert isinstance(done, Done)
    assert (done.usage.model_calls, done.usage.tokens) == (spent.model_calls, spent.tokens)
    assert spent.model_calls == len(model.written) + len(model.decided)


async def test_early_draft_that_failed_is_requested_again() -> None:
    model, told = OneAfterTheOther([ModelError("RateLimitError", "one call at a time"), GOOD], Respond()), Told()
    assert isinstance(await told.turn(model), Answered)
    assert told.calls[2:] == ["decide ends", "write ends RateLimitError", "write starts", "text", "write ends"]


@pytest.mark.parametrize(("early", "found"), [(False, True), (True, False)])
async def test_without_sources_or_where_it_is_off_writing_waits(*, early: bool, found: bool) -> None:
    model, told = ScriptedModel([GOOD]), Told()
    await told.turn(model, early=early, found=found)
    assert told.calls[:3] == ["decide starts", "decide ends", "write starts"]


class NeverDecides(OneAfterTheOther):
    """Writes, and never comes to a decision."""

    async def decide(self, context: DecideContext) -> Decision:
        await asyncio.Event().wait()
        return await super().decide(context)


async def test_turn_that_is_cancelled_closes_the_early_draft() -> None:
    model, told = NeverDecides([GOOD]), Told()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(told.turn(model))
        await model.spoke.wait()
        running.cancel()
    assert running.cancelled()
    assert model.closed == 1
