"""What was decided is written down before it is said, and read back as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.thread.conversation import ThreadMessage
from agent.thread.state import ThreadState
from bot.stores.outbox import OutboxEntry, read_entry
from verification.types import Answer, Repair, Source, Violation

words = st.text(max_size=30)
answers = st.builds(
    Answer,
    text=words,
    chunks=st.lists(words, max_size=3).map(tuple),
    sources=st.lists(st.builds(Source, id=st.integers(1, 9), title=words, url=words, text=words), max_size=2).map(
        tuple
    ),
    verified=st.booleans(),
    attempts=st.integers(0, 3),
    repairs=st.lists(st.builds(Repair, kind=words, count=st.integers(1, 9)), max_size=2).map(tuple),
    violations=st.lists(
        st.builds(Violation, rule=st.just("not_empty"), severity=st.just("error"), words=words), max_size=2
    ).map(tuple),
    label=words,
)


@given(answers, words)
def test_an_entry_is_read_back_as_it_was_written(answer: Answer, said: str) -> None:
    state = ThreadState(mission=said, history=(ThreadMessage(role="user", text=said),))
    entry = OutboxEntry(outcome="answered", answer=answer, state=state)
    assert read_entry(entry.to_json()) == entry


@pytest.mark.parametrize(
    "stored", [None, "", "{", "[]", '{"outcome": "answered"}', '{"outcome":1,"answer":{},"state":""}']
)
def test_what_cannot_be_read_counts_as_none(stored: str | None) -> None:
    assert read_entry(stored) is None
