"""A plan's steps as Slack shows them: tasks of a stream, or a status that names the step in hand (A5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent.texts.catalogue import say
from agent.turn.events import StepSeen
from agent.turn.plan_view import cut
from bot.delivery.stream import Task

_STATES: Final = {"done": "complete", "failed": "error", "skipped": "error"}
_STATUS_MOST: Final = 60  # characters of a step in a status: Slack names no limit, and shows one line


def tasks_of(steps: Sequence[StepSeen], language: str | None) -> tuple[Task, ...]:
    """Each step as a task, in their order."""
    at = _in_hand(steps)
    return tuple(
        {
            "id": f"step-{number}",
            "title": step.title or say("status_step", language, number=str(number)),
            "status": "in_progress" if number == at else _STATES.get(step.status, "pending"),
        }
        for number, step in enumerate(steps, 1)
    )


def status_of(steps: Sequence[StepSeen], language: str | None) -> str:
    """The status that names the step in hand; empty when none is open any more."""
    number = _in_hand(steps)
    if not number:
        return ""
    short = cut(steps[number - 1].title or "…", _STATUS_MOST)
    return say("status_at_step", language, number=str(number), total=str(len(steps)), step=short)


def _in_hand(steps: Sequence[StepSeen]) -> int:
    """The number of the first open step; 0 where there is none."""
    return next((number for number, step in enumerate(steps, 1) if step.status == "open"), 0)
