"""Slack's wire text as a person reads it: links and channels plain, entities decoded. Pure.

Promises: any text gives a text, no longer than a Slack message may be. Must never take away whom a message names.
"""

from __future__ import annotations

import re
from typing import Final

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
