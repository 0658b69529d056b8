"""Messages between people as a source."""

from __future__ import annotations

import pytest

from agent.budget import Budget
from agent.quoting.model import ExtractiveModel
from agent.thread.conversation import Question, ThreadKey, ThreadMessage
from agent.thread.state import ThreadState
from agent.turn.progress import MAX_THREAD_CHARS, Progress
from verification.types import Source

QUESTION = Question(thread=ThreadKey(team="T1", channel="C1", thread_ts="1.0"), user="U1", text="And?", ts="2.0")


def earlier(*texts: str) -> tuple[Source, ...]:
    said = [
        ThreadMessage(role="user", text=text, user=f"U{n}", ts=f"1.{n}", addressed=False)
        for n, text in enumerate(texts)
    ]
    asked = ThreadMessage(role="user", text="asked", user="U1", ts="1.9")
    progress = Progress(
        question=QUESTION,
        state=ThreadState(history=(*said, asked)),
        model=ExtractiveModel(),
        tools={},
        budget=Budget(),
        emit=lambda _: None,
    )
    progress.add_thread_messages()
    return tuple(progress.sources)


def test_messages_between_people_are_one_source() -> None:
    (source,) = earlier("one", "two")
    assert (source.title, source.text) == ("Earlier in this thread", "Member U0: one\nMember U1: two")
    assert earlier() == ()


@pytest.mark.parametrize(
    ("texts", "title", "begins"),
    [
        (["old " * 5_000, "the latest"], "Earlier in this thread (its last 2 messages)", "Member U0: old old"),
        (["lost", "old " * 5_000, "new"], "Earlier in this thread (its last 2 messages)", "Member U1: old old"),
        (["lost", "a log " * 5_000], "Earlier in this thread (part of its last message)", "Member U1: a log"),
    ],
)
def test_of_a_long_thread_the_latest_is_read_and_the_title_says_so(texts: list[str], title: str, begins: str) -> None:
    (source,) = earlier(*texts)
    assert source.title == title
    assert source.text.startswith(begins)
    assert len(source.text) <= MAX_THREAD_CHARS
    assert source.text.splitlines()[-1].startswith(f"Member U{len(texts) - 1}: {texts[-1][:3]}")
