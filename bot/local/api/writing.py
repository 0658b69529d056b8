"""Writing methods: messages and streams, statuses and sessions, prompts, modals and App Home.

A stream grows for five minutes at most. It takes either text or chunks, as its first content decides.
"""

from typing import Any, Final

from bot.local.agent_views import SESSION_STATES, ThreadId
from bot.local.api.call import Call, Methods
from bot.local.model.errors import ApiError, invalid
from bot.local.model.limits import TEXT_KEPT, UPDATE_TEXT, check_blocks, check_markdown, check_metadata
from bot.local.model.messages import LocalMessage
from bot.local.model.roster import BOT_ID, BOT_USER, Channel, Json

SCOPE: Final = "chat:write"
MAX_PROMPTS: Final = 4  # as the next two, from Slack's pages about the methods
MAX_LOADING_MESSAGES: Final = 10
MAX_TITLE_CHARS: Final = 200
TASK_STATES: Final = ("pending", "in_progress", "complete", "error")

methods = Methods()


def _read_content(call: Call) -> Json:
    """The content passed to a posting method, validated as in Slack; its parts are named as in ``Message``."""
    content: Json = {}
    if "text" in call:
        content["text"] = call.text("text")[:TEXT_KEPT]
    if "blocks" in call:
        content["blocks"] = call.objects("blocks", error="invalid_blocks_format")
    if markdown := call.text("markdown_text"):
        if content.get("text") or content.get("blocks"):
            raise ApiError(error="markdown_text_conflict")  # not tested against a live Slack
        check_markdown(markdown)
        content["text"], content["blocks"] = markdown, [{"type": "markdown", "text": markdown}]
    check_blocks(content.get("blocks", []))
    if "metadata" in call:
        content["metadata"] = check_metadata(call.structure("metadata", error="invalid_metadata_format"))
    return content


def _is_empty(content: Json) -> bool:
    return not (content.get("text", "").strip() or content.get("blocks"))


def _bot_message(call: Call, channel: Channel, thread_ts: str, **content: Any) -> LocalMessage:
    own: Json = {"user": BOT_USER, "bot_id": BOT_ID, "bot_name": "Orion", **content}
    return LocalMessage(channel=channel.id, ts=call.workspace.log.next_ts(), thread_ts=thread_ts, **own)


def _new_message(call: Call, channel: Channel) -> LocalMessage:
    content = _read_content(call)
    if _is_empty(content):
        raise ApiError(error="no_text")
    return _bot_message(call, channel, call.thread(channel), **content)


@methods("chat.postMessage", SCOPE)
def _post_message(call: Call) -> Json:
    channel = call.own_channel()
    message = _new_message(call, channel)
    call.workspace.add_message(message)
    return _post_reply(call, message)


def _post_reply(call: Call, message: LocalMessage) -> Json:
    shown = call.workspace.log.payload_of(message, metadata=True)
    return {"channel": message.channel, "ts": message.ts, "message": shown}


@methods("chat.update", SCOPE)
def _update(call: Call) -> Json:
    message = call.own_message("cant_update_message")
    if message.streaming and call.workspace.log.now() < message.stream_ends:
        raise ApiError(error="streaming_state_conflict")  # not tested either
    content = _read_content(call)
    blocks = content.get("blocks", message.blocks)
    if content.keys() <= {"metadata"} or (_is_empty(content) and not blocks):
        raise ApiError(error="no_text")
    if not blocks and len(content.get("text", "")) > UPDATE_TEXT:
        raise ApiError(error="msg_too_long")
    call.workspace.rewrite(message, **content, streaming=False)
    return {**_post_reply(call, message), "text": message.text}


@methods("chat.delete", SCOPE)
def _delete(call: Call) -> Json:
    message = call.own_message("cant_delete_message")
    call.workspace.remove_message(message)
    return {"channel": message.channel, "ts": message.ts}


@methods("chat.postEphemeral", SCOPE)
def _post_ephemeral(call: Call) -> Json:
    channel, member = call.own_channel(), call.workspace.roster.member(call.required_text("user"))
    if member.id not in channel.members:
        raise ApiError(error="user_not_in_channel")
    message = _new_message(call, channel)
    message.ephemeral_for = member.id
    call.workspace.add_message(message)
    return {"message_ts": message.ts}


@methods("chat.getPermalink", SCOPE)
def _permalink(call: Call) -> Json:
    message = call.workspace.log.visible(call.channel().id, call.required_text("message_ts"))
    return {"channel": message.channel, "permalink": call.workspace.permalink(message)}


def _read_chunks(call: Call) -> list[Json]:
    chunks = call.objects("chunks", error="invalid_chunks")
    if markdown := call.text("markdown_text"):
        if chunks:
            raise ApiError(error="cannot_provide_both_markdown_text_and_chunks")
        chunks = [{"type": "markdown_text", "text": markdown}]
    for chunk in chunks:
        task = chunk.get("type") == "task_update" and chunk.get("id") and chunk.get("title")
        if chunk.get("type") == "markdown_text" and isinstance(chunk.get("text"), str):
            check_markdown(chunk["text"])
        elif not task or chunk.get("status") not in TASK_STATES:
            raise ApiError(error="invalid_chunks")
    return chunks


