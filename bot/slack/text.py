"""The words of a Slack message as a person reads them: links and channels plain, entities decoded. Pure.

Any payload gives a text, no longer than a Slack message may be, and never without the people it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bot.slack.payload import objects, string

_TOKEN: Final = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_SCHEME: Final = re.compile(r"^https?://")
_DEEPEST: Final = 4
_LONGEST_TEXT: Final = 40_000  # Slack's own limit for a message


def plain_text(text: str, own_user: str = "") -> str:
    """Slack's wire text as a person reads it: own mention stripped, links and channels plain, entities decoded."""
    spoken = _TOKEN.sub(lambda token: _plain_token(token, own_user), text)
    # & comes last, or "&amp;lt;" would be decoded twice.
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        spoken = spoken.replace(entity, character)
    return spoken.strip()[:_LONGEST_TEXT]


def _plain_token(token: re.Match[str], own_user: str) -> str:
    sigil, body, label = token[1], token[2], token[3] or ""
    if sigil == "@":
        return "" if body == own_user else f"<@{body}>"  # so an answer may name others again
    if sigil == "#":
        return f"#{label}" if label else f"<#{body}>"
    if sigil == "!":
        return label or "@" + body.partition("^")[0]
    shown = body.removeprefix("mailto:")
    if label and label == _SCHEME.sub("", shown):
        return label  # Slack makes a link of "README.md" too: nobody wrote "http://"
    return shown if not label or label in body else f"{label} ({shown})"


def whole_text(message: Mapping[str, Any], own_user: str = "") -> str:
    """What a person says with a message: their own words, then each message they shared or forwarded with them."""
    shared = filter(is_shared_message, objects(message, "attachments"))
    said = [plain_text(string(message, "text"), own_user), *(plain_text(_shared(one), own_user) for one in shared)]
    return "\n\n".join(filter(None, said))[:_LONGEST_TEXT]


def is_shared_message(attachment: Mapping[str, Any]) -> bool:
    """Whether an attachment is another message of Slack, shared or linked to, and no preview of a web page."""
    return bool(attachment.get("is_share") or attachment.get("is_msg_unfurl") or attachment.get("message_blocks"))


def _shared(attachment: Mapping[str, Any]) -> str:
    blocks = (b for one in objects(attachment, "message_blocks") for b in objects(one, "message", "blocks"))
    in_blocks = "\n".join(part for block in blocks for part in _of_block(block) if part)
    text = string(attachment, "text") or in_blocks or string(attachment, "fallback")
    author = string(attachment, "author_name") or string(attachment, "author_subname")
    return f"{author}: {text}" if author and text else text


def app_text(message: Mapping[str, Any]) -> str:
    """The message's words as Slack's wire text, one line for each part. Blocks count where nothing else says them."""
    text = string(message, "text")
    said = [text, *(part for one in objects(message, "attachments") for part in _attached(one))]
    if not any(said):
        said = [part for block in objects(message, "blocks") for part in _of_block(block)]
    return "\n".join(dict.fromkeys(part for part in said if part and (part is text or part not in text)))


def _attached(attachment: Mapping[str, Any]) -> list[str]:
    said = [string(attachment, part) for part in ("pretext", "title", "text")]
    said += [": ".join(filter(None, (string(f, "title"), string(f, "value")))) for f in objects(attachment, "fields")]
    said += [part for block in objects(attachment, "blocks") for part in _of_block(block)]
    return said if any(said) else [string(attachment, "fallback")]


def _of_block(block: Mapping[str, Any]) -> Iterator[str]:
    """A section's, header's or context's texts, a rich text's lines; a button's are none."""
    if string(block, "type") == "rich_text":
        yield from (_rich(element) for element in objects(block, "elements"))
        return
    yield string(block, "text", "text")
    for part in (*objects(block, "fields"), *objects(block, "elements")):
        yield string(part, "text")


def _rich(element: Mapping[str, Any], depth: int = 0) -> str:
    """An element of a rich text as Slack's wire text. Slack nests them three deep at most."""
    kind = string(element, "type")
    inside = [_rich(one, depth + 1) for one in objects(element, "elements")] if depth < _DEEPEST else []
    if kind == "rich_text_list":
        return "\n".join(f"• {one}" for one in inside)
    written = {
        "user": f"<@{string(element, 'user_id')}>",
        "channel": f"<#{string(element, 'channel_id')}>",
        "emoji": f":{string(element, 'name')}:",
    }
    return written.get(kind) or string(element, "text") or string(element, "url") or "".join(inside)
