"""The parts of a message that Slack makes active: links, and mentions of people and channels."""

import json
import re
from collections.abc import Iterator
from typing import Any

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_TOKEN = re.compile(r"(?<!\\)<([^<>|\n]+)(?:\|[^<>\n]*)?>")
_MARKDOWN = re.compile(r"(?<!\\)\]\(\s*(?:<([^<>\n]+)>|([^)\s>]+))(?:\s+[\"'(][^)]*)?\s*\)")
_BARE = re.compile(r"[A-Za-z][\w+.-]*://\S+|\bwww\.\S+")
_HIDDEN = re.compile("[\u00ad\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
_LIVE_ELEMENTS = {"link": "url", "user": "user_id", "channel": "channel_id", "usergroup": "usergroup_id"}
_LIVE_ELEMENTS |= {"broadcast": "range", "image": "image_url"}
_TEXTS = {"text", "markdown_text", "title", "status", "details", "fallback"}
_NOT_SHOWN = {"metadata", "private_metadata", "value", "token", "action_id", "block_id"}


def live_parts(value: Any, name: str = "") -> Iterator[str]:
    """Every target of a link or a mention in a request's arguments, and ``hidden: …`` for characters unseen."""
    if isinstance(value, str):
        yield from _in_text(value, name)
    elif isinstance(value, list):
        for one in value:
            yield from live_parts(one, name)
    elif isinstance(value, dict):
        kind = value.get("type", "")
        if kind in _LIVE_ELEMENTS and isinstance(value.get(_LIVE_ELEMENTS[kind]), str):
            yield value[_LIVE_ELEMENTS[kind]]
        for key, one in value.items():
            if key not in _NOT_SHOWN:
                plain = kind == "plain_text" or (kind in {"text", "link"} and key == "text")
                yield from live_parts(one, "plain" if plain else key)


def _in_text(text: str, name: str) -> Iterator[str]:
    if text[:2] in {"[{", '{"'} and name in {"blocks", "view", "chunks"}:
        yield from live_parts(json.loads(text), name)
    elif name == "plain" or name in _TEXTS:
        yield from (f"hidden: {found[0]!r}" for found in _HIDDEN.finditer(text))
    if name in _TEXTS:
        shown = _CODE.sub(" ", text)
        yield from _TOKEN.findall(shown)
        if name == "markdown_text":
            yield from map("".join, _MARKDOWN.findall(shown))
            yield from _BARE.findall(_TOKEN.sub(" ", shown))
