"""What Orion remembers of a thread, and how it changes. Pure.

``from_json`` reads what any older or newer version wrote: unknown fields are dropped, others get defaults.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, get_type_hints

from pydantic import TypeAdapter, ValidationError

from agent.packing import compact_json
from agent.thread.conversation import Message
from agent.thread.plan import Plan, close_open_steps
from verification.types import Source

SCHEMA = 1
MAX_HISTORY = 40  # messages kept in a state: twenty turns. Phase two sees the last five, the rest serves follow-ups.
MAX_CITED_SOURCES = 8
MAX_POSTED = 20
_OF_A_MISSION: Final = ("mission", "todolist_id", "plan", "pending_question", "found")


class StateNotSaved(Exception):  # noqa: N818 - it states a fact; the turn goes on
    """The state could not be written: the store is away, or somebody else wrote first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingQuestion:
    """A question Orion asked: only ``user`` may answer it, and the answer is stored under ``key``."""

    key: str
    text: str
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one call of a tool told."""

    tool: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFindings:
    """What a turn had found when it asked back; ``ts`` is the message that it was about."""

    ts: str = ""
    results: tuple[Finding, ...] = ()
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadState:
    """One conversation. ``version`` grows with each save; ``todolist_id`` is None when there is no todo list.

    ``undo`` is the state before the latest question as JSON, less what the rest of the state still holds.
    ``opened_with_files`` says that the thread's first message has files to be read again for the next question.
    ``found`` is there as long as a question back waits for its answer. ``posted`` tells, for the latest questions (by
    their ts), in which messages (by theirs) the answer stands.
    """

    version: int = 0
    mission: str = ""
    todolist_id: str | None = None
    plan: Plan | None = None
    history: tuple[Message, ...] = ()
    answers: dict[str, str] = field(default_factory=dict)
    pending_question: PendingQuestion | None = None
    sources: tuple[Source, ...] = ()
    preferences: dict[str, str] = field(default_factory=dict)
    undo: str = ""
    opened_with_files: bool = False
    found: SavedFindings | None = None
    posted: dict[str, tuple[str, ...]] = field(default_factory=dict)


def with_posted(state: ThreadState, ts: str, messages: tuple[str, ...]) -> ThreadState:
    """The state, remembering where the answer to the message ``ts`` stands."""
    posted = {**state.posted, ts: messages}
    return replace(state, posted=dict(list(posted.items())[-MAX_POSTED:]))


def with_undo(state: ThreadState, before: ThreadState) -> ThreadState:
    """The state, remembering what the latest question found: an edit of that question starts from there."""
    kept = replace(before, version=0, history=(), sources=(), undo="", posted={})
    return replace(state, undo=to_json(kept))


def state_before_last_question(state: ThreadState, ts: str) -> ThreadState | None:
    """The state as the latest question found it, if that is the message ``ts``; None if it is not."""
    asked = [index for index, message in enumerate(state.history) if message.role == "user" and message.addressed]
    if not asked or state.history[asked[-1]].ts != ts:
        return None
    found = from_json(state.undo) if state.undo else ThreadState()
    history = state.history[: asked[-1]]
    return replace(found, version=state.version, history=history, sources=state.sources, posted=state.posted)


def _message_at(state: ThreadState, ts: str) -> Message | None:
    return next((m for m in state.history if m.role == "user" and m.ts == ts), None)


def without_message(state: ThreadState, ts: str) -> ThreadState:
    """The state as if the person's message ``ts`` had never been said: it was deleted.

    Of an older question the answer goes too, and what was made of its text; what came after stays.
    """
    gone = _message_at(state, ts)
    if gone is None:
        return (
            _without_quoted_messages(state) if state.opened_with_files else state
        )  # that one may have brought only a file
    if (before := state_before_last_question(state, ts)) is not None:
        return replace(before, sources=())  # these may be files of that very message
    kept: list[Message] = []
    after_it = False
    for message in state.history:
        if message.role == "user":
            after_it = gone.addressed and message.ts == ts
        if not (after_it or message is gone):
            kept.append(message)
    answers = {key: answer for key, answer in state.answers.items() if answer != gone.text}
    rest = replace(_without_quoted_messages(state), history=tuple(kept), answers=answers, undo="")
    return replace(rest, mission="", todolist_id=None, plan=None) if state.mission == gone.text else rest


def _without_quoted_messages(state: ThreadState) -> ThreadState:
    """The state without what was quoted from messages and their files, or made of it."""
    # It may be of the one that is gone; nor may an edit of the latest question bring it back.
    found = state.found and replace(state.found, results=(), sources=_not_from_messages(state.found.sources))
    undo = to_json(_without_quoted_messages(from_json(state.undo))) if state.undo else ""
    return replace(state, sources=_not_from_messages(state.sources), found=found, undo=undo)


def _not_from_messages(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    return tuple(source for source in sources if source.origin not in {"thread", "file"})


def with_edited_message(state: ThreadState, ts: str, text: str) -> ThreadState:
    """The state after a person reworded the older message ``ts``: only its new words stand."""
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


def with_messages(state: ThreadState, *messages: Message) -> ThreadState:
    """The state with these messages at the end of its history, the oldest dropped."""
    return replace(state, history=(*state.history, *messages)[-MAX_HISTORY:])


def state_with_answer(state: ThreadState, user: str, text: str) -> ThreadState | None:
    """The state after the person answered the pending question, or None when this message does not answer it."""
    pending = state.pending_question
    if pending is None or pending.user != user:
        return None
    return replace(state, answers={**state.answers, pending.key: text}, pending_question=None)


def cancel_pending_question(state: ThreadState) -> ThreadState:
    """The state after somebody said "stop" to the question that Orion asked: nobody has to answer it."""
    plan = close_open_steps(state.plan, status="skipped") if state.plan else None
    return replace(state, plan=plan, pending_question=None, found=None)


def is_waiting_for_another(state: ThreadState, user: str) -> bool:
    """Whether Orion asked somebody else something here and has no answer yet."""
    return state.pending_question is not None and state.pending_question.user != user


def suspend_mission_for(state: ThreadState, user: str) -> ThreadState:
    """The state as this person's question meets it: what waits for somebody else is put aside, not gone on with."""
    fresh = {name: getattr(ThreadState(), name) for name in _OF_A_MISSION}
    return replace(state, **fresh) if is_waiting_for_another(state, user) else state


