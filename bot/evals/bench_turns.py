"""What Orion adds to a turn, measured over many turns at once in one process (B4).

The model's own time is taken off.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from agent.actions import Respond, ToolCall
from agent.budget import Budget, Usage
from agent.model.protocol import DecideContext, Decision, Generated, WriteContext, WriteStream
from agent.thread.conversation import Message, Question, ThreadKey
from agent.thread.state import ThreadState, remember
from agent.thread.store import ThreadStore
from agent.tools.tool import ToolResult, ToolSpec, call_tool
from agent.turn.events import Done, ModelEnd, ToolEnd, ToolStart, TurnEvent
from agent.turn.loop import run_turn
from bot.evals.bench_texts import turn
from bot.redis.embedded import connect
from verification.types import Source

_ALONE: Final = 40
_CALLS: Final = 200
_REMEMBERED: Final = 20
"""Messages that each thread already has."""

PARTS: Final = ("state_load", "decide", "tool_call", "write", "state_save")
"""The pieces of a turn whose own cost is told apart; of ``decide`` and ``write`` it is the bookkeeping."""


@cache
def evidence() -> tuple[Source, ...]:
    """Eight sources, of which the first holds what the paced model says; made once: that is no part of a turn."""
    first, *others = turn(0).sources
    return (replace(first, text=f"The replica takes over within 90 seconds. {first.text}"), *others)


class PacedModel:
    """Thinks for a while and then says one verified sentence."""

    name = "paced"
    quotes_only = False

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._thought_s = 0.0
        self._thinking = 0
        self._since = 0.0

    @property
    def thought_s(self) -> float:
        """Seconds until now in which a call was under way; two calls side by side count once."""
        return self._thought_s + (time.perf_counter() - self._since if self._thinking else 0.0)

    async def _think(self) -> None:
        if not self._thinking:
            self._since = time.perf_counter()
        self._thinking += 1
        try:
            await asyncio.sleep(self._seconds)
        finally:
            self._thinking -= 1
            if not self._thinking:
                self._thought_s += time.perf_counter() - self._since

    async def decide(self, context: DecideContext) -> Decision:
        """Respond."""
        await self._think()
        return Decision(action=Respond(), usage=Usage(model_calls=1, prompt_tokens=len(context.mission)))

    def write(self, context: WriteContext) -> WriteStream:
        """One sentence, in pieces."""
        return WriteStream(pieces=self._pieces(len(context.sources)), usage=Usage(model_calls=1))

    async def _pieces(self, count: int) -> AsyncIterator[tuple[Literal["content", "reasoning"], str]]:
        await self._think()
        text = f"<thinking>{count} sources.</thinking><answer>The replica takes over within 90 seconds [1].</answer>"
        for start in range(0, len(text), 8):
            yield "content", text[start : start + 8]

    async def generate(self, prompt: str, *, max_tokens: int, temperature: float) -> Generated:
        """The beginning of the prompt."""
        await self._think()
        return Generated(text=prompt[: max_tokens if temperature else 1], usage=Usage())


class EvidenceTool:
    """A search that finds the same eight passages at once."""

    spec = ToolSpec(
        name="search",
        description="Finds passages.",
        parameters={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    )

    async def run(self, call_id: str, arguments: Mapping[str, Any]) -> ToolResult:
        """The passages."""
        return ToolResult(call_id=call_id, tool="search", ok=True, content=str(len(arguments)), sources=evidence())


@dataclass(slots=True)
class Watch:
    """When the parts of one turn were over; milliseconds without the model's own time."""

    model: PacedModel
    spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    _since: float = field(default_factory=time.perf_counter)
    _thought: float = 0.0

    def note(self, event: TurnEvent) -> None:
        """The part that an event ends has taken the time since the last one."""
        match event:
            case ToolStart() | ModelEnd(phase="decide"):
                self.over("decide")
            case ToolEnd():
                self.over("tool_call")
            case Done():
                self.over("write")
            case _:
                pass

    def over(self, part: str) -> None:
        """A part is over."""
        now, thought = time.perf_counter(), self.model.thought_s
        self.spent[part] += (now - self._since - (thought - self._thought)) * 1000
        self._since, self._thought = now, thought

    @property
    def added(self) -> float:
        """What the loop added to its turn: all but the state, which is loaded before it and saved behind it."""
        return sum(self.spent[part] for part in ("decide", "tool_call", "write"))


async def turn_figures(at_once: int, thinking_s: tuple[float, float]) -> dict[str, Any]:
    """Many turns at once in one process, their models as uneven as real ones: what Orion adds to each (B4)."""
    with tempfile.TemporaryDirectory(prefix="orion-bench-") as home:
        async with connect(Path(home)) as redis:
            return await _measured(ThreadStore(redis), at_once, thinking_s)


async def _measured(store: ThreadStore, at_once: int, thinking_s: tuple[float, float]) -> dict[str, Any]:
    evidence()
    tool = EvidenceTool()
    calls = [await _tool_call(tool) for _ in range(_CALLS)]
    alone = [(await _turn(store, tool, number, 0.0)).added for number in range(_ALONE)]
    paces = random.Random(7)  # noqa: S311 - the same uneven models in every run
    async with asyncio.TaskGroup() as group:
        running = [
            group.create_task(_turn(store, tool, _ALONE + number, paces.uniform(*thinking_s)))
            for number in range(at_once)
        ]
    together = [task.result() for task in running]
    return {
        **_shares("tool_call", calls),
        "turn_alone_p50_ms": _share(alone, 0.5),
        "turns_at_once": at_once,
        **_shares("added_to_a_turn", [watch.added for watch in together]),
        **{
            name: value
            for part in PARTS
            for name, value in _shares(f"{part}_at_once", [watch.spent[part] for watch in together]).items()
        },
    }


async def _tool_call(tool: EvidenceTool) -> float:
    began = time.perf_counter()
    call = ToolCall(call_id="b", tool="search", input={"query": "fail-over"})
    await call_tool({"search": tool}, call, timeout_s=5, max_chars=10_000)
    return (time.perf_counter() - began) * 1000


async def _turn(store: ThreadStore, tool: EvidenceTool, number: int, thinking_s: float) -> Watch:
    """One turn of a thread that has a past, from loading its state to saving it."""
    thread = ThreadKey(team="T", channel="C", thread_ts=str(number))
    asked = Question(thread=thread, user="U", text="How fast does the replica take over?", ts=str(number))
    past = (Message(role="user", text=f"What of number {each}?", user="U") for each in range(_REMEMBERED))
    await store.save(thread, remember(ThreadState(), *past))
    watch = Watch(PacedModel(thinking_s))
    state = await store.load(thread)
    watch.over("state_load")
    _, state = await run_turn(asked, state, model=watch.model, tools={"search": tool}, budget=Budget(), emit=watch.note)
    await store.save(thread, state)
    watch.over("state_save")
    return watch


def _shares(name: str, spent: list[float]) -> dict[str, float]:
    return {f"{name}_p50_ms": _share(spent, 0.5), f"{name}_p95_ms": _share(spent, 0.95)}


def _share(spent: list[float], share: float) -> float:
    return round(sorted(spent)[min(len(spent) - 1, int(len(spent) * share))], 3)
