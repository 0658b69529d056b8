from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.local.api.call import Call
from bot.local.model.errors import ApiError
from bot.local.model.roster import Channel
from bot.local.page.people import PersonActions
from tests.support.local_echo import CHAT, HELP, YOU, call, idle, refused


@given(count=st.integers(0, 40), limit=st.integers(1, 12))
def test_pages_hold_everything_once_and_in_order(count: int, limit: int) -> None:
    seen: list[int] = []
    cursor = ""
    while True:
        items, cursor = Call(idle(), {"limit": limit, "cursor": cursor}).page(range(count), 100)
        assert len(items) <= limit
        seen += items
        if not cursor:
            break
    assert seen == list(range(count))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"cursor": "!!"}, "invalid_cursor"),
        ({"cursor": "YmFkOjE="}, "invalid_cursor"),
        ({"limit": "many"}, "invalid_arguments"),
        ({"limit": -1}, "invalid_limit"),
    ],
)
def test_bad_cursors_and_limits_are_refused(arguments: dict[str, Any], error: str) -> None:
    with pytest.raises(ApiError) as caught:
        Call(idle(), arguments).page([1], 10)
    assert caught.value.error == error


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


def test_root_without_replies_has_no_thread_ts_and_a_reply_stands_alone() -> None:
    workspace = idle()
    people = PersonActions(workspace)
    root = people.post(YOU, HELP, "root")
    assert "thread_ts" not in call(workspace, "conversations.replies", channel=HELP, ts=root)["messages"][0]
    reply = people.post(YOU, HELP, "reply", root)
    assert call(workspace, "conversations.replies", channel=HELP, ts=root)["messages"][0]["thread_ts"] == root
    alone = call(workspace, "conversations.replies", channel=HELP, ts=reply)["messages"]
    assert [one["ts"] for one in alone] == [reply]
    assert refused(workspace, "conversations.replies", channel=HELP, ts="1.000001") == "thread_not_found"


def test_history_is_newest_first_and_keeps_to_its_window() -> None:
    workspace = idle()
    people = PersonActions(workspace)
    stamps = [people.post(YOU, HELP, str(number)) for number in range(4)]
    people.post(YOU, HELP, "a reply", stamps[0])

    def texts(**window: Any) -> list[str]:
        return [one["text"] for one in call(workspace, "conversations.history", channel=HELP, **window)["messages"]]

    assert texts() == ["3", "2", "1", "0"]
    assert texts(oldest=stamps[1]) == ["3", "2"]
    assert texts(oldest=stamps[1], latest=stamps[2], inclusive=True) == ["2", "1"]
    with pytest.raises(ApiError):
        texts(oldest="soon")


def test_channels_are_listed_by_type() -> None:
    workspace = idle()
    workspace.roster.channels["G0"] = Channel(id="G0", name="secret", kind="group", members={YOU})
    public = call(workspace, "conversations.list")["channels"]
    assert [one["name"] for one in public] == ["general", "help", "engineering"]
    everything = call(workspace, "conversations.list", types="public_channel,private_channel,im")["channels"]
    assert [one["id"] for one in everything] == ["C0GENERAL", HELP, "C0ENGINEERING", CHAT]
    assert everything[-1]["is_im"] is True
    assert refused(workspace, "conversations.list", types="odd") == "invalid_types"
    info = call(workspace, "conversations.info", channel=HELP)["channel"]
    assert (info["is_private"], info["is_member"]) == (False, True)


def test_people_bots_and_files_are_known() -> None:
    workspace = idle()
    assert call(workspace, "users.info", user="U0ORION")["user"]["is_bot"] is True
    file_id = PersonActions(workspace).add_file(YOU, "notes.txt", b"hello")
    file = call(workspace, "files.info", file=file_id)["file"]
    assert (file["mimetype"], file["mode"], file["size"]) == ("text/plain", "snippet", 5)
    for method, arguments, error in (
        ("users.info", {"user": "U404"}, "user_not_found"),
        ("files.info", {"file": "F404"}, "file_not_found"),
    ):
        assert refused(workspace, method, **arguments) == error
