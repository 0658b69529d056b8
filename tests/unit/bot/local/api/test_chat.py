from tests.support.local_echo import CHAT, HELP, YOU, call, idle


def test_long_text_is_cut() -> None:
    answer = call(idle(), "chat.postMessage", channel=HELP, text="a" * 40_001)
    assert len(answer["message"]["text"]) == 40_000


def test_channels_can_be_given_by_name_and_users_by_id() -> None:
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


def test_an_update_changes_the_given_parts_and_keeps_the_rest() -> None:
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


def test_own_message_is_deleted() -> None:
    workspace = idle()
    own = call(workspace, "chat.postMessage", channel=HELP, text="a")["ts"]
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
