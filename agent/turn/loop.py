"""One turn: take in the message, search, decide until an answer can be written, then write and verify it.

A turn always ends in an outcome; only a cancellation, a bug or an exception of ``save`` or of the stage
(``RedisError``, ``LeaseLost``) is raised.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import structlog

from agent.actions import Action, AskUser, Complete, FinishStep, NoReply, Respond, ToolCall, ToolCalls
from agent.budget import Budget, Usage
from agent.files import add_unread_notes, file_sources
from agent.model.prompts import decision_message
from agent.model.protocol import RETRYABLE, DecideContext, Judge, Model, ModelError
from agent.outcome import SILENT, Asked, Failed, OutOfBudget, Refused, Silent, TurnOutcome
from agent.quoting.small_talk import earlier_subjects, search_query
from agent.texts.catalogue import own_message
from agent.thread.conversation import Question, ThreadMessage
from agent.thread.state import (
    MAX_CITED_SOURCES,
    PendingQuestion,
    ThreadState,
    begin_step,
    cancel_pending_question,
    change_step,
    close_open_steps,
    restore_suspended_mission,
    suspend_mission_for,
    with_messages,
    with_undo,
)
from agent.tools.builtin.knowledge import SLACK_SEARCH, permalinks_only
from agent.tools.tool import Tool, ToolResult, call_tool, guard_listener
from agent.turn.drafting import discard_early_draft, early_draft, shown_answer, write_answer
from agent.turn.events import Done, Emit, ModelEnd, ModelStart, ToolEnd, ToolStart
from agent.turn.live import LiveAnswer, Stage, check_draft
from agent.turn.mission import change_plan, collect_findings, emit_plan, ensure_plan, meet_message, resume_findings
from agent.turn.progress import Policy, Progress, Save
from agent.turn.replies import budget_notice, model_failure

log = structlog.get_logger()

MAX_OBJECTIONS = 1
"""An unusable decision is returned to the model once, then counts as a failed step."""
_READ_AGAIN: Final = ("document", "thread")  # they may have changed
FOLLOW_UP_LIMIT: Final = 5  # passages of each of the two first searches for a follow-up, half of a search's
TOOL_TIMEOUT_S = 30.0
MAX_RESULT_CHARS = 16_000  # maximum characters of a result for the model


async def run_turn(  # noqa: PLR0913 - the seam's fixed signature: what, from where, with what, how far, who listens
    question: Question,
    state: ThreadState,
    *,
    model: Model,
    tools: Mapping[str, Tool],
    budget: Budget,
    emit: Emit,
    policy: Policy | None = None,
    save: Save | None = None,
    judge: Judge | None = None,
    stage: Stage | None = None,
) -> tuple[TurnOutcome, ThreadState]:
    """Answer one question. Returns the outcome and the state to be saved.

    ``save`` stores a state in between (a mission reset). ``judge`` decides the claims that the rules leave open;
    without one they stay open. A ``stage`` shows verified blocks while the model writes.
    """
    if state.pending_question and state.pending_question.user == question.user:
        question = replace(question, addressed=True)  # it answers what Orion asked
    progress = Progress(
        question=question,
        state=suspend_mission_for(state, question.user),
        model=model,
        tools=tools,
        budget=budget,
        emit=guard_listener(emit),
        policy=policy or Policy(),
        save=save,
        judge=judge,
        live=LiveAnswer(stage=stage),
    )
    try:
        async with asyncio.timeout(budget.deadline_s) as deadline:
            outcome = await _work(progress)
    except TimeoutError:
        if not deadline.expired():  # a time-out from elsewhere: a bug, not the end of the turn's time
            raise
        outcome = shown_answer(progress) or budget_notice(progress, "deadline")
    except ModelError as error:
        log.warning("model_failed", thread=str(question.thread), error_type=error.kind, reason=error.detail)
        outcome = model_failure(progress, error)
        if error.kind not in RETRYABLE:
            outcome = shown_answer(progress) or outcome
    task = asyncio.current_task()
    if task is not None and task.cancelling():  # a library swallowed the cancellation: it must not become an answer
        raise asyncio.CancelledError
    retry_may_help = isinstance(outcome, Failed) and outcome.reason in RETRYABLE
    has_notice = isinstance(outcome, Refused | Failed | OutOfBudget) and not retry_may_help
    if has_notice and not question.addressed:  # no notice for a message that did not address Orion
        outcome = SILENT
    outcome = add_unread_notes(outcome, question, state.history) if question.files else outcome
    _record_outcome(progress, outcome, state)
    progress.emit(Done(outcome=outcome.name, usage=progress.used))
    return outcome, progress.state


async def _work(progress: Progress) -> TurnOutcome:
    if not progress.question.addressed:  # a short request without sources: most such messages are for other people
        if isinstance(await _decide(progress, otherwise=NoReply()), NoReply):
            return SILENT
        progress.question = replace(progress.question, addressed=True)
    await meet_message(progress)
    if progress.state.found:
        resume_findings(progress, progress.state.found)
    await _search_first(progress)
    progress.add_thread_messages()
    # Attached files are sources; a long one is parsed off the event loop. Keep earlier sources from tools and files,
    # which cannot be found again.
    attached = await asyncio.to_thread(file_sources, progress.question) if progress.question.files else ()
    for source in (*attached, *(source for source in progress.state.sources if source.origin not in _READ_AGAIN)):
        progress.add_source(source)
    async with early_draft(progress):
        outcome: TurnOutcome | None = None
        while outcome is None:
            await emit_plan(progress)
            if progress.exceeded_limit():
                return budget_notice(progress, progress.exceeded_limit())
            action = await _decide(progress)
            if not isinstance(action, Respond):
                await discard_early_draft(progress)
            ensure_plan(progress, action.plan)
            await emit_plan(progress)
            outcome = await _act(progress, action)
        return outcome


async def _search_first(progress: Progress) -> None:
    """Search for the question before the first decision, so that an easy question needs one decision."""
    history = progress.state.history
    if not any(message.role == "user" and message.addressed for message in history):
        # A first mention in a thread ("can you answer this?") is about a question that people asked there.
        history = tuple(replace(message, addressed=True) for message in history)
    text = progress.question.text.strip()
    query, subjects = search_query(text, history), ", ".join(earlier_subjects(text, history, of_any=True))
    inputs: list[dict[str, Any]] = [{"query": query}]
    if query == text and subjects and not progress.model.quotes_only:
        # It may continue the last question ("and who signs that off in the end?") or be about something else.
        inputs = [{"query": each, "limit": FOLLOW_UP_LIMIT} for each in (text, f"{text} ({subjects})")]
    if "search" in progress.tools and query:
        calls = (ToolCall(call_id=f"first-search-{n}", tool="search", input=each) for n, each in enumerate(inputs, 1))
        await _call_all(progress, tuple(calls))


async def _decide(progress: Progress, *, otherwise: Action = Respond()) -> Action:  # noqa: B008 - it is immutable
    """Return one action. An unusable one is returned to the model once; then it is ``otherwise``: to answer."""
    # Decisions must leave calls for the drafts, and for judging each of them.
    reserved = progress.budget.attempts * (1 if progress.judge is None else 2)
    if progress.used.model_calls >= progress.budget.model_calls - reserved:
        return otherwise
    objection = ""
    for _ in range(MAX_OBJECTIONS + 1):
        action, objection = await _decide_once(progress, objection)
        if action is not None:
            return action
    log.warning("control_output_malformed", thread=str(progress.question.thread))
    if progress.state.plan is not None and progress.question.addressed:
        number = next((n for n, step in enumerate(progress.state.plan.steps, 1) if step.status == "open"), 0)
        failed = change_step(progress.state.plan, number, status="failed", result="malformed control output")
        change_plan(progress, failed)
    return otherwise


async def _decide_once(progress: Progress, objection: str) -> tuple[Action | None, str]:
    progress.emit(ModelStart(phase="decide", model=progress.model.name))
    state = progress.state
    context = DecideContext(
        mission=state.mission,
        question=progress.question,
        plan=state.plan,
        history=state.history,
        answers=state.answers,
        results=tuple(progress.results),
        sources=tuple(progress.sources),
        tools=tuple(tool.spec for tool in progress.tools.values()),
        budget=progress.budget,
        used=progress.used,
        objection=objection,
        left_out=progress.left_out,
    )
    try:
        decision = await progress.model.decide(context)
    except ModelError as error:
        end = ModelEnd(phase="decide", output=error.detail, usage=error.usage, error=error.kind, call=error.call)
        progress.record_model_call(end)
        if error.kind != "MalformedControlError":
            raise
        return None, error.detail
    chosen = decision_message(decision.action)
    progress.record_model_call(ModelEnd(phase="decide", output=chosen, usage=decision.usage, call=decision.call))
    return _acceptable(progress, decision.action)


def _acceptable(progress: Progress, action: Action) -> tuple[Action | None, str]:
    """Return the action, or an objection. Text for a person must pass the rules on formatting and safety."""
    if isinstance(action, NoReply) and progress.question.addressed:
        return None, "The last message is for you. 'no_reply' is not possible."
    if _repeats_last_step(progress, action):
        return None, "It repeats the last step, and the result of that is there. Choose another step, or respond."
    if not isinstance(action, AskUser):
        return action, ""
    question = replace(progress.draft(action.question), sources=(), unsourced=True, own_words=False)
    verdict = check_draft(question)
    if verdict.passed:
        return replace(action, question=verdict.text), ""
    return None, "; ".join(f"{each.detail.rstrip('.')}: {each.remedy}" for each in verdict.errors)


def _repeats_last_step(progress: Progress, action: Action) -> bool:
    """Return True for a step without effect: the last calls again (failed ones may be tried twice), a closed step."""
    plan = progress.state.plan
    if isinstance(action, FinishStep) and plan:
        return not any(n == action.step and step.status == "open" for n, step in enumerate(plan.steps, 1))
    if not isinstance(action, ToolCalls):
        return False
    calls = [(call.tool, call.input) for call in action.calls]
    times = 1 if all(result.ok for result in progress.results[-len(calls) :]) else 2
    return [(r.tool, r.input) for r in progress.results[-len(calls) * times :]] == calls * times


async def _act(progress: Progress, action: Action) -> TurnOutcome | None:
    """Carry out the action. None means: decide again."""
    match action:
        case ToolCalls(calls=calls):
            return await _use_tools(progress, calls)
        case FinishStep(step=step, result=result):
            if progress.state.plan is not None:
                change_plan(progress, change_step(progress.state.plan, step, status="done", result=result))
        case AskUser(question=text, key=key):
            pending = PendingQuestion(key=key, text=text, user=progress.question.user)
            progress.update(replace(progress.state, pending_question=pending), pending_question=key)
            return Asked(answer=own_message(text))
        case Respond():
            return await write_answer(progress)
        case Complete(summary=summary):
            return await write_answer(progress, summary=summary)
        case NoReply():
            return SILENT
    return None


async def _use_tools(progress: Progress, calls: tuple[ToolCall, ...]) -> TurnOutcome | None:
    """Record the calls in their steps and run them. If the budget has no room, answer from the sources so far."""
    if progress.used.tool_calls + len(calls) > progress.budget.tool_calls:
        return await write_answer(progress) if progress.sources else budget_notice(progress, "tool_calls")
    plan = progress.state.plan
    # Later arguments may quote results of Slack's search, which may not be stored.
    if plan is not None and not any(result.tool == SLACK_SEARCH for result in progress.results):
        for call in calls:
            arguments = json.dumps(call.input, ensure_ascii=False).encode(errors="replace").decode()
            plan = begin_step(plan, call.tool, arguments)
        progress.state = replace(progress.state, plan=plan)
    await _call_all(progress, calls)
    return None


async def _call_all(progress: Progress, calls: tuple[ToolCall, ...]) -> None:
    """Run the tools of one step at once, and number their sources in the order of the calls."""
    progress.used += Usage(tool_calls=len(calls))
    for call in calls:
        progress.emit(ToolStart(call=call))

    async def run(call: ToolCall) -> ToolResult:
        result = await call_tool(progress.tools, call, timeout_s=TOOL_TIMEOUT_S, max_chars=MAX_RESULT_CHARS)
        progress.emit(ToolEnd(result=result))
        return result

    async with asyncio.TaskGroup() as group:
        running = [group.create_task(run(call), name=f"tool:{call.tool}") for call in calls]
    for task in running:
        progress.used += task.result().usage
        progress.add_result(task.result())


def _record_outcome(progress: Progress, outcome: TurnOutcome, before: ThreadState) -> None:
    """Remember question and answer, and close the open steps unless Orion asked back."""
    question = progress.question
    asked = ThreadMessage(role="user", text=question.text, user=question.user, ts=question.ts)
    if isinstance(outcome, Silent):
        progress.state = state_after_silence(question, before, progress.state.version)
        return
    reply = ThreadMessage(role="assistant", text=outcome.answer.text)
    cited = permalinks_only(outcome.answer.sources[:MAX_CITED_SOURCES]) or progress.state.sources
    findings = collect_findings(progress) if isinstance(outcome, Asked) else None
    answered = with_messages(replace(progress.state, sources=cited, found=findings), asked, reply)
    progress.state = with_undo(answered, before)
    if not isinstance(outcome, Asked):
        good = outcome.name in ("answered", "partial", "unsourced")
        if progress.state.plan is not None:
            change_plan(progress, close_open_steps(progress.state.plan, status="done" if good else "failed"))
    progress.state = restore_suspended_mission(progress.state, before, question.user)


def state_after_silence(question: Question, before: ThreadState, version: int) -> ThreadState:
    """Return the state after a message between people, which is part of the thread, but does not change a mission."""
    message = ThreadMessage(role="user", text=question.text, user=question.user, ts=question.ts, addressed=False)
    return with_messages(replace(before, version=version), message)


def state_after_stop(question: Question, state: ThreadState) -> ThreadState:
    """Return the state after a person stopped the turn: no question is pending, and its steps are closed."""
    message = ThreadMessage(role="user", text=question.text, user=question.user, ts=question.ts)
    after = with_undo(with_messages(cancel_pending_question(suspend_mission_for(state, question.user)), message), state)
    return restore_suspended_mission(after, state, question.user)
