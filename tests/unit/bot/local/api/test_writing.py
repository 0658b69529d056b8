"""Calls that write: messages, streams, statuses and views, and Slack's name for the reason of a refusal."""

from typing import Any

import pytest

from bot.local.model.limits import LENIENT, Strictness
from bot.local.model.messages import MessageLog
from bot.local.model.roster import Channel
from bot.local.page.people import PersonActions
from bot.local.workspace import WorkspaceState
from tests.support.clock import Clock
from tests.support.local_echo import CHAT, HELP, YOU, call, idle, modal, refusal


@pytest.fixture
def workspace() -> WorkspaceState:
    return idle()


def test_long_text_is_cut() -> None:
    answer = call(idle(), "chat.postMessage", channel=HELP, text="a" * 40_001)
    assert len(answer["message"]["text"]) == 40_000


def test_channels_can_be_given_by_name_and_users_by_id(workspace: WorkspaceState) -> None:
    assert call(workspace, "chat.postMessage", channel="#help", text="x")["channel"] == HELP
    assert call(workspace, "chat.postMessage", channel=YOU, text="x")["channel"] == CHAT
    assert call(workspace, "chat.postMessage", channel="U0RELEASE", text="x")["channel"] == "D0RELEASE"


def test_markdown_text_becomes_a_markdown_block_and_blocks_get_ids(workspace: WorkspaceState) -> None:
    message = call(workspace, "chat.postMessage", channel=HELP, markdown_text="**hi**")["message"]
    (block,) = message["blocks"]
    assert (block["type"], block["text"]) == ("markdown", "**hi**")
    assert block["block_id"]


def test_an_update_changes_the_given_parts_and_keeps_the_rest(workspace: WorkspaceState) -> None:
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
    assert (event["subtype"], event["hidden"]) == ("message_changed", True)
    assert (event["previous_message"]["text"], event["message"]["text"]) == ("b", "c")


def start_stream(workspace: WorkspaceState, **arguments: Any) -> str:
    root = PersonActions(workspace).post(YOU, CHAT, "question")
    return str(call(workspace, "chat.startStream", channel=CHAT, thread_ts=root, **arguments)["ts"])


def text(value: str) -> dict[str, str]:
    return {"type": "markdown_text", "text": value}


def task(number: int, status: str, **more: str) -> dict[str, str]:
    return {"type": "task_update", "id": f"t{number}", "title": f"Task {number}", "status": status, **more}


def test_a_stream_grows_and_ends_with_blocks_and_metadata(workspace: WorkspaceState) -> None:
    ts = start_stream(workspace, chunks=[text("**Hel")])
    assert (message := workspace.log.get(CHAT, ts)) is not None
    assert message.payload()["streaming_state"] == "in_progress"
    call(workspace, "chat.appendStream", channel=CHAT, ts=ts, chunks=[text("lo**")])
    call(workspace, "chat.appendStream", channel=CHAT, ts=ts, chunks=[task(1, "in_progress"), task(2, "pending")])
    call(workspace, "chat.appendStream", channel=CHAT, ts=ts, chunks=[task(1, "complete")])
    metadata = {"event_type": "orion_answer", "event_payload": {}}
    end: dict[str, Any] = {"blocks": [{"type": "divider"}], "metadata": metadata}
    shown = call(workspace, "chat.stopStream", channel=CHAT, ts=ts, chunks=[text(" there")], **end)["message"]
    assert shown["text"] == "**Hello** there"
    assert [block["type"] for block in shown["blocks"]] == ["markdown", "task_card", "task_card", "markdown", "divider"]
    assert [(one["task_id"], one["status"]) for one in shown["blocks"][1:3]] == [("t1", "complete"), ("t2", "pending")]
    assert "streaming_state" not in shown


def test_a_stream_dies_after_five_minutes_and_can_then_be_updated() -> None:
    workspace, clock = idle(), Clock()
    workspace.log = MessageLog(clock)
    ts = start_stream(workspace, markdown_text="a")
    assert refusal(workspace, "chat.update", channel=CHAT, ts=ts, text="b") == "streaming_state_conflict"
    clock.now += LENIENT.stream_seconds
    late = refusal(workspace, "chat.appendStream", channel=CHAT, ts=ts, markdown_text="b")
    assert late == "message_not_in_streaming_state"
    assert call(workspace, "chat.update", channel=CHAT, ts=ts, text="b", blocks=[])["text"] == "b"


