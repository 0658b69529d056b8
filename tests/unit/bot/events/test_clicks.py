"""Buttons, shortcuts and dialogs that people use, as values."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slack_bolt.async_app import AsyncBoltContext

from agent.thread.conversation import ThreadKey
from bot.delivery.dialogs import read_complaint
from bot.events.clicks import Click, Services, as_message, read_click, read_shortcut

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
PRESSED: dict[str, Any] = {
    "team": {"id": "T1"},
    "user": {"id": "UANN"},
    "channel": {"id": "C1"},
    "message": {"ts": "2.0", "thread_ts": "1.0"},
    "actions": [{"value": "turn-7"}],
}


def click(body: Any) -> Click:
    return read_click(cast("Services", None), body, AsyncBoltContext({"team_id": "T1"}))


def test_every_click_on_one_answer_is_the_same_message() -> None:
    first, second = (as_message(click({**PRESSED, "user": {"id": user}}), "hand_off") for user in ("U1", "U2"))
    assert first is not None
    assert second is not None
    assert first.event_ids == second.event_ids != ()
    assert (first.kind, first.ts, first.text) == ("hand_off", "2.0", "turn-7")


@pytest.mark.parametrize("without", ["user", "channel", "message", "actions"])
def test_half_a_click_is_ignored(without: str) -> None:
    assert as_message(click({key: value for key, value in PRESSED.items() if key != without}), "hand_off") is None


def test_a_click_in_a_direct_message_is_answered_there_also_for_a_sister_workspace() -> None:
    body = {
        **PRESSED,
        "team": {"id": "T9"},
        "channel": {},
        "message": {},
        "container": {"channel_id": "D1", "message_ts": "2.0"},
    }
    assert click(body).place == ThreadKey(team="T1", channel="D1", thread_ts="D1")


@given(JSON | st.fixed_dictionaries({"actions": JSON, "user": JSON, "event": JSON, "channel": JSON, "view": JSON}))
def test_no_payload_makes_it_crash(body: Any) -> None:
    assert as_message(click(body), "hand_off") is None
    assert read_shortcut(body) is None
    assert read_complaint(body)[0] == ()
