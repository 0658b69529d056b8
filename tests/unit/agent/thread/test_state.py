"""State and its transitions: what one version wrote another reads."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from agent.actions import Step
from agent.thread.conversation import ThreadMessage
from agent.thread.state import (
    PendingQuestion,
    Plan,
    ThreadState,
    begin_step,
    cancel_pending_question,
    change_step,
    close_open_steps,
    from_json,
    restore_suspended_mission,
    suspend_mission_for,
    to_json,
    with_edited_message,
    with_messages,
    with_undo,
    without_message,
)
from verification.types import Source

words = st.text(max_size=20)
messages = st.builds(ThreadMessage, role=st.sampled_from(["user", "assistant"]), text=words, user=words, ts=words)
steps = st.builds(Step, description=words, status=st.sampled_from(["open", "done", "failed", "skipped"]), result=words)
plans = st.builds(Plan, id=st.text(min_size=1, max_size=8), steps=st.lists(steps, max_size=3).map(tuple))
states = st.builds(
    ThreadState,
    version=st.integers(0, 9),
    mission=words,
    todolist_id=st.none() | st.text(min_size=1, max_size=8),
    plan=st.none() | plans,
    history=st.lists(messages, max_size=4).map(tuple),
    answers=st.dictionaries(words, words, max_size=3),
    pending_question=st.none() | st.builds(PendingQuestion, key=words, text=words, user=words),
    sources=st.lists(st.builds(Source, id=st.integers(1, 9), title=words, text=words), max_size=2).map(tuple),
    preferences=st.dictionaries(words, words, max_size=2),
    opened_with_files=st.booleans(),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(states)
def test_a_state_survives_json(state: ThreadState) -> None:
    assert from_json(to_json(state)) == state


known = st.dictionaries(st.sampled_from([*ThreadState.__slots__, "new_field"]), json_values)


@given(known.map(json.dumps) | st.text() | st.binary())
def test_any_version_of_a_state_loads(raw: str | bytes) -> None:
    assert isinstance(from_json(raw), ThreadState)


def test_a_newer_or_damaged_state_keeps_its_readable_parts() -> None:
    future = {"schema": 99, "mission": "m", "mood": "fine", "history": [{"role": "user", "text": "t", "mood": 1}]}
    state = from_json(json.dumps(future))
    assert state.mission == "m"
    assert state.history == (ThreadMessage(role="user", text="t"),)
    said = (ThreadMessage(role="user", text="Hello"), ThreadMessage(role="assistant", text="Good morning"))
    raw = json.loads(to_json(with_messages(ThreadState(), *said * 30)))
    assert len(raw["history"]) == 40
    raw["history"][1:-1] = [{"role": 7}]
    assert from_json(json.dumps(raw)).history == said


def test_steps_finish_fail_and_close() -> None:
    plan = Plan(id="p", steps=(Step(description="a"), Step(description="b"), Step(description="c")))
    plan = change_step(change_step(plan, 1, status="done"), 2, status="failed")
    assert [step.status for step in plan.steps] == ["done", "failed", "open"]
    assert change_step(plan, 9, status="done") == change_step(plan, 0, status="done") == plan
    assert close_open_steps(plan, status="done").is_finished


WAITING = ThreadState(
    mission="Roll back",
    todolist_id="t1",
    plan=Plan(id="t1", steps=(Step(description="Ask which environment"),)),
    pending_question=PendingQuestion(key="env", text="Which environment?", user="U1"),
    answers={"who": "me"},
)


def test_another_persons_question_suspends_the_mission_for_one_turn() -> None:
    met = suspend_mission_for(WAITING, "U2")
    assert (met.mission, met.todolist_id, met.plan, met.pending_question) == ("", None, None, None)
    assert met.answers == WAITING.answers
    assert suspend_mission_for(WAITING, "U1") is WAITING
    assert suspend_mission_for(ThreadState(mission="m"), "U2").mission == "m"
    after = with_messages(replace(met, mission="Other"), ThreadMessage(role="user", text="And?", user="U2"))
    assert restore_suspended_mission(after, WAITING, "U2") == replace(WAITING, history=after.history)
    assert restore_suspended_mission(after, WAITING, "U1") is after
    assert restore_suspended_mission(after, ThreadState(), "U2") is after


def message(number: int, *, addressed: bool = True) -> ThreadMessage:
    return ThreadMessage(
        role="user", text=f"secret {number}", user="U1", ts=f"170000000{number}.0", addressed=addressed
    )


def asked_in_turn(state: ThreadState, number: int) -> ThreadState:
    """The state after one more question and its answer, as a turn leaves it."""
    reply = ThreadMessage(role="assistant", text=f"about secret {number}")
    after = replace(state, mission=f"secret {number}", answers={**state.answers, f"key {number}": f"secret {number}"})
    return with_undo(with_messages(after, message(number), reply), state)


@given(st.integers(1, 4), st.integers(1, 4))
def test_a_deleted_message_is_forgotten_and_the_rest_is_kept(asked: int, deleted: int) -> None:
    state = ThreadState()
    for number in range(1, asked + 1):
        state = asked_in_turn(state, number)
    after = without_message(state, message(deleted).ts)
    assert f"secret {deleted}" not in to_json(after)
    others = [m.text for m in state.history if f"secret {deleted}" not in m.text]
    assert [m.text for m in after.history] == others
    assert (after == state) == (deleted > asked)


def test_deleting_a_message_between_people_deletes_no_other() -> None:
    state = with_messages(
        asked_in_turn(ThreadState(), 1), message(2, addressed=False), ThreadMessage(role="assistant", text="later")
    )
    after = without_message(state, message(2).ts)
    assert [m.text for m in after.history] == ["secret 1", "about secret 1", "later"]


@given(known=st.booleans())
def test_quotations_of_a_deleted_message_are_deleted_too(*, known: bool) -> None:
    """A message with only a file is in no history, and the message of a kept text is not known."""
    kept = tuple(
        Source(id=n, title="t", text=f"about secret {n}", origin=origin)
        for n, origin in enumerate(("document", "file", "thread"), start=1)
    )
    before = (
        with_messages(ThreadState(opened_with_files=not known), message(2, addressed=False)) if known else ThreadState()
    )
    state = replace(asked_in_turn(before, 1), sources=kept, opened_with_files=not known)
    assert without_message(state, message(2).ts).sources == kept[:1]
    assert without_message(replace(state, opened_with_files=False), "9.9").sources == kept


def test_a_cancelled_question_leaves_nothing_open() -> None:
    plan = Plan(id="p", steps=(Step(description="a"), Step(description="b", status="done")))
    state = ThreadState(plan=plan, pending_question=PendingQuestion(key="k", text="Which?", user="U1"))
    after = cancel_pending_question(state)
    assert after.pending_question is None
    assert after.plan is not None
    assert [step.status for step in after.plan.steps] == ["skipped", "done"]
    assert cancel_pending_question(ThreadState()) == ThreadState()


@given(st.integers(1, 4), st.integers(1, 4))
def test_an_edited_message_keeps_only_its_new_words(asked: int, edited: int) -> None:
    state = ThreadState(plan=Plan(id="p", steps=(Step(description=f"secret {asked}"), Step(description="b"))))
    for number in range(1, asked + 1):
        state = asked_in_turn(state, number)
    after = with_edited_message(state, message(edited).ts, "said better")
    assert [m.text for m in after.history if m.role == "user"] == [
        "said better" if number == edited else f"secret {number}" for number in range(1, asked + 1)
    ]
    told = to_json(replace(after, history=tuple(m for m in after.history if m.role == "user")))
    assert f"secret {edited}" not in told
    assert (after == state) == (edited > asked)
    assert with_edited_message(after, message(edited).ts, "said better") == after


def test_a_call_belongs_to_the_first_open_step_that_names_its_tool() -> None:
    steps = (Step(description="a"), Step(description="b", tool="search"), Step(description="c", tool="search"))
    plan = Plan(id="p", steps=steps)
    once = begin_step(plan, "search", '{"query": "one"}')
    twice = begin_step(once, "search", '{"query": "two"}')
    assert [step.input for step in once.steps] == ["", '{"query": "one"}', ""]
    assert [step.input for step in twice.steps] == ["", '{"query": "one"}', '{"query": "two"}']
    assert begin_step(twice, "search", "{}") == twice
    assert begin_step(plan, "file_read", "{}") == plan
    done = change_step(plan, 2, status="done")
    assert [step.input for step in begin_step(done, "search", "{}").steps] == ["", "", "{}"]