def _grow(message: LocalMessage, call: Call, chunks: list[Json]) -> None:
    """Add chunks to a streamed message: text to its last text block, tasks by their id."""
    mode = "text" if call.text("markdown_text") else "chunks"
    if chunks and message.stream_mode not in ("", mode):
        raise ApiError(error="streaming_mode_mismatch")
    message.stream_mode = mode if chunks else message.stream_mode
    for chunk in chunks:
        if chunk["type"] == "task_update":
            card = next((one for one in message.blocks if one.get("task_id") == chunk["id"]), None)
            if card is None:
                card = {"type": "task_card", "task_id": chunk["id"]}
                message.blocks.append(card)
            card |= {key: value for key, value in chunk.items() if key not in ("type", "id") and value is not None}
            continue
        message.text += chunk["text"]
        if not message.blocks or message.blocks[-1]["type"] != "markdown":
            message.blocks.append({"type": "markdown", "text": ""})
        message.blocks[-1]["text"] += chunk["text"]


@methods("chat.startStream", SCOPE)
def _start(call: Call) -> Json:
    channel, workspace = call.own_channel(), call.workspace
    # A stream in a channel must name its recipient. These two argument names were not tested against a live Slack.
    if channel.kind != "im":
        for name in ("recipient_team_id", "recipient_user_id"):
            if name not in call:
                raise ApiError(error=f"missing_{name}")
    thread = workspace.log.root(channel.id, call.required_text("thread_ts"))
    chunks = _read_chunks(call)
    ends = workspace.log.now() + workspace.strictness.stream_seconds
    message = _bot_message(call, channel, thread, streaming=True, stream_ends=ends)
    _grow(message, call, chunks)
    workspace.add_message(message)
    return {"channel": channel.id, "ts": message.ts}


def _streaming(call: Call) -> LocalMessage:
    message = call.own_message("message_not_owned_by_app")
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
    if "metadata" in call:
        message.metadata = check_metadata(call.structure("metadata", error="invalid_metadata_format"))
    before = workspace.log.payload_of(message, metadata=True)
    _grow(message, call, chunks)
    message.blocks = [*message.blocks, *blocks]
    message.streaming = False
    workspace.publish_change(message, before)
    return _post_reply(call, message)


def _thread(call: Call) -> ThreadId:
    channel = call.own_channel("channel_id")
    return channel.id, call.workspace.log.root(channel.id, call.required_text("thread_ts"))


@methods("assistant.threads.setStatus", "chat:write", "assistant:write")
def _set_status(call: Call) -> Json:
    thread = _thread(call)
    if "status" not in call:  # an empty one removes it
        raise invalid(["missing required field: status"])
    messages = call.structure("loading_messages") or []
    if not isinstance(messages, list) or len(messages) > MAX_LOADING_MESSAGES:
        raise invalid(["no more than 10 items allowed [json-pointer:/loading_messages]"])
    call.workspace.threads.set_status(thread, call.text("status"), list(map(str, messages)))
    return {}


@methods("assistant.threads.setSuggestedPrompts", "assistant:write")
def _set_prompts(call: Call) -> Json:
    channel = call.own_channel("channel_id")
    prompts = call.objects("prompts", error="invalid_arguments")
    if not prompts or len(prompts) > MAX_PROMPTS:
        raise invalid(["between 1 and 4 items allowed [json-pointer:/prompts]"])
    if not all(prompt.get("title") and prompt.get("message") for prompt in prompts):
        raise invalid(["missing required field: title or message [json-pointer:/prompts]"])
    if "thread_ts" not in call:  # as in Slack: with one, an agent app's call silently does nothing
        offered = {"title": call.text("title"), "prompts": prompts}
        call.workspace.threads.prompts[channel.id] = offered
        call.workspace.feed.publish("prompts", channel=channel.id, **offered)
    return {}


def _title(call: Call) -> str:
    title = call.text("title")
    if len(title) > MAX_TITLE_CHARS:
        raise invalid(["must be less than 201 characters [json-pointer:/title]"])
    return title


@methods("agents.sessions.setStatus", "chat:write", "assistant:write")
def _set_session(call: Call) -> Json:
    status, title = call.required_text("status"), _title(call)
    if status not in SESSION_STATES:
        raise invalid(["must be one of the session states [json-pointer:/status]"])
    channel = call.own_channel("channel_id")
    thread = call.thread(channel)
    call.workspace.threads.set_session((channel.id, thread), status, title)
    return {"session": {"channel_id": channel.id, "thread_ts": thread, "status": status}}


@methods("agents.sessions.rename", "chat:write", "assistant:write")
def _rename_session(call: Call) -> Json:
    call.required_text("title")
    title, session = _title(call), call.workspace.threads.sessions.get(_thread(call))
    if session is None:
        raise ApiError(error="session_not_found")
    session.title = title
    return {}


def _view(call: Call) -> Json:
    view = call.structure("view")
    if not isinstance(view, dict):
        raise invalid(["missing required field: view"])
    return view


@methods("views.open")
def _open_view(call: Call) -> Json:
    views = call.workspace.views
    return {"view": views.show(views.exchange(call.required_text("trigger_id")), _view(call))}


@methods("views.publish")
def _publish_view(call: Call) -> Json:
    member = call.workspace.roster.member(call.required_text("user_id"))
    return {"view": call.workspace.views.publish(member.id, _view(call))}
