from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.local.api.call import Call
from bot.local.page.people import PersonActions
from tests.support.local_echo import HELP, YOU, call, idle


@given(count=st.integers(0, 40), limit=st.integers(1, 12))
def test_the_pages_contain_everything_once_and_in_order(count: int, limit: int) -> None:
    seen: list[int] = []
    cursor = ""
    while True:
        items, cursor = Call(idle(), {"limit": limit, "cursor": cursor}).page(range(count), 100)
        assert len(items) <= limit
        seen += items
        if not cursor:
            break
    assert seen == list(range(count))


def test_replies_come_oldest_first_with_their_root_and_metadata_on_request() -> None:
    workspace = idle()
    root = PersonActions(workspace).post(YOU, HELP, "root")
    metadata = {"event_type": "orion_answer", "event_payload": {"turn_id": "1"}}
    for number in range(3):
        call(workspace, "chat.postMessage", channel=HELP, thread_ts=root, text=str(number), metadata=metadata)
    first = call(workspace, "conversations.replies", channel=HELP, ts=root, limit=2)
    assert [one["text"] for one in first["messages"]] == ["root", "0"]
    assert first["has_more"] is True
    assert "metadata" not in first["messages"][1]
    cursor = first["response_metadata"]["next_cursor"]
    rest = call(workspace, "conversations.replies", channel=HELP, ts=root, cursor=cursor, include_all_metadata="1")
    assert [one["text"] for one in rest["messages"]] == ["1", "2"]
    assert rest["messages"][0]["metadata"] == metadata
    assert first["messages"][0]["reply_count"] == 3


def test_a_root_without_replies_has_no_thread_ts_and_a_reply_stands_alone() -> None:
    workspace = idle()
    people = PersonActions(workspace)
    root = people.post(YOU, HELP, "root")
    assert "thread_ts" not in call(workspace, "conversations.replies", channel=HELP, ts=root)["messages"][0]
    reply = people.post(YOU, HELP, "reply", root)
    assert call(workspace, "conversations.replies", channel=HELP, ts=root)["messages"][0]["thread_ts"] == root
    alone = call(workspace, "conversations.replies", channel=HELP, ts=reply)["messages"]
    assert [one["ts"] for one in alone] == [reply]


def test_history_is_newest_first_and_within_its_window() -> None:
    workspace = idle()
    people = PersonActions(workspace)
    stamps = [people.post(YOU, HELP, str(number)) for number in range(4)]
    people.post(YOU, HELP, "a reply", stamps[0])

    def texts(**window: Any) -> list[str]:
        return [one["text"] for one in call(workspace, "conversations.history", channel=HELP, **window)["messages"]]

    assert texts() == ["3", "2", "1", "0"]
    assert texts(oldest=stamps[1]) == ["3", "2"]
    assert texts(oldest=stamps[1], latest=stamps[2], inclusive=True) == ["2", "1"]