def restore_suspended_mission(after: ThreadState, before: ThreadState, user: str) -> ThreadState:
    """The state after this person's turn, what was put aside for it standing where it stood ``before``."""
    kept = {name: getattr(before, name) for name in _OF_A_MISSION}
    return replace(after, **kept) if is_waiting_for_another(before, user) else after


def to_json(state: ThreadState) -> str:
    """One line of JSON; ``from_json`` gives the same state back. What is as in a fresh state is left out."""
    told = {name: getattr(state, name) for name in _KINDS if getattr(state, name) != getattr(_FRESH, name)}
    return compact_json({"schema": SCHEMA, **told})


def from_json(text: str | bytes) -> ThreadState:
    """The state as far as it can be read. Anything that is no JSON object gives a fresh state."""
    try:
        raw = json.loads(text)
    except ValueError:
        raw = None
    known: dict[str, Any] = {}
    for name in _KINDS.keys() & (raw if isinstance(raw, dict) else ()):
        # A field that is not of its kind gets its default: the others of the thread are worth more than an error.
        with suppress(ValidationError):
            known[name] = _read_value(_KINDS[name], raw[name])
    return ThreadState(**known)


def _read_value(kind: TypeAdapter[Any], told: object) -> object:
    """The value, of a list without the entries that cannot be read. Raises ``ValidationError``."""
    try:
        return kind.validate_python(told)
    except ValidationError:
        if not isinstance(told, list):  # of a list one bad entry does not cost the others
            raise
    kept = []
    for each in told:
        with suppress(ValidationError):
            kept += [each] if kind.validate_python([each]) else []
    return kind.validate_python(kept)


_KINDS: Final[dict[str, TypeAdapter[Any]]] = {
    name: TypeAdapter(kind) for name, kind in get_type_hints(ThreadState).items()
}
_FRESH: Final = ThreadState()
