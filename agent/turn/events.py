"""Events for the listener of a turn, as plain values. A listener that fails never stops the turn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.actions import StepStatus, ToolCall
from agent.budget import ModelCall, Usage
from agent.tools.tool import ToolResult
from verification.types import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """Reasoning text; never shown as an answer."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Unverified draft text as it arrives; for tracing and timing, never shown to a person."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStart:
    """A model call begins. ``phase``: ``decide``, ``write``, ``judge``."""

    phase: str
    model: str
    attempt: int = 0  # counts drafts; 0 for decisions
    call_id: str = ""  # matches it with its end if several calls of one phase run at once


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEnd:
    """A model call ended."""

    phase: str
    output: str | Mapping[str, Any]  # for a decision, an assistant message
    usage: Usage
    error: str = ""  # a ``ModelError`` kind, or ``discarded`` for a draft that was not needed
    call: ModelCall = field(default_factory=ModelCall)  # the request, as far as it is known
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStart:
    """A tool call begins."""

    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEnd:
    """A tool call ended."""

    result: ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class StateUpdated:
    """The thread's state changed; ``changes`` names what did. The fields of a reset are a fixed contract."""

    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSeen:
    """A step of a plan as people may see it. ``title`` is one safe line, empty if the rules forbid showing it."""

    title: str
    status: StepStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMoved:
    """A plan of more than one step was made, resumed or changed."""

    steps: tuple[StepSeen, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """One attempt was verified. ``draft`` is the text before repair."""

    attempt: int
    draft: str
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The turn is over; ``outcome`` is its name as ``orion ask --json`` prints it."""

    outcome: str
    usage: Usage


TurnEvent = (
    Thinking | Token | ModelStart | ModelEnd | ToolStart | ToolEnd | StateUpdated | PlanMoved | Verification | Done
)
Emit = Callable[[TurnEvent], None]
