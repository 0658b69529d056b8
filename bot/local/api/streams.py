"""``chat.startStream``, ``appendStream``, ``stopStream``: a message that grows for five minutes at most.

A stream takes text or chunks, never both; its first content decides.
"""

from __future__ import annotations

from typing import Final

from bot.local.api.arguments import Arguments
from bot.local.api.chat import Content, bot_message
from bot.local.api.places import message_of, own_channel, thread_root
from bot.local.model.errors import ApiError, invalid
from bot.local.model.limits import check_blocks, check_markdown, check_metadata
from bot.local.model.messages import Message
from bot.local.model.roster import BOT_ID, Json
from bot.local.workspace import Workspace

TASK_STATES: Final = ("pending", "in_progress", "complete", "error")
DISPLAY_MODES: Final = ("timeline", "plan")
SESSION_STATES: Final = ("active", "processing", "suspended", "closed")


def read_chunks(workspace: Workspace, arguments: Arguments) -> list[Json]:
    """What a call adds: its ``chunks``, or its ``markdown_text`` as one chunk.

    Raises ``ApiError``: ``invalid_chunks``, ``msg_too_long`` or ``cannot_provide_both_markdown_text_and_chunks``.
    """
    chunks = arguments.objects("chunks", error="invalid_chunks")
    if markdown := arguments.text("markdown_text"):
        if chunks:
            raise ApiError(error="cannot_provide_both_markdown_text_and_chunks")
        chunks = [{"type": "markdown_text", "text": markdown}]
    for chunk in chunks:
        _check_chunk(workspace, chunk)
    return chunks


def _check_chunk(workspace: Workspace, chunk: Json) -> None:
    kind = chunk.get("type")
    if kind == "markdown_text" and isinstance(chunk.get("text"), str):
        check_markdown(chunk["text"], workspace.setup.strictness)
    elif kind == "blocks" and isinstance(chunk.get("blocks"), list):
        check_blocks(chunk["blocks"], workspace.setup.strictness)
    elif kind == "task_update":
        if not (chunk.get("id") and chunk.get("title")) or chunk.get("status") not in TASK_STATES:
            raise ApiError(error="invalid_chunks")
    elif kind != "plan_update" or not chunk.get("title"):
        raise ApiError(error="invalid_chunks")


def settle_mode(message: Message, arguments: Arguments) -> None:
    """Holds a stream to the kind of content that it began with. Raises ``ApiError``: ``streaming_mode_mismatch``."""
    mode = "chunks" if arguments.objects("chunks", error="invalid_chunks") else "text"
    if mode == "text" and not arguments.text("markdown_text"):
        return
    if message.stream_mode not in ("", mode):
        raise ApiError(error="streaming_mode_mismatch")
    message.stream_mode = mode


def grow(message: Message, chunks: list[Json]) -> None:
    """Adds chunks to a streamed message: text to its last text block, tasks by their id."""
    for chunk in chunks:
        if chunk["type"] == "markdown_text":
            _grow_text(message, chunk["text"])
        elif chunk["type"] == "blocks":
            message.blocks.extend(chunk["blocks"])
        elif chunk["type"] == "task_update":
            _grow_tasks(message, chunk)
        elif message.task_display == "plan":  # only a plan has a title
            _plan(message)["title"] = chunk["title"]


def _grow_text(message: Message, text: str) -> None:
    message.text += text
    if message.blocks and message.blocks[-1]["type"] == "markdown":
        message.blocks[-1]["text"] += text
    else:
        message.blocks.append({"type": "markdown", "text": text})


def _plan(message: Message) -> Json:
    """The plan block of a stream, made when there is none."""
    for block in message.blocks:
        if block["type"] == "plan":
            return block
    message.blocks.insert(0, {"type": "plan", "title": "", "tasks": []})
    return message.blocks[0]


def _grow_tasks(message: Message, chunk: Json) -> None:
    """A task is one of the plan's where these are shown as a plan, else a block of its own."""
    tasks: list[Json] = _plan(message)["tasks"] if message.task_display == "plan" else message.blocks
    news = {key: value for key, value in chunk.items() if key not in ("type", "id") and value is not None}
    for task in tasks:
        if task.get("task_id") == chunk["id"]:
            task.update(news)
            return
    tasks.append({"type": "task_card", "task_id": chunk["id"], **news})


def start_stream(workspace: Workspace, arguments: Arguments) -> Json:
    """``chat.startStream``."""
    channel = own_channel(workspace, arguments)
    if channel.kind != "im":
        for name in ("recipient_team_id", "recipient_user_id"):
            if name not in arguments:
                raise ApiError(error=f"missing_{name}")
    thread = thread_root(workspace, channel, arguments.required("thread_ts"))
    chunks = read_chunks(workspace, arguments)
    display = arguments.text("task_display_mode") or "timeline"
    if display not in DISPLAY_MODES:
        raise invalid(["must be one of the display modes [json-pointer:/task_display_mode]"])
    empty = Content(text="", blocks=None, attachments=None, metadata=None)
    message = bot_message(workspace, channel, empty, thread)
    message.streaming = True
    message.task_display = display
    settle_mode(message, arguments)
    message.stream_ends = workspace.log.now() + workspace.setup.strictness.stream_seconds
    grow(message, chunks)
    workspace.added(message)
    return {"channel": channel.id, "ts": message.ts}


def _streaming(workspace: Workspace, arguments: Arguments) -> Message:
    """The stream a call is about.

    Raises ``ApiError``: ``message_not_found``, ``message_not_owned_by_app`` or ``message_not_in_streaming_state``.
    """
    channel = own_channel(workspace, arguments)
    message = message_of(workspace, channel, arguments.required("ts"))
    if message.bot_id != BOT_ID:
        raise ApiError(error="message_not_owned_by_app")
    if not message.streaming or workspace.log.now() >= message.stream_ends:
        raise ApiError(error="message_not_in_streaming_state")
    return message


def append_stream(workspace: Workspace, arguments: Arguments) -> Json:
    """``chat.appendStream``."""
    message = _streaming(workspace, arguments)
    chunks = read_chunks(workspace, arguments)
    if not chunks:
        raise ApiError(error="no_text")
    settle_mode(message, arguments)
    grow(message, chunks)
    workspace.feed.publish("message", channel=message.channel, ts=message.ts)
    return {"channel": message.channel, "ts": message.ts}


def stop_stream(workspace: Workspace, arguments: Arguments) -> Json:
    """``chat.stopStream``."""
    message = _streaming(workspace, arguments)
    chunks = read_chunks(workspace, arguments)
    blocks = arguments.objects("blocks", error="invalid_blocks_format")
    check_blocks(blocks, workspace.setup.strictness)
    state = arguments.text("session_status")
    if state and state not in SESSION_STATES:
        raise invalid(["must be one of the session states [json-pointer:/session_status]"])
    if "metadata" in arguments:
        given = arguments.structure("metadata", error="invalid_metadata_format")
        message.metadata = check_metadata(given, workspace.setup.strictness)
    settle_mode(message, arguments)
    before = workspace.log.shown(message, metadata=True)
    grow(message, chunks)
    message.blocks = [*message.blocks, *blocks]
    message.streaming = False
    workspace.changed(message, before)
    if state:
        workspace.threads.set_session((message.channel, message.thread_ts), state, "")
    return {"channel": message.channel, "ts": message.ts, "message": workspace.log.shown(message, metadata=True)}


METHODS: Final = {
    "chat.startStream": start_stream,
    "chat.appendStream": append_stream,
    "chat.stopStream": stop_stream,
}
