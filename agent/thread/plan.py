"""Missions and todo lists: pure values and their transitions, no I/O, no clock, no randomness."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent.actions import Step, StepStatus

MAX_STEPS = 12
MAX_INPUT_CHARS = 500  # characters of a step's input that are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The todo list of one mission. ``id`` is what ``ThreadState.todolist_id`` points to."""

    id: str
    steps: tuple[Step, ...] = ()

    @property
    def is_finished(self) -> bool:
        """No step is open any more (an empty plan is not finished: there was nothing to finish)."""
        return bool(self.steps) and all(step.status != "open" for step in self.steps)


def begin_step(plan: Plan, tool: str, arguments: str) -> Plan:
    """The tool was called: it is the first open step's doing that names it and was not begun yet, if there is one."""
    for number, step in enumerate(plan.steps, 1):
        if step.status == "open" and step.tool == tool and not step.input:
            return _with_step(plan, number, replace(step, input=arguments[:MAX_INPUT_CHARS]))
    return plan


def finish_step(plan: Plan, number: int, result: str, *, status: StepStatus = "done") -> Plan:
    """Step ``number`` (counted from 1) is over. An unknown number changes nothing: the model cannot break a plan."""
    if not 1 <= number <= len(plan.steps):
        return plan
    return _with_step(plan, number, replace(plan.steps[number - 1], status=status, result=result))


def _with_step(plan: Plan, number: int, step: Step) -> Plan:
    return replace(plan, steps=(*plan.steps[: number - 1], step, *plan.steps[number:]))


def fail_next_step(plan: Plan, result: str) -> Plan:
    """The first open step failed."""
    number = next((number for number, step in enumerate(plan.steps, 1) if step.status == "open"), 0)
    return finish_step(plan, number, result, status="failed")


def close_open_steps(plan: Plan, *, status: StepStatus) -> Plan:
    """Every open step gets ``status``: the turn is over."""
    return replace(plan, steps=tuple(replace(s, status=status) if s.status == "open" else s for s in plan.steps))
