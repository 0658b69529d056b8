"""The actions: everything that a model may decide in one step. Its output for that is the *control* output.

Wire names and fields are a fixed contract: ``respond``, ``ask_user``, ``finish_step``, ``complete``, ``no_reply``. Any
other function is a real tool. A decision never contains the text of an answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

StepStatus = Literal["open", "done", "failed", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One line of the todo list. A model proposes ``description``, ``tool`` and ``acceptance``."""

    description: str
    tool: str = ""
    input: str = ""  # the beginning of the input of its tool call, as JSON
    acceptance: str = ""
    status: StepStatus = "open"
    result: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a real tool. ``call_id`` pairs it with its result."""

    call_id: str
    tool: str
    input: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _WithPlan:
    """Any action may bring a plan if the turn has none yet."""

    plan: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalls(_WithPlan):
    """Run these tools; tools of one step do not depend on each other and run concurrently."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskUser(_WithPlan):
    """Ask the person one question; the next message of that person answers it under ``key``."""

    question: str
    key: str


class Respond(_WithPlan):
    """Start writing: the model has all it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishStep(_WithPlan):
    """Close a step of the plan, numbered from 1."""

    step: int
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete(_WithPlan):
    """The one-phase early exit: ``summary`` is verified like any other answer."""

    summary: str


class NoReply(_WithPlan):
    """The message was meant for other people. Only allowed if it did not address Orion."""


Action = ToolCalls | AskUser | Respond | FinishStep | Complete | NoReply

CONTROL_NAMES: Mapping[type[Action], str] = {
    AskUser: "ask_user",
    Respond: "respond",
    FinishStep: "finish_step",
    Complete: "complete",
    NoReply: "no_reply",
}
