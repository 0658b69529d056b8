"""The control channel's vocabulary: what a model may decide in one step, and nothing else.

Wire names and fields are a fixed contract: ``respond``, ``ask_user``, ``finish_step``, ``complete``; any other function
is a real tool. This channel carries no answer prose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """One step of a plan as the model proposes it."""

    description: str
    tool: str = ""
    acceptance: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a real tool. ``call_id`` pairs it with its result."""

    call_id: str
    tool: str
    input: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalls:
    """Run these tools; those of one step do not depend on each other and run at once."""

    calls: tuple[ToolCall, ...]
    plan: tuple[PlannedStep, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AskUser:
    """Ask the person one question; the next message of that person answers it under ``key``."""

    question: str
    key: str
    plan: tuple[PlannedStep, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Respond:
    """Everything needed is there: start phase two."""

    plan: tuple[PlannedStep, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishStep:
    """A step of the plan is done."""

    step: int
    result: str
    plan: tuple[PlannedStep, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """The one-phase early exit: ``summary`` is verified like any other answer."""

    summary: str
    plan: tuple[PlannedStep, ...] = ()


Action = ToolCalls | AskUser | Respond | FinishStep | Complete