async def test_status_and_session_are_one_state_that_only_their_thread_ends(workspace: WorkspaceState) -> None:
    ts = PersonActions(workspace).post(YOU, CHAT, "question")
    where = {"channel_id": CHAT, "thread_ts": ts}
    call(workspace, "assistant.threads.setStatus", **where, status="is searching")
    call(workspace, "chat.postMessage", channel=CHAT, text="a card of its own")
    assert workspace.threads.status_payloads()
    states = [workspace.threads.sessions[(CHAT, ts)].status]
    call(workspace, "assistant.threads.setStatus", **where, status="")
    states.append(workspace.threads.sessions[(CHAT, ts)].status)
    call(workspace, "assistant.threads.setStatus", **where, status="is reading")
    call(workspace, "agents.sessions.setStatus", **where, status="active", title="Releases")
    states.append(workspace.threads.sessions[(CHAT, ts)].status)
    assert (states, workspace.threads.status_payloads()) == (["processing", "active", "active"], [])


async def test_a_status_disappears_by_itself() -> None:
    workspace = WorkspaceState(strictness=Strictness(status_seconds=0.01))
    ts = PersonActions(workspace).post(YOU, HELP, "question")
    call(workspace, "assistant.threads.setStatus", channel_id=HELP, thread_ts=ts, status="is searching")
    await workspace.feed.wait_for(lambda: not workspace.threads.statuses)


def test_suggested_prompts_apply_to_the_chat_and_are_ignored_for_a_thread(workspace: WorkspaceState) -> None:
    prompts = [{"title": "Try", "message": "How?"}]
    method = "assistant.threads.setSuggestedPrompts"
    call(workspace, method, channel_id=CHAT, prompts=prompts, thread_ts="1.0")
    assert not workspace.threads.prompts
    call(workspace, method, channel_id=CHAT, prompts=prompts, title="Ask")
    assert workspace.threads.prompts == {CHAT: {"title": "Ask", "prompts": prompts}}


def test_a_trigger_opens_a_modal_only_once_and_in_time(workspace: WorkspaceState) -> None:
    trigger = workspace.views.new_trigger(YOU)
    view = call(workspace, "views.open", trigger_id=trigger, view=modal())["view"]
    assert view["type"] == "modal"
    assert refusal(workspace, "views.open", trigger_id=trigger, view=modal()) == "exchanged_trigger_id"
    assert refusal(workspace, "views.open", trigger_id="nonsense", view=modal()) == "invalid_trigger_id"
    assert refusal(workspace, "views.open", trigger_id=workspace.views.new_trigger(YOU)) == "invalid_arguments"
    late = WorkspaceState(strictness=Strictness(trigger_seconds=-1))
    assert refusal(late, "views.open", trigger_id=late.views.new_trigger(YOU), view=modal()) == "expired_trigger_id"


def test_the_home_is_published_per_user_and_keeps_its_id(workspace: WorkspaceState) -> None:
    home = {"type": "home", "blocks": [{"type": "divider"}]}
    first = call(workspace, "views.publish", user_id=YOU, view=home)["view"]
    again = call(workspace, "views.publish", user_id=YOU, view=home)["view"]
    assert again["id"] == first["id"]
    assert refusal(workspace, "views.publish", user_id="U404", view=home) == "user_not_found"
    PersonActions(workspace).open_home()
    event = workspace.deliveries.log[-1].event
    assert (event["type"], event["tab"], event["view"]["id"]) == ("app_home_opened", "home", first["id"])
    PersonActions(workspace).open_home(tab="messages")
    assert "view" not in workspace.deliveries.log[-1].event


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
def test_a_faulty_call_is_refused(
    method: str, arguments: dict[str, Any], error: str, workspace: WorkspaceState
) -> None:
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
def test_a_faulty_piece_of_a_stream_is_refused(
    stream: str, arguments: dict[str, Any], error: str, workspace: WorkspaceState
) -> None:
    root = PersonActions(workspace).post(YOU, CHAT, "question")
    first: dict[str, Any] = {"markdown_text": "a"} if stream == "TEXT" else {"chunks": [PLAIN]}
    ts = call(workspace, "chat.startStream", channel=CHAT, thread_ts=root, **first)["ts"]
    assert refusal(workspace, "chat.appendStream", channel=CHAT, ts=ts, **arguments) == error


@pytest.mark.parametrize("prompts", [[PROMPT] * 5, [{"title": "x"}], []])
def test_invalid_suggested_prompts_are_refused(prompts: list[dict[str, str]]) -> None:
    method = "assistant.threads.setSuggestedPrompts"
    assert refusal(idle(), method, channel_id=CHAT, prompts=prompts) == "invalid_arguments"


@pytest.mark.parametrize("change", VIEWS)
def test_an_invalid_view_is_refused(change: dict[str, Any], workspace: WorkspaceState) -> None:
    trigger = workspace.views.new_trigger(YOU)
    assert refusal(workspace, "views.open", trigger_id=trigger, view=modal() | change) == "invalid_arguments"
