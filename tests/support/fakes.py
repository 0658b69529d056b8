"""Fakes for tests of the agent: a model that says what a test scripts, a tool over fixed passages.

They have the same interfaces as the real ones and get the same contexts.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any

from agent.actions import Action, Respond
from agent.budget import Budget, Usage
from agent.model.protocol import DecideContext, Decision, Generated, Model, ModelError, Piece, WriteContext, WriteStream
from agent.outcome import TurnOutcome
from agent.thread.conversation import Question, ThreadKey
from agent.thread.state import ThreadState
from agent.tools.tool import Tool, ToolResult, ToolSpec
from agent.turn.events import Emit, TurnEvent
from agent.turn.loop import run_turn
from verification.types import Source

THREAD = ThreadKey(team="T1", channel="C1", thread_ts="1.0")

LIMITS = Source(
    id=0,
    title="API › Limits",
    url="https://docs.example/api#limits",
    text="Each key may send 120 requests a minute. Above that the API answers with error 429.",
)
REFUNDS = Source(
    id=0,
    title="Expenses › Meals",
    url="https://docs.example/expenses#meals",
    text="Meals on a business trip are paid back up to 45 euros a day.",
)


def question(text: str = "How many requests may a key send?", *, user: str = "U1", ts: str = "1.0") -> Question:
    return Question(thread=THREAD, user=user, text=text, ts=ts)


async def take_turn(
    model: Model,
    asked: Question | str = "How many requests may a key send a minute?",
    *,
    tools: Iterable[Tool] | None = None,
    state: ThreadState | None = None,
    emit: Emit | None = None,
    **parts: Any,
) -> tuple[TurnOutcome, ThreadState]:
    """Run one turn. By default it has a search that finds ``LIMITS``, and no listener."""
    return await run_turn(
        question(asked) if isinstance(asked, str) else asked,
        state or ThreadState(),
        model=model,
        tools={tool.spec.name: tool for tool in ((PassageTool(LIMITS),) if tools is None else tools)},
        emit=emit or Listener(),
        **{"budget": Budget(), **parts},
    )


class ScriptedModel:
    """Decides and writes what a test lists, in that order; the last entry repeats."""

    name = "scripted"
    quotes_only = False

    def __init__(
        self,
        drafts: Sequence[str | ModelError] = ("<answer>Nothing to say.</answer>",),
        *,
        decisions: Sequence[Action | ModelError] = (Respond(),),
        pieces: int = 7,
    ) -> None:
        self.drafts, self.decisions = drafts, list(decisions)
        self.pieces = pieces
        self.decided: list[DecideContext] = []
        self.written: list[WriteContext] = []

    async def decide(self, context: DecideContext) -> Decision:
        self.decided.append(context)
        entry = self.decisions[min(len(self.decided), len(self.decisions)) - 1]
        if isinstance(entry, ModelError):
            raise entry
        return Decision(action=entry, usage=Usage(model_calls=1, prompt_tokens=10, completion_tokens=2))

    def write(self, context: WriteContext) -> WriteStream:
        self.written.append(context)
        entry = self.drafts[min(len(self.written), len(self.drafts)) - 1]
        stream = WriteStream(pieces=self._pieces(entry))
        stream.usage = Usage(model_calls=1, prompt_tokens=20, completion_tokens=5)
        return stream

    async def _pieces(self, entry: str | ModelError) -> AsyncGenerator[Piece]:
        if isinstance(entry, ModelError):
            raise entry
        for start in range(0, len(entry), self.pieces):
            yield "content", entry[start : start + self.pieces]

    async def generate(self, prompt: str, *, max_tokens: int, temperature: float) -> Generated:
        return Generated(text=f"{len(prompt)} {max_tokens} {temperature}", usage=Usage(model_calls=1))


class PassageTool:
    """A search that finds what it was given, and remembers what it was asked."""

    def __init__(self, *sources: Source, name: str = "search") -> None:
        self.sources = sources
        self.name = name
        self.asked: list[Mapping[str, Any]] = []

    @property
    def spec(self) -> ToolSpec:
        properties = {"query": {"type": "string"}, "limit": {"type": "integer"}}
        return ToolSpec(
            name=self.name,
            description="Finds passages.",
            parameters={"type": "object", "properties": properties, "required": ["query"]},
        )

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        self.asked.append(arguments)
        return ToolResult(content="found", sources=self.sources)


class BrokenTool:
    """A tool with a bug."""

    spec = ToolSpec(name="broken", description="Breaks.", parameters={"type": "object", "properties": {}})

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        raise RuntimeError(f"bug with {len(arguments)} arguments")


class Listener:
    """Keeps every event of a turn."""

    def __init__(self) -> None:
        self.events: list[TurnEvent] = []

    def __call__(self, event: TurnEvent) -> None:
        self.events.append(event)

    def kinds(self) -> list[str]:
        """The events' names, runs of the same one folded."""
        names = [type(event).__name__ for event in self.events]
        return [name for index, name in enumerate(names) if index == 0 or names[index - 1] != name]


class Slow(ScriptedModel):
    """Hangs at the end of every draft."""

    async def _pieces(self, entry: str | ModelError) -> AsyncGenerator[Piece]:
        async for piece in super()._pieces(entry):
            yield piece
        await asyncio.Event().wait()
