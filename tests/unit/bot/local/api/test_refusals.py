"""Calls that Slack refuses, and its name for the reason."""

from typing import Any

import pytest

from bot.local.model.roster import Channel
from bot.local.page.people import PersonActions
from tests.support.local_echo import CHAT, HELP, YOU, call, idle, modal, refusal

META = {"event_type": "a", "event_payload": {"b": "c" * 17_000}}
PLAIN = {"type": "markdown_text", "text": "a"}
TASK = {"type": "task_update", "id": "1", "title": "t", "status": "pending"}
PROMPT = {"title": "Try", "message": "How?"}
IN_HELP: list[tuple[str, dict[str, Any], str]] = [
    ("chat.postMessage", {}, "no_text"),
    ("chat.postMessage", {"text": "  "}, "no_text"),
    ("chat.postMessage", {"text": "x", "thread_ts": "1.000001"}, "thread_not_found"),
    ("chat.postMessage", {"text": "x", "markdown_text": "y"}, "markdown_text_conflict"),
    ("chat.postMessage", {"markdown_text": "y" * 12_001}, "msg_too_long"),
    ("chat.postMessage", {"blocks": "not json"}, "invalid_blocks_format"),
    ("chat.postMessage", {"blocks": {"type": "divider"}}, "invalid_blocks_format"),
    ("chat.postMessage", {"blocks": [{"type": "nothing"}]}, "invalid_blocks"),
    ("chat.postMessage", {"text": "x", "metadata": "no json"}, "invalid_metadata_format"),
    ("chat.postMessage", {"text": "x", "metadata": {"event_type": "a"}}, "invalid_metadata_schema"),
    ("chat.postMessage", {"text": "x", "metadata": META}, "metadata_too_large"),
    ("chat.postMessage", {"text": "x", "channel": ""}, "invalid_arguments"),
    ("chat.postMessage", {"text": "x", "channel": "C404"}, "channel_not_found"),
    ("chat.postMessage", {"text": "x", "channel": "G0"}, "channel_not_found"),
    ("chat.postMessage", {"text": "x", "channel": "C9"}, "not_in_channel"),
    ("chat.update", {"ts": "ROOT", "text": "x"}, "cant_update_message"),
    ("chat.update", {"ts": "1.000001", "text": "x"}, "message_not_found"),
    ("chat.update", {"ts": "WHISPER", "text": "x"}, "message_not_found"),
    ("chat.update", {"ts": "OWN"}, "no_text"),
    ("chat.update", {"ts": "OWN", "text": ""}, "no_text"),
    ("chat.update", {"ts": "OWN", "text": "a" * 4_001}, "msg_too_long"),
    ("chat.delete", {"ts": "ROOT"}, "cant_delete_message"),
    ("chat.delete", {"ts": "1.000001"}, "message_not_found"),
    ("chat.postEphemeral", {"user": "U0RELEASE", "text": "x"}, "user_not_in_channel"),
    ("chat.postEphemeral", {"user": "U404", "text": "x"}, "user_not_found"),
    ("chat.postEphemeral", {"user": YOU}, "no_text"),
    ("conversations.replies", {"ts": "1.000001"}, "thread_not_found"),
    ("chat.startStream", {"thread_ts": "ROOT"}, "missing_recipient_team_id"),
    ("chat.startStream", {"thread_ts": "ROOT", "recipient_team_id": "T0LOCAL"}, "missing_recipient_user_id"),
    ("chat.appendStream", {"ts": "ROOT"}, "message_not_owned_by_app"),
]
TO_STREAMS: list[tuple[str, dict[str, Any], str]] = [
    ("TEXT", {}, "no_text"),
    ("TEXT", {"chunks": "no json"}, "invalid_chunks"),
    ("TEXT", {"chunks": [{"type": "unknown"}]}, "invalid_chunks"),
    ("TEXT", {"chunks": [TASK | {"status": "odd"}]}, "invalid_chunks"),
    ("TEXT", {"chunks": [TASK | {"title": ""}]}, "invalid_chunks"),
    ("TEXT", {"chunks": [PLAIN | {"text": "a" * 12_001}]}, "msg_too_long"),
    ("TEXT", {"chunks": [PLAIN], "markdown_text": "b"}, "cannot_provide_both_markdown_text_and_chunks"),
    ("TEXT", {"chunks": [TASK]}, "streaming_mode_mismatch"),
    ("CHUNKS", {"markdown_text": "b"}, "streaming_mode_mismatch"),
]
VIEWS: list[dict[str, Any]] = [
    {"type": "home"},
    {"blocks": None},
    {"title": None},
    {"title": {"type": "plain_text", "text": "x" * 25}},
    {"callback_id": "x" * 256},
    {"private_metadata": "x" * 3_001},
    {"blocks": [{"type": "divider"}] * 101},
    {"submit": None},
]


@pytest.mark.parametrize(("method", "arguments", "error"), IN_HELP)
def test_a_faulty_call_is_refused(method: str, arguments: dict[str, Any], error: str) -> None:
    workspace = idle()
    for channel in (Channel(id="G0", name="secret", kind="group"), Channel(id="C9", name="others")):
        workspace.roster.channels[channel.id] = channel
        channel.members.add(YOU)
    workspace.roster.channels[HELP].members.discard("U0RELEASE")
    stamps = {
        "ROOT": PersonActions(workspace).post(YOU, HELP, "theirs"),
        "OWN": call(workspace, "chat.postMessage", channel=HELP, text="own")["ts"],
        "WHISPER": call(workspace, "chat.postEphemeral", channel=HELP, user=YOU, text="psst")["message_ts"],
    }
    given = {name: stamps.get(value, value) if name.endswith("ts") else value for name, value in arguments.items()}
    assert refusal(workspace, method, **{"channel": HELP, **given}) == error


@pytest.mark.parametrize(("stream", "arguments", "error"), TO_STREAMS)
def test_a_faulty_piece_of_a_stream_is_refused(stream: str, arguments: dict[str, Any], error: str) -> None:
    workspace = idle()
    root = PersonActions(workspace).post(YOU, CHAT, "question")
    first: dict[str, Any] = {"markdown_text": "a"} if stream == "TEXT" else {"chunks": [PLAIN]}
    ts = call(workspace, "chat.startStream", channel=CHAT, thread_ts=root, **first)["ts"]
    assert refusal(workspace, "chat.appendStream", channel=CHAT, ts=ts, **arguments) == error


@pytest.mark.parametrize("prompts", [[PROMPT] * 5, [{"title": "x"}], []])
def test_invalid_suggested_prompts_are_refused(prompts: list[dict[str, str]]) -> None:
    method = "assistant.threads.setSuggestedPrompts"
    assert refusal(idle(), method, channel_id=CHAT, prompts=prompts) == "invalid_arguments"


@pytest.mark.parametrize("change", VIEWS)
def test_an_invalid_view_is_refused(change: dict[str, Any]) -> None:
    workspace = idle()
    trigger = workspace.views.new_trigger(YOU)
    assert refusal(workspace, "views.open", trigger_id=trigger, view=modal() | change) == "invalid_arguments"
