"""Decides what a new message is in its thread: an answer to a clarifying question, a continuation, or a new mission.

The event names in the log and the fields of the reset event are a fixed contract. The findings of a turn that asked a
clarifying question are kept until the person answers, documents only while they are fresh, results of Slack's search
never. People see each step of the plan as a line of plain text, or without its words if the rules object to them.
"""

import asyncio
import re
from dataclasses import replace
from typing import Final
from uuid import uuid4

import structlog

from agent.actions import Step
from agent.model.prompts import MAX_DECIDE_RESULT_CHARS
from agent.texts.catalogue import truncate
from agent.thread.state import Plan, SavedFindings, SavedResult, state_with_answer
from agent.tools.builtin.knowledge import SLACK_SEARCH, SLACK_SEARCH_ORIGIN
from agent.tools.builtin.llm_generate import NAME as LLM_GENERATE
from agent.tools.tool import ToolResult
from agent.turn.events import PlanMoved, StepSeen
from agent.turn.live import check_draft
from agent.turn.progress import Progress
from observability.logging import Length
from verification.markup.links import links
from verification.markup.mrkdwn import strip_mrkdwn
from verification.types import Draft, Source

log = structlog.get_logger()

MAX_FINDING_SOURCES: Final = 16
MAX_FINDING_CHARS: Final = 48_000
MAX_FINDINGS: Final = 5
FINDINGS_TTL_S: Final = 3_600  # seconds for which an earlier document counts as up to date
MAX_TITLE_CHARS: Final = 100  # Slack's own limit is 256, but a status has to fit on a line
_READ: Final = 400  # maximum characters of a step that are checked; the rest is not shown
_TURNING: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Slack does not document whether it decodes entities in a task or a status, so use characters that need none.
_HARMLESS: Final = str.maketrans("<>", "‹›")


async def meet_message(progress: Progress) -> None:
    """Set the mission of the question: a new one, unless the old one has open steps or waits for this answer."""
    question = progress.question
    answered = state_with_answer(progress.state, question.user, question.text)
    if answered is not None:
        progress.update(answered, answered=True)
        return
    thread, plan = str(question.thread), progress.state.plan
    if (plan.id if plan else None) != progress.state.todolist_id:
        log.warning("todolist_not_found", thread=thread, todolist_id=progress.state.todolist_id)
    if plan is not None and plan.is_finished:
        previous = progress.state.todolist_id
        facts = {"thread": thread, "todolist_id": previous, "query_length": Length(question.text)}
        log.info("completed_todolist_detected_on_new_input", **facts)
        log.info("resetting_mission_for_new_query", **facts, mission_length=Length(progress.state.mission))
        progress.state = replace(progress.state, mission="", todolist_id=None, plan=None)
        await progress.store()
        reset = {"mission_reset": True, "reason": "completed_todolist_detected", "previous_todolist_id": previous}
        progress.update(progress.state, **reset)
        log.info("mission_reset_complete", thread=thread, previous_todolist_id=previous)
    elif plan is not None and progress.state.mission:
        return
    progress.state = replace(progress.state, mission=question.text)
    log.info("mission_set", thread=thread, mission_length=Length(question.text))


def ensure_plan(progress: Progress, proposed: tuple[Step, ...]) -> None:
    """Make a plan if the state has none: the model's, or a single step that a proposed plan replaces."""
    plan = progress.state.plan
    if plan and (len(plan.steps) > 1 or not proposed):
        return
    steps = proposed or (Step(description=progress.state.mission),)
    plan = Plan(id=uuid4().hex[:12], steps=steps)
    progress.update(replace(progress.state, plan=plan, todolist_id=plan.id), todolist_id=plan.id, steps=len(plan.steps))


def change_plan(progress: Progress, plan: Plan) -> None:
    """Replace the plan and emit its progress."""
    done = sum(step.status != "open" for step in plan.steps)
    progress.update(replace(progress.state, plan=plan), todolist_id=plan.id, steps=len(plan.steps), closed=done)


def collect_findings(progress: Progress) -> SavedFindings:
    """Return the results and sources to keep from a turn that asks a clarifying question."""
    from_slack = any(result.tool == SLACK_SEARCH for result in progress.results)
    barred = {SLACK_SEARCH, LLM_GENERATE} if from_slack else {SLACK_SEARCH}
    useful = [result for result in progress.results if result.ok and result.content and result.tool not in barred]
    results = tuple(
        SavedResult(tool=each.tool, content=each.content[:MAX_DECIDE_RESULT_CHARS]) for each in useful[-MAX_FINDINGS:]
    )
    latest: list[Source] = []
    room = MAX_FINDING_CHARS
    for source in reversed(progress.sources):  # later searches were made on purpose
        if source.origin not in {SLACK_SEARCH_ORIGIN, "thread"}:
            room -= len(source.text)
            if room < 0 or len(latest) == MAX_FINDING_SOURCES:
                break
            latest.insert(0, replace(source, id=0))
    earlier = progress.state.found
    # After a second clarifying question, resumed findings do not count as fresh again.
    ts = earlier.ts if earlier and _is_fresh(earlier, progress) else progress.question.ts
    return SavedFindings(ts=ts, results=results, sources=tuple(latest))


def resume_findings(progress: Progress, findings: SavedFindings) -> None:
    """Continue with the earlier findings if this turn answers a clarifying question."""
    fresh = _is_fresh(findings, progress)
    for number, each in enumerate(findings.results if fresh else (), start=1):
        progress.add_result(ToolResult(call_id=f"before-{number}", tool=each.tool, ok=True, content=each.content))
    for source in findings.sources:
        if fresh or source.origin != "document":
            progress.add_source(source)


def _is_fresh(findings: SavedFindings, progress: Progress) -> bool:
    whole = (ts.partition(".")[0] for ts in (progress.question.ts, findings.ts))
    asked, saved = (int(seconds) if seconds.isdecimal() else 0 for seconds in whole)
    return abs(asked - saved) <= FINDINGS_TTL_S


async def emit_plan(progress: Progress) -> None:
    """Emit the plan if it has more than one step and has changed since."""
    plan = progress.state.plan
    if plan is None or len(plan.steps) == 1:
        return
    unread = [step.description for step in plan.steps if step.description not in progress.titles]
    if unread:  # off the event loop, like every check
        draft = replace(progress.draft(""), unsourced=True, own_words=False)
        progress.titles |= await asyncio.to_thread(lambda: {each: step_title(draft, each) for each in unread})
    seen = tuple(StepSeen(title=progress.titles[step.description], status=step.status) for step in plan.steps)
    if seen != progress.revealed:
        progress.revealed = seen
        progress.emit(PlanMoved(steps=seen))


def step_title(draft: Draft, description: str) -> str:
    """Return the step as it may be shown, empty if it may not. ``draft`` has everything that the rules depend on."""
    line = " ".join(_TURNING.sub("", description[:_READ]).split())
    verdict = check_draft(replace(draft, text=line))
    if not verdict.passed or links(verdict.text):
        return ""
    title = " ".join(strip_mrkdwn(verdict.text).split()).translate(_HARMLESS)
    return truncate(title, MAX_TITLE_CHARS)
