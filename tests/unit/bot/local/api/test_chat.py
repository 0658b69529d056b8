from typing import Any

import pytest

from bot.local.model.errors import ApiError
from bot.local.model.roster import Channel
from bot.local.page.people import PersonActions
from tests.support.local_echo import CHAT, HELP, YOU, call, idle, refused


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"text": "no channel"}, "invalid_arguments"),
        ({"channel": "C404", "text": "x"}, "channel_not_found"),
        ({"channel": HELP}, "no_text"),
        ({"channel": HELP, "text": "  "}, "no_text"),
        ({"channel": HELP, "text": "x", "thread_ts": "1.000001"}, "thread_not_found"),
        ({"channel": HELP, "text": "x", "markdown_text": "y"}, "markdown_text_conflict"),
        ({"channel": HELP, "markdown_text": "y" * 12_001}, "msg_too_long"),
        ({"channel": HELP, "blocks": "not json"}, "invalid_blocks_format"),
        ({"channel": HELP, "blocks": {"type": "divider"}}, "invalid_blocks_format"),
        ({"channel": HELP, "blocks": [{"type": "nothing"}]}, "invalid_blocks"),
        ({"channel": HELP, "text": "x", "metadata": "no json"}, "invalid_metadata_format"),
        ({"channel": HELP, "text": "x", "metadata": {"event_type": "a"}}, "invalid_metadata_schema"),
        (
            {"channel": HELP, "text": "x", "metadata": {"event_type": "a", "event_payload": {"b": "c" * 17_000}}},
            "metadata_too_large",
        ),
    ],
)
def test_what_slack_refuses_to_post(arguments: dict[str, Any], error: str) -> None:
    assert refused(idle(), "chat.postMessage", **arguments) == error


def test_long_text_is_cut_with_a_warning() -> None:
    workspace = idle()
    answer = call(workspace, "chat.postMessage", channel=HELP, text="a" * 40_001)
    assert answer["warning"] == "message_truncated"
    assert len(answer["message"]["text"]) == 40_000


def test_private_places_without_the_app_do_not_exist_and_public_ones_need_membership() -> None:
    workspace = idle()
    workspace.roster.channels["G0"] = Channel(id="G0", name="secret", kind="group", members={YOU})
    workspace.roster.channels["C9"] = Channel(id="C9", name="others", members={YOU})
    found = [refused(workspace, "chat.postMessage", channel=channel, text="x") for channel in ("G0", "C9")]
    assert found == ["channel_not_found", "not_in_channel"]


def test_channels_answer_to_names_and_users_to_their_direct_chat() -> None:
    workspace = idle()
    assert call(workspace, "chat.postMessage", channel="#help", text="x")["channel"] == HELP
    assert call(workspace, "chat.postMessage", channel=YOU, text="x")["channel"] == CHAT
    assert call(workspace, "chat.postMessage", channel="U0RELEASE", text="x")["channel"] == "D0RELEASE"


def test_markdown_text_becomes_a_markdown_block_and_blocks_get_ids() -> None:
    workspace = idle()
    message = call(workspace, "chat.postMessage", channel=HELP, markdown_text="**hi**")["message"]
    (block,) = message["blocks"]
    assert (block["type"], block["text"]) == ("markdown", "**hi**")
    assert block["block_id"]


def test_update_changes_what_is_given_and_keeps_the_rest() -> None:
    workspace = idle()
    metadata = {"event_type": "orion_answer", "event_payload": {"turn_id": "1"}}
    blocks = [{"type": "divider"}]
    ts = call(workspace, "chat.postMessage", channel=HELP, text="a", blocks=blocks, metadata=metadata)["ts"]
    answer = call(workspace, "chat.update", channel=HELP, ts=ts, text="b")
    assert (answer["text"], answer["message"]["metadata"]) == ("b", metadata)
    assert answer["message"]["blocks"][0]["type"] == "divider"
    assert answer["message"]["edited"]["user"] == "U0ORION"
    emptied = call(workspace, "chat.update", channel=HELP, ts=ts, text="c", blocks=[])
    assert "blocks" not in emptied["message"]
    event = workspace.deliveries.log[-1].event
    assert (event["subtype"], event["previous_message"]["text"], event["message"]["text"]) == (
        "message_changed",
        "b",
        "c",
    )
    assert event["hidden"] is True


def test_only_own_messages_change_or_go() -> None:
    workspace = idle()
    theirs = PersonActions(workspace).post(YOU, HELP, "mine")
    own = call(workspace, "chat.postMessage", channel=HELP, text="a")["ts"]
    cases = [
        ("chat.update", {"ts": theirs, "text": "x"}, "cant_update_message"),
        ("chat.update", {"ts": "1.000001", "text": "x"}, "message_not_found"),
        ("chat.update", {"ts": own}, "no_text"),
        ("chat.update", {"ts": own, "text": ""}, "no_text"),
        ("chat.update", {"ts": own, "text": "a" * 4_001}, "msg_too_long"),
        ("chat.delete", {"ts": theirs}, "cant_delete_message"),
        ("chat.delete", {"ts": "1.000001"}, "message_not_found"),
    ]
    for method, arguments, error in cases:
        assert refused(workspace, method, channel=HELP, **arguments) == error
    assert call(workspace, "chat.delete", channel=HELP, ts=own)["ts"] == own
    assert workspace.log.get(HELP, own) is None
    event = workspace.deliveries.log[-1].event
    assert (event["subtype"], event["deleted_ts"]) == ("message_deleted", own)


def test_ephemeral_messages_are_seen_by_one_person_and_sent_to_no_app() -> None:
    workspace = idle()
    ts = call(workspace, "chat.postEphemeral", channel=HELP, user=YOU, text="psst")["message_ts"]
    message = workspace.log.get(HELP, ts)
    assert message is not None
    assert message.ephemeral_for == YOU
    assert not workspace.deliveries.log
    assert call(workspace, "conversations.history", channel=HELP)["messages"] == []
    workspace.roster.channels[HELP].members.discard("U0RELEASE")
    cases = [
        ({"user": "U0RELEASE", "text": "x"}, "user_not_in_channel"),
        ({"user": "U404", "text": "x"}, "user_not_found"),
        ({"user": YOU}, "no_text"),
    ]
    for arguments, error in cases:
        assert refused(workspace, "chat.postEphemeral", channel=HELP, **arguments) == error
    with pytest.raises(ApiError):
        call(workspace, "chat.update", channel=HELP, ts=ts, text="x")
