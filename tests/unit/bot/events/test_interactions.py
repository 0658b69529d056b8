"""Buttons and dialogs that people use."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent.thread.conversation import ThreadKey
from bot.events.interactions import Feedback, read_complaint, read_feedback, read_hand_off, read_shortcut

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def click(value: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "block_actions",
        "trigger_id": "1.2.abc",
        "team": {"id": "T1"},
        "user": {"id": "UANN"},
        "channel": {"id": "C1"},
        "container": {"type": "message", "message_ts": "1700000001.000100", "channel_id": "C1"},
        "message": {"ts": "1700000001.000100", "thread_ts": "1700000000.000100"},
        "actions": [{"action_id": "orion_feedback", "value": value}],
        **fields,
    }


def test_feedback_click_names_turn_verdict_and_place() -> None:
    place = ThreadKey(team="T1", channel="C1", thread_ts="1700000000.000100")
    wanted = Feedback(turn_id="turn-7", good=True, user="UANN", place=place, trigger_id="1.2.abc")
    assert read_feedback(click("good:turn-7")) == wanted
    bad = read_feedback(click("bad:turn-7"))
    assert isinstance(bad, Feedback)
    assert not bad.good


def test_click_in_a_direct_chat_is_thanked_there() -> None:
    body = click("good:turn-7", channel={}, message={})
    body["container"]["channel_id"] = "D1"
    found = read_feedback(body)
    assert isinstance(found, Feedback)
    assert found.place.thread_ts == "D1"


def test_other_values_are_ignored() -> None:
    assert read_feedback(click("splendid:turn-7")) is None
    assert read_feedback(click("good:")) is None


@given(JSON | st.fixed_dictionaries({"actions": JSON, "user": JSON, "event": JSON, "channel": JSON, "view": JSON}))
def test_no_payload_makes_it_crash(body: object) -> None:
    for read in (read_feedback, read_hand_off, read_shortcut, read_complaint):
        assert read(body) is None
