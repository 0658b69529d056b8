"""Slack's wire text as a person reads it: links and channels plain, entities decoded. Pure.

Promises: any text gives a text, no longer than a Slack message may be. Must never take away whom a message names.

What a message of another app says: an alert, a build, a ticket often stands in attachments or blocks alone. Pure.

Promises: the words in the order people see them, each once. Must never raise, whatever the message holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bot.slack.payload import objects, string

_TOKEN: Final = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_SCHEME: Final = re.compile(r"^https?://")
_LONGEST_TEXT: Final = 40_000  # Slack's own limit for a message


def plain_text(text: str, own_user: str = "") -> str:
    """Slack's wire text as a person reads it: own mention stripped, links and channels plain, entities decoded.

    Mentions of others stay ``<@U…>``: that is how an answer may name them again.
    """
    spoken = _TOKEN.sub(lambda token: _plain_token(token, own_user), text)
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        spoken = spoken.replace(entity, character)
    return spoken.strip()[:_LONGEST_TEXT]


def _plain_token(token: re.Match[str], own_user: str) -> str:
    sigil, body, label = token[1], token[2], token[3] or ""
    if sigil == "@":
        return "" if body == own_user else f"<@{body}>"
    if sigil == "#":
        return f"#{label}" if label else f"<#{body}>"
    if sigil == "!":
        return label or "@" + body.partition("^")[0]
    shown = body.removeprefix("mailto:")
    if label and label == _SCHEME.sub("", shown):
        return label  # Slack makes a link of "README.md" too: nobody wrote "http://"
    return shown if not label or label in body else f"{label} ({shown})"


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
