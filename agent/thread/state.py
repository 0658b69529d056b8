"""The memory of a thread and its todo list, with their pure transitions.

``from_json`` reads the JSON of any older or newer version: unknown fields are dropped, missing ones get defaults.
"""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, get_type_hints

from pydantic import TypeAdapter, ValidationError

from agent.actions import Step, StepStatus
from agent.json_data import compact_json, parse_json
from agent.thread.conversation import ThreadMessage
from verification.types import Source

MAX_STEPS = 20
MAX_INPUT_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The todo list of one mission. ``id`` is what ``ThreadState.todolist_id`` points to."""

    id: str
    steps: tuple[Step, ...] = ()

    @property
    def is_finished(self) -> bool:
        """True if no step is open. An empty plan does not count as finished."""
        return bool(self.steps) and all(step.status != "open" for step in self.steps)


def begin_step(plan: Plan, tool: str, arguments: str) -> Plan:
    """Record a tool call at the first open step that names the tool and has not begun, if there is one."""
    fits = (n for n, s in enumerate(plan.steps, 1) if s.status == "open" and s.tool == tool and not s.input)
    return change_step(plan, next(fits, 0), input=arguments[:MAX_INPUT_CHARS])


def change_step(plan: Plan, number: int, **changes: Any) -> Plan:
    """Change step ``number`` (counted from 1). An unknown number changes nothing, so the model cannot break a plan."""
    steps = (replace(step, **changes) if n == number else step for n, step in enumerate(plan.steps, 1))
    return replace(plan, steps=tuple(steps))


def close_open_steps(plan: Plan, *, status: StepStatus) -> Plan:
    """Give every open step this ``status`` at the end of a turn."""
    return replace(plan, steps=tuple(replace(s, status=status) if s.status == "open" else s for s in plan.steps))


SCHEMA = 1
MAX_HISTORY = 40  # twenty turns: writing sees the last five messages, the others help with follow-ups
MAX_CITED_SOURCES = 8  # of the last answer
MAX_POSTED = 20
_OF_A_MISSION: Final = ("mission", "todolist_id", "plan", "pending_question", "found")


class StateNotSaved(Exception):  # noqa: N818 - a fact rather than an error: the turn continues
    """The state was not saved: the store is unreachable, or another writer was first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingQuestion:
    """A question Orion asked: only ``user`` may answer it, and the answer is stored under ``key``."""

    key: str
    text: str
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedResult:
    """Result of one tool call."""

    tool: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFindings:
    """Results and sources of a turn that asked a clarifying question. ``ts`` is the message that the turn was about."""

    ts: str = ""
    results: tuple[SavedResult, ...] = ()
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadState:
    """One conversation."""

    version: int = 0  # grows with each save
    mission: str = ""
    todolist_id: str | None = None  # None without a todo list
    plan: Plan | None = None
    history: tuple[ThreadMessage, ...] = ()
    answers: dict[str, str] = field(default_factory=dict)
    pending_question: PendingQuestion | None = None
    sources: tuple[Source, ...] = ()
    preferences: dict[str, str] = field(default_factory=dict)  # kept across missions; nothing sets one yet
    undo: str = ""  # the state before the latest question as JSON, without the parts that have not changed
    opened_with_files: bool = False  # files of the first message, which are read again for the next question
    found: SavedFindings | None = None  # while a clarifying question waits for its answer
    # ts of questions, and of the posts of their answers
    posted: dict[str, tuple[str, ...]] = field(default_factory=dict)


def with_posted(state: ThreadState, ts: str, messages: tuple[str, ...]) -> ThreadState:
    """Return the state with the posts of the answer to the message ``ts``."""
    posted = {**state.posted, ts: messages}
    return replace(state, posted=dict(list(posted.items())[-MAX_POSTED:]))


def with_undo(state: ThreadState, before: ThreadState) -> ThreadState:
    """Remember the state ``before`` the latest question, from which an edit of that question starts."""
    snapshot = replace(before, version=0, history=(), sources=(), undo="", posted={})
    return replace(state, undo=to_json(snapshot))


def state_before_last_question(state: ThreadState, ts: str) -> ThreadState | None:
    """Return the state before the latest question, or None if the message ``ts`` is not that question."""
    asked = [index for index, message in enumerate(state.history) if message.role == "user" and message.addressed]
    if not asked or state.history[asked[-1]].ts != ts:
        return None
    before = from_json(state.undo) if state.undo else ThreadState()
    history = state.history[: asked[-1]]
    return replace(before, version=state.version, history=history, sources=state.sources, posted=state.posted)


def _message_at(state: ThreadState, ts: str) -> ThreadMessage | None:
    return next((m for m in state.history if m.role == "user" and m.ts == ts), None)


