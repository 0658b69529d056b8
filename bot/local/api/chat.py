"""``chat.*`` without streams: posting, updating, deleting, ephemeral messages, permalinks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bot.local.api.arguments import Arguments
from bot.local.api.places import channel_of, member_of, message_of, own_channel, thread_root
from bot.local.model.errors import ApiError
from bot.local.model.limits import check_blocks, check_markdown, check_metadata
from bot.local.model.messages import Message
from bot.local.model.roster import BOT_ID, BOT_USER, Channel, Json
from bot.local.workspace import Workspace

BOT_NAME: Final = "Orion"


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The judged content of a message. Absent parts are None; ``truncated`` when the text was cut."""

    text: str
    blocks: list[Json] | None
    attachments: list[Json] | None
    metadata: Json | None
    truncated: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.text.strip() or self.blocks or self.attachments)


def read_content(workspace: Workspace, arguments: Arguments) -> Content:
    """The content arguments that all posting methods share.

    Raises ``ApiError``: for whatever Slack would refuse in them.
    """
    strictness = workspace.setup.strictness
    blocks = arguments.objects("blocks", error="invalid_blocks_format") if "blocks" in arguments else None
    text, markdown = arguments.text("text"), arguments.text("markdown_text")
    if markdown:
        if text or blocks:
            raise ApiError(error="markdown_text_conflict")
        check_markdown(markdown, strictness)
        text, blocks = markdown, [{"type": "markdown", "text": markdown}]
    if blocks:
        check_blocks(blocks, strictness)
    attachments = arguments.objects("attachments", error="invalid_attachments") if "attachments" in arguments else None
    metadata = None
    if "metadata" in arguments:
        metadata = check_metadata(arguments.structure("metadata", error="invalid_metadata_format"), strictness)
    kept = text[: strictness.text_kept]
    return Content(
        text=kept, blocks=blocks, attachments=attachments, metadata=metadata, truncated=len(kept) < len(text)
    )


def bot_message(workspace: Workspace, channel: Channel, content: Content, thread_ts: str) -> Message:
    """A message by the app, not kept yet."""
    return Message(
        channel=channel.id,
        ts=workspace.log.next_ts(),
        user=BOT_USER,
        text=content.text,
        blocks=content.blocks or [],
        attachments=content.attachments or [],
        metadata=content.metadata,
        thread_ts=thread_ts,
        bot_id=BOT_ID,
        bot_name=BOT_NAME,
    )


def _drafted(workspace: Workspace, channel: Channel, arguments: Arguments) -> tuple[Message, Content]:
    """The message that a posting method asks for, not kept yet, and its content."""
    content = read_content(workspace, arguments)
    if content.is_empty:
        raise ApiError(error="no_text")
    given = arguments.text("thread_ts")
    return bot_message(workspace, channel, content, thread_root(workspace, channel, given) if given else ""), content


def post_message(workspace: Workspace, arguments: Arguments) -> Json:
    """``chat.postMessage``."""
    channel = own_channel(workspace, arguments)
    message, content = _drafted(workspace, channel, arguments)
    if message.is_reply and arguments.flag("reply_broadcast"):
        message.subtype = "thread_broadcast"
    workspace.added(message)
    answer: Json = {
        "channel": channel.id,
        "ts": message.ts,
        "message": workspace.log.shown(message, metadata=True),
    }
    if content.truncated:
        answer |= {"warning": "message_truncated", "response_metadata": {"warnings": ["message_truncated"]}}
    return answer


def update(workspace: Workspace, arguments: Arguments) -> Json:
    """``chat.update``: the app's own messages only; what is not given stays as it was."""
    channel = own_channel(workspace, arguments)
    message = message_of(workspace, channel, arguments.required("ts"))
    if message.bot_id != BOT_ID:
        raise ApiError(error="cant_update_message")
    if message.streaming and workspace.log.now() < message.stream_ends:
        raise ApiError(error="streaming_state_conflict")
    content = read_content(workspace, arguments)
    if "text" not in arguments and content.blocks is None and content.attachments is None:
        raise ApiError(error="no_text")
    replaced = content.blocks if content.blocks is not None else message.blocks
    if content.is_empty and not replaced:
        raise ApiError(error="no_text")
    if not replaced and len(content.text) > workspace.setup.strictness.update_text:
        raise ApiError(error="msg_too_long")
    before = workspace.log.shown(message, metadata=True)
    message.streaming = False
    message.blocks = replaced
    if content.text or "text" in arguments:
        message.text = content.text
    message.attachments = content.attachments if content.attachments is not None else message.attachments
    message.metadata = content.metadata if content.metadata is not None else message.metadata
    message.edited = {"user": BOT_USER, "ts": workspace.log.next_ts()}
    workspace.changed(message, before)
    return {
        "channel": channel.id,
        "ts": message.ts,
        "text": message.text,
        "message": workspace.log.shown(message, metadata=True),
    }


def delete(workspace: Workspace, arguments: Arguments) -> Json:
    """``chat.delete``: the app's own messages only."""
    channel = own_channel(workspace, arguments)
    message = message_of(workspace, channel, arguments.required("ts"))
    if message.bot_id != BOT_ID:
        raise ApiError(error="cant_delete_message")
    ts = message.ts
    workspace.removed(message)
    return {"channel": channel.id, "ts": ts}


def post_ephemeral(workspace: Workspace, arguments: Arguments) -> Json:
    """``chat.postEphemeral``: seen by one person, kept nowhere else, gone when the page starts over."""
    channel = own_channel(workspace, arguments)
    member = member_of(workspace, arguments.required("user"))
    if member.id not in channel.members:
        raise ApiError(error="user_not_in_channel")
    message, _ = _drafted(workspace, channel, arguments)
    message.ephemeral_for = member.id
    workspace.added(message)
    return {"message_ts": message.ts}


def permalink(workspace: Workspace, arguments: Arguments) -> Json:
    """``chat.getPermalink``."""
    channel = channel_of(workspace, arguments)
    message = message_of(workspace, channel, arguments.required("message_ts"))
    link = f"{workspace.url}/archives/{channel.id}/p{message.ts.replace('.', '')}"
    if message.is_reply:
        link += f"?thread_ts={message.thread_ts}&cid={channel.id}"
    return {"channel": channel.id, "permalink": link}


METHODS: Final = {
    "chat.postMessage": post_message,
    "chat.update": update,
    "chat.delete": delete,
    "chat.postEphemeral": post_ephemeral,
    "chat.getPermalink": permalink,
}
