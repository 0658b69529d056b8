"""The first draft begins beside the first decision."""

import asyncio
from collections.abc import AsyncGenerator

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
        stream.pieces = self._note_start(stream.pieces)
        return stream

    async def _note_start(self, pieces: AsyncGenerator[Piece]) -> AsyncGenerator[Piece]:
        try:
            async for piece in pieces:
                yield piece
                self.spoke.set()
        finally:
            self.spoke.set()
            self.closed += 1


async def turn(
    model: ScriptedModel, *, early: bool = True, found: bool = True
) -> tuple[TurnOutcome, Listener, list[str]]:
    """Take one turn. Return its outcome, its events, and when each model call and each draft's first text came."""
    listener, lines = Listener(), list[str]()
    tools = None if found else [PassageTool()]
    outcome, _ = await take_turn(model, tools=tools, emit=listener, policy=Policy(early_draft=early))
    for event in listener.events:
        match event:
            case ModelStart(phase=phase):
                lines.append(f"{phase} starts")
            case ModelEnd(phase=phase, error=error):
                lines.append(f"{phase} ends {error}".strip())
            case Token() if lines[-1] != "text":
                lines.append("text")
            case _:
                pass
    return outcome, listener, lines


async def test_an_early_draft_becomes_the_answer_if_the_decision_is_to_respond() -> None:
    model = OneAfterTheOther([GOOD], Respond())
    outcome, _, calls = await turn(model)
    assert isinstance(outcome, Answered)
    assert calls == ["decide starts", "write starts", "decide ends", "text", "write ends"]
    assert (len(model.written), model.closed) == (1, 1)


@pytest.mark.parametrize("decision", [AGAIN, AskUser(question="Which key?", key="key"), Complete(summary="Hello!")])
async def test_any_other_decision_stops_and_counts_the_early_draft(decision: Action) -> None:
    model = OneAfterTheOther([GOOD], decision, Respond())
    outcome, listener, calls = await turn(model)
    assert isinstance(outcome, Answered | Asked)
    assert calls[:4] == ["decide starts", "write starts", "decide ends", "write ends discarded"]
    assert model.closed == len(model.written)
    spent = sum((e.usage for e in listener.events if isinstance(e, ModelEnd)), Usage())
    done = listener.events[-1]
    assert isinstance(done, Done)
    assert (done.usage.model_calls, done.usage.tokens) == (spent.model_calls, spent.tokens)
    assert spent.model_calls == len(model.written) + len(model.decided)


async def test_an_early_draft_that_failed_is_requested_again() -> None:
    model = OneAfterTheOther([ModelError("RateLimitError", "one call at a time"), GOOD], Respond())
    outcome, _, calls = await turn(model)
    assert isinstance(outcome, Answered)
    assert calls[2:] == ["decide ends", "write ends RateLimitError", "write starts", "text", "write ends"]


@pytest.mark.parametrize(("early", "found"), [(False, True), (True, False)])
async def test_without_sources_or_if_it_is_off_no_early_draft_is_written(*, early: bool, found: bool) -> None:
    _, _, calls = await turn(ScriptedModel([GOOD]), early=early, found=found)
    assert calls[:3] == ["decide starts", "decide ends", "write starts"]


class NeverDecides(OneAfterTheOther):
    """Writes, and never comes to a decision."""

    async def decide(self, context: DecideContext) -> Decision:
        await asyncio.Event().wait()
        return await super().decide(context)


async def test_a_turn_that_is_cancelled_closes_the_early_draft() -> None:
    model = NeverDecides([GOOD])
    async with asyncio.TaskGroup() as group:
        running = group.create_task(turn(model))
        await model.spoke.wait()
        running.cancel()
    assert running.cancelled()
    assert model.closed == 1
