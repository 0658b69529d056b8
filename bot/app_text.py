"""What a message of another app says: an alert, a build, a ticket often stands in attachments or blocks alone. Pure.

Promises: the words in the order people see them, each once. Must never raise, whatever the message holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bot.payload import objects, string


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
    """A section's, header's or context's texts; a button's are none."""
    yield string(block, "text", "text")
    for part in (*objects(block, "fields"), *objects(block, "elements")):
        yield string(part, "text")
