"""One turn in the making: what was found, what was spent, who listens. A source keeps its number within a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import structlog

from agent.budget import Budget, Usage
from agent.model.judge import Judge, ReplyKind
from agent.model.protocol import Model
from agent.thread.audience import may_see, viewers_of
from agent.thread.conversation import Question
from agent.thread.state import StateNotSaved, ThreadState
from agent.tools.tool import Tool, ToolResult
from agent.turn.events import Emit, ModelEnd, StateUpdated, StepSeen
from agent.turn.live import LiveAnswer
from verification.judgement import ClaimKey, Judgement
from verification.types import Source

if TYPE_CHECKING:  # it needs a Progress itself
    from agent.turn.early import EarlyDraft

log = structlog.get_logger()

SOURCES_MOST = 24  # more numbered passages than this only dilute the context of phase two
THREAD_MOST = 16_000  # the latest characters of what people said: a pasted log must not crowd out the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a deployment decided about answers. ``general`` is what happens when no source at all was found.

    ``early_draft``: whether the first draft begins beside the first decision.
    """

    general: str = "label"
    early_draft: bool = True
    link_hosts: frozenset[str] = frozenset()


Save = Callable[[ThreadState], Awaitable[ThreadState]]


async def keep_in_memory(state: ThreadState) -> ThreadState:
    """The save of a conversation that nobody stores (``orion ask`` without a thread)."""
    return state


@dataclass(slots=True, kw_only=True)
class JudgeSaid:
    """What a judge said in one turn. ``opinions`` are None on a claim of which it said nothing that makes sense.

    ``replies`` is what it said of whole answers, by their text; ``calls`` counts, ``lost`` is the attempt at which it
    could not be reached.
    """

    opinions: dict[ClaimKey, asyncio.Future[Judgement | None]] = field(default_factory=dict)
    replies: dict[str, ReplyKind | None] = field(default_factory=dict)
    calls: int = 0
    lost: int = 0


@dataclass(slots=True, kw_only=True)
class Progress:
    """The working record of one turn. ``titles`` are the steps' words as they may be shown, ``revealed`` what was."""

    question: Question
    state: ThreadState
    model: Model
    tools: Mapping[str, Tool]
    budget: Budget
    emit: Emit
    policy: Policy = field(default_factory=Policy)
    save: Save = keep_in_memory
    judge: Judge | None = None
    judge_said: JudgeSaid = field(default_factory=JudgeSaid)
    showing: LiveAnswer | None = None
    early: EarlyDraft | None = None
    used: Usage = field(default_factory=Usage)
    results: list[ToolResult] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    left_out: int = 0
    titles: dict[str, str] = field(default_factory=dict)
    revealed: tuple[StepSeen, ...] = ()

    def add_result(self, result: ToolResult) -> None:
        """Keep a tool's result and number what it brought."""
        self.results.append(result)
        for source in result.sources:
            self.add_source(source)

    def add_source(self, source: Source) -> None:
        """Give a source its number, unless the same text from the same place already has one.

        One that not everybody may see who will see the answer is left out, whatever brought it.
        """
        if not source.text.strip():
            return
        if not may_see(source.audience, viewers_of(self.question)):
            log.warning("source_withheld", thread=str(self.question.thread), origin=source.origin)
            return
        if any(known.url == source.url and known.text == source.text for known in self.sources):
            return
        if len(self.sources) >= SOURCES_MOST:
            self.left_out += 1
            return
        self.sources.append(replace(source, id=len(self.sources) + 1))

    def ended(self, end: ModelEnd) -> None:
        """A model call ended: count what it cost, a call at least (none without a model), and tell whoever listens."""
        least = 0 if self.model.quotes_only else 1
        end = replace(end, usage=replace(end.usage, model_calls=max(least, end.usage.model_calls)))
        self.used += end.usage
        self.emit(end)

    def exhausted(self) -> str:
        """Which limit is reached, or nothing. The deadline is a time-out round the whole turn, not asked here."""
        if self.used.model_calls >= self.budget.model_calls:
            return "model_calls"
        if self.used.tool_calls > self.budget.tool_calls:
            return "tool_calls"
        return "tokens" if self.used.tokens >= self.budget.tokens else ""

    def update(self, state: ThreadState, **changes: object) -> None:
        """The state changes; whoever listens hears what did."""
        self.state = state
        self.emit(StateUpdated(changes=changes))

    async def store(self) -> None:
        """Save now; a store that is away is logged and the turn goes on."""
        try:
            self.state = await self.save(self.state)
        except StateNotSaved as error:
            log.warning("state_save_failed", thread=str(self.question.thread), reason=type(error).__name__)

    def earlier_messages(self) -> None:
        """What people told each other in the thread is a source too."""
        said = [m for m in self.state.history if m.role == "user" and not m.addressed]
        kept: list[str] = []
        room = THREAD_MOST
        for message in reversed(said):
            who = f"Member {message.user}" if message.user else "Someone"
            kept.insert(0, f"{who}: {message.text}"[:room])
            room -= len(kept[0]) + 1
            if room <= 0:
                break
        title = "Earlier in this thread"
        if room <= 0:  # said where the source is named: what came before was not read
            title += f" (its last {len(kept)} messages)" if len(kept) > 1 else " (part of its last message)"
        if kept:
            self.add_source(Source(id=0, title=title, text="\n".join(kept), origin="thread"))
