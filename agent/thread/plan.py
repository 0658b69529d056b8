"""Todo lists: pure values and their transitions, no I/O, no clock, no randomness."""

from dataclasses import dataclass, replace

from agent.actions import Step, StepStatus

MAX_STEPS = 20
MAX_INPUT_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The todo list of one mission. ``id`` is what ``ThreadState.todolist_id`` points to."""

    id: str
    steps: tuple[Step, ...] = ()

    @property
    def is_finished(self) -> bool:
        """True if no step is open. An empty plan is not finished: there was nothing to finish."""
        return bool(self.steps) and all(step.status != "open" for step in self.steps)


def begin_step(plan: Plan, tool: str, arguments: str) -> Plan:
    """Note a tool call at the first open step that names the tool and has not begun, if there is one."""
    for number, step in enumerate(plan.steps, 1):
        if step.status == "open" and step.tool == tool and not step.input:
            return _with_step(plan, number, replace(step, input=arguments[:MAX_INPUT_CHARS]))
    return plan


def finish_step(plan: Plan, number: int, result: str, *, status: StepStatus = "done") -> Plan:
    """Close step ``number`` (from 1). An unknown number changes nothing: the model cannot break a plan."""
    if not 1 <= number <= len(plan.steps):
        return plan
    return _with_step(plan, number, replace(plan.steps[number - 1], status=status, result=result))


def _with_step(plan: Plan, number: int, step: Step) -> Plan:
    return replace(plan, steps=(*plan.steps[: number - 1], step, *plan.steps[number:]))


def fail_next_step(plan: Plan, result: str) -> Plan:
    """Mark the first open step as failed."""
    number = next((number for number, step in enumerate(plan.steps, 1) if step.status == "open"), 0)
    return finish_step(plan, number, result, status="failed")


def close_open_steps(plan: Plan, *, status: StepStatus) -> Plan:
    """Give every open step this ``status`` at the end of a turn."""
    return replace(plan, steps=tuple(replace(s, status=status) if s.status == "open" else s for s in plan.steps))
