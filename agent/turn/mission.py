"""How a new message meets the thread: as answer to a question back, continuation, or new mission (E1 to E3).

The event names in the log and the fields of the reset event are a fixed contract (E2).
"""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import structlog

from agent.actions import Step, StepStatus
from agent.thread.plan import MAX_STEPS, Plan, close
from agent.thread.state import ThreadState, take_answer
from agent.turn.progress import Progress
from observability.logging import Length

log = structlog.get_logger()


async def meet_message(progress: Progress) -> None:
    """Put the question's message where it belongs: ``progress.state`` has the mission it serves afterwards.

    A message without an open mission is one; a message while steps are open goes on with the mission there is.
    """
    question = progress.question
    answered = take_answer(progress.state, question.user, question.text)
    if answered is not None:
        progress.update(answered, answered=True)
        return
    if _completed(progress.state, str(question.thread)):
        await _reset(progress)
    state = progress.state
    goes_on = state.pending_question is not None or (state.plan is not None and not state.plan.finished)
    if state.mission and goes_on:
        return
    progress.state = replace(state, mission=question.text)
    log.info("mission_set", thread=str(question.thread), mission_length=Length(question.text))


def _completed(state: ThreadState, thread: str) -> bool:
    """E3: reset only when a todo list exists, is found, and has no open step; never while a question is pending."""
    if state.pending_question is not None or state.todolist_id is None:
        return False
    if state.plan is None or state.plan.id != state.todolist_id:
        log.warning("todolist_not_found", thread=thread, todolist_id=state.todolist_id)
        return False
    return state.plan.finished


async def _reset(progress: Progress) -> None:
    thread, previous = str(progress.question.thread), progress.state.todolist_id
    facts = {"thread": thread, "todolist_id": previous, "query_length": Length(progress.question.text)}
    log.info("completed_todolist_detected_on_new_input", **facts)
    log.info("resetting_mission_for_new_query", **facts, mission_length=Length(progress.state.mission))
    progress.state = replace(progress.state, mission="", todolist_id=None, plan=None)
    await progress.store()
    reset = {"mission_reset": True, "reason": "completed_todolist_detected", "previous_todolist_id": previous}
    progress.update(progress.state, **reset)
    log.info("mission_reset_complete", thread=thread, previous_todolist_id=previous)


def ensure_plan(progress: Progress, proposed: tuple[Step, ...]) -> None:
    """A plan is made when there is none: the model's, else one of one step (E1)."""
    if progress.state.plan is not None:
        return
    steps = proposed[:MAX_STEPS] or (Step(description=progress.state.mission),)
    plan = Plan(id=uuid4().hex[:12], steps=steps)
    progress.update(replace(progress.state, plan=plan, todolist_id=plan.id), todolist_id=plan.id, steps=len(plan.steps))


def change_plan(progress: Progress, plan: Plan) -> None:
    """The plan moved on."""
    done = sum(step.status != "open" for step in plan.steps)
    progress.update(replace(progress.state, plan=plan), todolist_id=plan.id, steps=len(plan.steps), closed=done)


def close_steps(progress: Progress, status: StepStatus) -> None:
    """Every ending but a question back or a crash closes the open steps (E3)."""
    if progress.state.plan is not None and not progress.state.plan.finished:
        change_plan(progress, close(progress.state.plan, status=status))
