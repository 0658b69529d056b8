"""Turns what a person types into what Slack stores: entities escaped, names as mentions, addresses as links."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_CODE: Final = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_URL: Final = re.compile(r"https?://[^\s<>|`\"]+")
_TRAILING: Final = ".,;:!?)]}'*_~"


def as_slack_text(typed: str, names: Mapping[str, str]) -> str:
    """``typed`` as message text. ``names`` maps ids of members and channels to the names that people type."""
    parts: list[str] = []
    position = 0
    for code in _CODE.finditer(typed):
        parts.append(_plain(typed[position : code.start()], names))
        parts.append(_escape(code.group()))
        position = code.end()
    parts.append(_plain(typed[position:], names))
    return "".join(parts)


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _plain(text: str, names: Mapping[str, str]) -> str:
    """Text outside code: links first, so that no name is looked for inside an address."""
    parts: list[str] = []
    position = 0
    for found in _URL.finditer(text):
        address = found.group().rstrip(_TRAILING)
        parts.append(_with_mentions(_escape(text[position : found.start()]), names))
        parts.append(f"<{_escape(address)}>")
        position = found.start() + len(address)
    parts.append(_with_mentions(_escape(text[position:]), names))
    return "".join(parts)


def _with_mentions(escaped: str, names: Mapping[str, str]) -> str:
    signs = {("@" if key.startswith("U") else "#") + _escape(name): key for key, name in names.items()}
    if not signs:
        return escaped
    # Else "@Ann" would be found in "@Ann Lee", and the longer name never.
    longest_first = sorted(signs, key=len, reverse=True)
    pattern = re.compile(r"(?<![\w@#])(" + "|".join(map(re.escape, longest_first)) + r")(?!\w)", re.IGNORECASE)
    folded = {sign.lower(): key for sign, key in signs.items()}

    def mention(found: re.Match[str]) -> str:
        key = folded[found.group(1).lower()]
        return f"<@{key}>" if key.startswith("U") else f"<#{key}>"

    return pattern.sub(mention, escaped)
