"""``chat.*`` without streams, and ``reactions.*``: posting, updating, deleting, ephemeral messages, permalinks.

Also ``response_url``: the short-lived address that comes with a click, through which an app answers without a token.
"""

import re
from functools import partial
from typing import Final

from aiohttp import web

from bot.local.api.call import Call, Methods, read_values
from bot.local.model.errors import ApiError
from bot.local.model.limits import TEXT_KEPT, UPDATE_TEXT, check_blocks, check_markdown, check_metadata
from bot.local.model.messages import Message
from bot.local.model.roster import BOT_ID, BOT_USER, Channel, Json
from bot.local.workspace import ResponseUrl, Workspace

BOT_NAME: Final = "Orion"
SCOPE: Final = "chat:write"
_EMOJI: Final = re.compile(r"[\w+'-]+(::skin-tone-[2-6])?")

methods = Methods()


def read_content(call: Call) -> Json:
    """The content passed to a posting method, validated as Slack does; its parts are named as in ``Message``."""
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
    if "attachments" in call:
        content["attachments"] = call.objects("attachments", error="invalid_attachments")
    if "metadata" in call:
        content["metadata"] = check_metadata(call.structure("metadata", error="invalid_metadata_format"))
    return content


def is_empty(content: Json) -> bool:
    """Return whether there is nothing to show."""
    return not (content.get("text", "").strip() or content.get("blocks") or content.get("attachments"))


def bot_message(workspace: Workspace, channel: Channel, thread_ts: str, content: Json) -> Message:
    """A message by the app, not stored yet."""
    own: Json = {"user": BOT_USER, "bot_id": BOT_ID, "bot_name": BOT_NAME, **content}
    return Message(channel=channel.id, ts=workspace.log.next_ts(), thread_ts=thread_ts, **own)


def _new_message(call: Call, channel: Channel) -> Message:
    content = read_content(call)
    if is_empty(content):
        raise ApiError(error="no_text")
    return bot_message(call.workspace, channel, call.thread(channel), content)


@methods("chat.postMessage", SCOPE)
def _post_message(call: Call) -> Json:
    channel = call.own_channel()
    message = _new_message(call, channel)
    if message.is_reply and call.flag("reply_broadcast"):
        message.subtype = "thread_broadcast"
    call.workspace.add_message(message)
    answer = _post_reply(call, message)
    if len(call.text("text")) > TEXT_KEPT:
        answer |= {"warning": "message_truncated", "response_metadata": {"warnings": ["message_truncated"]}}
    return answer


def _post_reply(call: Call, message: Message) -> Json:
    shown = call.workspace.log.payload_of(message, metadata=True)
    return {"channel": message.channel, "ts": message.ts, "message": shown}


@methods("chat.update", SCOPE)
def _update(call: Call) -> Json:
    """Update one of the app's own messages; omitted fields stay as they were."""
    message = call.message()
    if message.bot_id != BOT_ID:
        raise ApiError(error="cant_update_message")
    if message.streaming and call.workspace.log.now() < message.stream_ends:
        raise ApiError(error="streaming_state_conflict")  # not tested either
    content = read_content(call)
    blocks = content.get("blocks", message.blocks)
    if content.keys() <= {"metadata"} or (is_empty(content) and not blocks):
        raise ApiError(error="no_text")
    if not blocks and len(content.get("text", "")) > UPDATE_TEXT:
        raise ApiError(error="msg_too_long")
    call.workspace.rewrite(message, **content, streaming=False)
    return {**_post_reply(call, message), "text": message.text}


@methods("chat.delete", SCOPE)
def _delete(call: Call) -> Json:
    message = call.message()
    if message.bot_id != BOT_ID:
        raise ApiError(error="cant_delete_message")
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


def _reacted_to(call: Call) -> Message:
    if "channel" not in call or "timestamp" not in call:
        raise ApiError(error="no_item_specified")
    return call.message("timestamp")


@methods("reactions.get", "reactions:read")
def _reactions(call: Call) -> Json:
    message = _reacted_to(call)
    shown = call.workspace.log.payload_of(message) | {"permalink": call.workspace.permalink(message)}
    return {"type": "message", "channel": message.channel, "message": shown}


def _react(call: Call, *, refusal: str, when: bool) -> Json:
    """Add or take back the app's reaction. Raises ``ApiError``: ``refusal`` ``when`` it has reacted, or has not."""
    message, name = _reacted_to(call), call.required_text("name").strip(":")
    if not _EMOJI.fullmatch(name):
        raise ApiError(error="invalid_name")
    if (BOT_USER in message.reactions.get(name, [])) is when:
        raise ApiError(refusal)
    call.workspace.react(message, BOT_USER, name)
    return {}


methods("reactions.add", "reactions:write")(partial(_react, refusal="already_reacted", when=True))
methods("reactions.remove", "reactions:write")(partial(_react, refusal="no_reaction", when=False))


async def answer_response_url(workspace: Workspace, request: web.Request) -> web.Response:
    """Serve one POST: five uses, then 404 as Slack answers."""
    target = workspace.response_urls.get(request.match_info["key"])
    if target is None or target.uses <= 0:
        return web.json_response({"ok": False, "error": "used_url"}, status=404)
    target.uses -= 1
    try:
        _apply(target, Call(workspace, await read_values(request)))
    except ApiError as refusal:
        return web.json_response({"ok": False, "error": refusal.error, **refusal.extra}, status=400)
    return web.Response(text="ok")


def _apply(target: ResponseUrl, call: Call) -> None:
    workspace, message = call.workspace, target.message
    if call.flag("delete_original"):
        workspace.remove_message(message)
        return
    content = read_content(call)
    if is_empty(content):
        raise ApiError(error="no_text")
    if call.flag("replace_original"):
        workspace.rewrite(message, text=content.get("text", ""), blocks=content.get("blocks", []))
        return
    channel = workspace.roster.channels[message.channel]
    made = bot_message(workspace, channel, call.text("thread_ts") or message.thread_ts, content)
    if call.text("response_type", "ephemeral") == "ephemeral":
        made.ephemeral_for = target.user
    workspace.add_message(made)