def without_message(state: ThreadState, ts: str) -> ThreadState:
    """Return the state without the deleted message ``ts``, its answer and everything derived from its text."""
    gone = _message_at(state, ts)
    if gone is None:  # that message may have been only a file
        return _without_quoted_messages(state) if state.opened_with_files else state
    if (before := state_before_last_question(state, ts)) is not None:
        return replace(before, sources=())  # these may be files of that very message
    messages: list[ThreadMessage] = []
    after_it = False
    for message in state.history:
        if message.role == "user":
            after_it = gone.addressed and message.ts == ts
        if not (after_it or message is gone):
            messages.append(message)
    answers = {key: answer for key, answer in state.answers.items() if answer != gone.text}
    rest = replace(_without_quoted_messages(state), history=tuple(messages), answers=answers, undo="")
    return replace(rest, mission="", todolist_id=None, plan=None) if state.mission == gone.text else rest


def _without_quoted_messages(state: ThreadState) -> ThreadState:
    """Return the state without quotations from messages and their files, and without anything derived from them."""
    # They may come from the deleted message. An edit of the latest question must not bring them back either.
    sources, found = (
        tuple(each for each in sources if each.origin not in {"thread", "file"})
        for sources in (state.sources, state.found.sources if state.found else ())
    )
    findings = state.found and replace(state.found, results=(), sources=found)
    undo = to_json(_without_quoted_messages(from_json(state.undo))) if state.undo else ""
    return replace(state, sources=sources, found=findings, undo=undo)


def with_edited_message(state: ThreadState, ts: str, text: str) -> ThreadState:
    """Return the state after a person edited the older message ``ts``: only the new words count."""
    old = _message_at(state, ts)
    if old is None or old.text == text:
        return state
    history = tuple(replace(message, text=text) if message is old else message for message in state.history)
    undo = to_json(_replace_text(from_json(state.undo), old.text, text)) if state.undo else ""
    return replace(_replace_text(state, old.text, text), history=history, undo=undo)


def _replace_text(state: ThreadState, old: str, new: str) -> ThreadState:
    answers = {key: new if answer == old else answer for key, answer in state.answers.items()}
    plan = state.plan
    if plan is not None:
        steps = (replace(step, description=new) if step.description == old else step for step in plan.steps)
        plan = replace(plan, steps=tuple(steps))
    return replace(state, mission=new if state.mission == old else state.mission, plan=plan, answers=answers)


def with_messages(state: ThreadState, *messages: ThreadMessage) -> ThreadState:
    """Add these messages to the history, and drop the oldest."""
    return replace(state, history=(*state.history, *messages)[-MAX_HISTORY:])


def state_with_answer(state: ThreadState, user: str, text: str) -> ThreadState | None:
    """Return the state with the answer to the pending question, or None if this message does not answer it."""
    pending = state.pending_question
    if pending is None or pending.user != user:
        return None
    return replace(state, answers={**state.answers, pending.key: text}, pending_question=None)


def cancel_pending_question(state: ThreadState) -> ThreadState:
    """Return the state after a "stop": Orion's question no longer needs an answer."""
    plan = close_open_steps(state.plan, status="skipped") if state.plan else None
    return replace(state, plan=plan, pending_question=None, found=None)


def is_waiting_for_another(state: ThreadState, user: str) -> bool:
    """Return True if Orion is waiting for another person's answer here."""
    return state.pending_question is not None and state.pending_question.user != user


def suspend_mission_for(state: ThreadState, user: str) -> ThreadState:
    """Return the state without a mission that waits for another person, because this question does not continue it."""
    fresh = {name: getattr(ThreadState(), name) for name in _OF_A_MISSION}
    return replace(state, **fresh) if is_waiting_for_another(state, user) else state


def restore_suspended_mission(after: ThreadState, before: ThreadState, user: str) -> ThreadState:
    """After this person's turn, restore the mission that was suspended for it, as it was ``before``."""
    mission = {name: getattr(before, name) for name in _OF_A_MISSION}
    return replace(after, **mission) if is_waiting_for_another(before, user) else after


def to_json(state: ThreadState) -> str:
    """Return one line of JSON that ``from_json`` can read. Fields with default values are left out."""
    fields = {name: getattr(state, name) for name in _KINDS if getattr(state, name) != getattr(_FRESH, name)}
    return compact_json({"schema": SCHEMA, **fields})


def from_json(text: str | bytes) -> ThreadState:
    """Read as much of the state as possible. Anything but a JSON object gives a fresh state."""
    try:
        raw = parse_json(text)
    except ValueError:
        raw = None
    fields: dict[str, Any] = {}
    for name in _KINDS.keys() & (raw if isinstance(raw, dict) else ()):
        # A field of the wrong type gets its default: it is better to keep the other fields than to fail.
        with suppress(ValidationError):
            fields[name] = _read_value(_KINDS[name], raw[name])
    return ThreadState(**fields)


def _read_value(kind: TypeAdapter[Any], value: object) -> object:
    """Validate a value; drop unreadable entries of a list. Raises ``ValidationError``."""
    try:
        return kind.validate_python(value)
    except ValidationError:
        if not isinstance(value, list):  # one bad entry of a list does not affect the others
            raise
    entries = []
    for each in value:
        with suppress(ValidationError):
            entries += [each] if kind.validate_python([each]) else []
    return kind.validate_python(entries)


_KINDS: Final[dict[str, TypeAdapter[Any]]] = {
    name: TypeAdapter(kind) for name, kind in get_type_hints(ThreadState).items()
}
_FRESH: Final = ThreadState()
