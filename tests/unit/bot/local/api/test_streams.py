from typing import Any

from bot.local.model.limits import LENIENT
from bot.local.model.messages import MessageLog
from bot.local.page.people import PersonActions
from bot.local.workspace import WorkspaceState
from tests.support.clock import Clock
from tests.support.local_echo import CHAT, YOU, call, idle, refusal


def start_stream(workspace: WorkspaceState, **arguments: Any) -> str:
    root = PersonActions(workspace).post(YOU, CHAT, "question")
    return str(call(workspace, "chat.startStream", channel=CHAT, thread_ts=root, **arguments)["ts"])


def text(value: str) -> dict[str, str]:
    return {"type": "markdown_text", "text": value}


def task(number: int, status: str, **more: str) -> dict[str, str]:
    return {"type": "task_update", "id": f"t{number}", "title": f"Task {number}", "status": status, **more}


def test_a_stream_grows_and_ends_with_blocks_and_metadata() -> None:
    workspace = idle()
    ts = start_stream(workspace, chunks=[text("**Hel")])
    message = workspace.log.get(CHAT, ts)
    assert message is not None
    assert message.payload()["streaming_state"] == "in_progress"
    call(workspace, "chat.appendStream", channel=CHAT, ts=ts, chunks=[text("lo**")])
    call(workspace, "chat.appendStream", channel=CHAT, ts=ts, chunks=[task(1, "in_progress"), task(2, "pending")])
    call(workspace, "chat.appendStream", channel=CHAT, ts=ts, chunks=[task(1, "complete")])
    metadata = {"event_type": "orion_answer", "event_payload": {}}
    answer = call(
        workspace, "chat.stopStream", channel=CHAT, ts=ts, chunks=[text(" there")],
        blocks=[{"type": "divider"}], metadata=metadata,
    )  # fmt: skip
    shown = answer["message"]
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
