"""``chat.startStream``, ``appendStream``, ``stopStream``: a message that grows for five minutes at most.

A stream takes text or chunks, never both; its first content decides.
"""

from typing import Final

from bot.local.api.call import Call, Methods
from bot.local.api.chat import SCOPE, bot_message
from bot.local.model.agent_threads import SESSION_STATES
from bot.local.model.errors import ApiError, invalid
from bot.local.model.limits import check_blocks, check_markdown, check_metadata
from bot.local.model.messages import Message
from bot.local.model.roster import BOT_ID, Json

TASK_STATES: Final = ("pending", "in_progress", "complete", "error")
DISPLAY_MODES: Final = ("timeline", "plan")

methods = Methods()


def _read_chunks(call: Call) -> list[Json]:
    chunks = call.objects("chunks", error="invalid_chunks")
    if markdown := call.text("markdown_text"):
        if chunks:
            raise ApiError(error="cannot_provide_both_markdown_text_and_chunks")
        chunks = [{"type": "markdown_text", "text": markdown}]
    for chunk in chunks:
        _check_chunk(chunk)
    return chunks


def _check_chunk(chunk: Json) -> None:
    kind = chunk.get("type")
    if kind == "markdown_text" and isinstance(chunk.get("text"), str):
        check_markdown(chunk["text"])
    elif kind == "blocks" and isinstance(chunk.get("blocks"), list):
        check_blocks(chunk["blocks"])
    elif kind == "task_update":
        if not (chunk.get("id") and chunk.get("title")) or chunk.get("status") not in TASK_STATES:
            raise ApiError(error="invalid_chunks")
    elif kind != "plan_update" or not chunk.get("title"):
        raise ApiError(error="invalid_chunks")


def _grow(message: Message, call: Call, chunks: list[Json]) -> None:
    """Add chunks to a streamed message: text to its last text block, tasks by their id."""
    mode = "text" if call.text("markdown_text") else "chunks"
    if chunks and message.stream_mode not in ("", mode):
        raise ApiError(error="streaming_mode_mismatch")
    message.stream_mode = mode if chunks else message.stream_mode
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
    if all(block["type"] != "plan" for block in message.blocks):
        message.blocks.insert(0, {"type": "plan", "title": "", "tasks": []})
    return next(block for block in message.blocks if block["type"] == "plan")


def _grow_tasks(message: Message, chunk: Json) -> None:
    """Update a task in the plan if tasks are shown as a plan, otherwise in its own block."""
    tasks: list[Json] = _plan(message)["tasks"] if message.task_display == "plan" else message.blocks
    news = {key: value for key, value in chunk.items() if key not in ("type", "id") and value is not None}
    for task in tasks:
        if task.get("task_id") == chunk["id"]:
            task.update(news)
            return
    tasks.append({"type": "task_card", "task_id": chunk["id"], **news})


@methods("chat.startStream", SCOPE)
def _start(call: Call) -> Json:
    channel, workspace = call.own_channel(), call.workspace
    # A stream in a channel must name its recipient. These two names were not tested against a live Slack.
    if channel.kind != "im":
        for name in ("recipient_team_id", "recipient_user_id"):
            if name not in call:
                raise ApiError(error=f"missing_{name}")
    thread = workspace.log.root(channel.id, call.required_text("thread_ts"))
    chunks = _read_chunks(call)
    display = call.text("task_display_mode") or "timeline"
    if display not in DISPLAY_MODES:
        raise invalid(["must be one of the display modes [json-pointer:/task_display_mode]"])
    message = bot_message(workspace, channel, thread, {})
    message.streaming, message.task_display = True, display
    message.stream_ends = workspace.log.now() + workspace.setup.strictness.stream_seconds
    _grow(message, call, chunks)
    workspace.add_message(message)
    return {"channel": channel.id, "ts": message.ts}


def _streaming(call: Call) -> Message:
    message = call.message()
    if message.bot_id != BOT_ID:
        raise ApiError(error="message_not_owned_by_app")
    if not message.streaming or call.workspace.log.now() >= message.stream_ends:
        raise ApiError(error="message_not_in_streaming_state")
    return message


@methods("chat.appendStream", SCOPE)
def _append(call: Call) -> Json:
    message, chunks = _streaming(call), _read_chunks(call)
    if not chunks:
        raise ApiError(error="no_text")
    _grow(message, call, chunks)
    call.workspace.feed.publish("message", channel=message.channel, ts=message.ts)
    return {"channel": message.channel, "ts": message.ts}


@methods("chat.stopStream", SCOPE)
def _stop(call: Call) -> Json:
    workspace, message, chunks = call.workspace, _streaming(call), _read_chunks(call)
    blocks = call.objects("blocks", error="invalid_blocks_format")
    check_blocks(blocks)
    state = call.text("session_status")
    if state and state not in SESSION_STATES:
        raise invalid(["must be one of the session states [json-pointer:/session_status]"])
    if "metadata" in call:
        message.metadata = check_metadata(call.structure("metadata", error="invalid_metadata_format"))
    before = workspace.log.payload_of(message, metadata=True)
    _grow(message, call, chunks)
    message.blocks = [*message.blocks, *blocks]
    message.streaming = False
    workspace.publish_change(message, before)
    if state:
        workspace.threads.set_session((message.channel, message.thread_ts), state, "")
    return {"channel": message.channel, "ts": message.ts, "message": workspace.log.payload_of(message, metadata=True)}
