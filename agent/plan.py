"""Missions and todo lists (E1 to E3): pure values and their transitions, no I/O, no clock, no randomness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StepStatus = Literal["open", "done", "failed", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One line of the todo list."""

    description: str
    tool: str = ""
    input: str = ""
    acceptance: str = ""
    status: StepStatus = "open"
    result: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The todo list of one mission. ``id`` is what ``ThreadState.todolist_id`` points to."""

    id: str
    steps: tuple[Step, ...] = ()

    @property
    def finished(self) -> bool:
        """No step is open any more (an empty plan is not finished: there was nothing to finish)."""
        return bool(self.steps) and all(step.status != "open" for step in self.steps)
