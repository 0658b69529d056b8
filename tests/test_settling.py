"""A letter that asks for a second look is read back as it was written, and no person's letter is taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.conversation import ThreadKey
from bot.intake import Incoming
from bot.settling import Unsettled, read_unsettled

words = st.text(max_size=20)


@given(words, words, words, words)
def test_e5_it_is_read_back_as_it_was_written(team: str, channel: str, thread_ts: str, ts: str) -> None:
    unsettled = Unsettled(place=ThreadKey(team=team, channel=channel, thread_ts=thread_ts), question_ts=ts)
    assert read_unsettled(unsettled.to_json()) == unsettled
    with pytest.raises(ValueError):  # noqa: PT011 - any reason will do: it is no letter of a person's
        Incoming.from_json(unsettled.to_json())


@given(words)
def test_e5_a_persons_letter_is_none(text: str) -> None:
    place = ThreadKey(team="T", channel="C", thread_ts="1.0")
    letter = Incoming(kind="question", thread=place, user="U", ts="1.0", addressed="mention", text=text)
    assert read_unsettled(letter.to_json()) is None


@pytest.mark.parametrize("body", ["", "[]", "{}", '"settle"', '{"settle": 1}', '{"settle": {"place": {}}}'])
def test_e5_what_cannot_be_read_is_none(body: str) -> None:
    assert read_unsettled(body) is None
