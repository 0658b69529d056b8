"""Turns what a person types into what Slack stores: entities escaped, names as mentions, addresses as links."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Final

# No name is looked for inside code or an address; punctuation at the end belongs to the sentence.
_VERBATIM: Final = re.compile(r"(```.*?```|`[^`\n]+`|https?://[^\s<>|`\"]*[^\s<>|`\".,;:!?)\]}'*_~])", re.DOTALL)


def as_slack_text(typed: str, names: Mapping[str, str]) -> str:
    """``typed`` as message text. ``names`` maps ids of members and channels to the names that people type."""
    signs = {key: "@" if key.startswith("U") else "#" for key in names}
    mentions = {_escape(signs[key] + name).lower(): f"<{signs[key]}{key}>" for key, name in names.items()}
    # Else "@Ann" would be found in "@Ann Lee", and the longer name never.
    longest_first = "|".join(map(re.escape, sorted(mentions, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![\w@#])({longest_first})(?!\w)", re.IGNORECASE)

    def slack_text(part: str) -> str:
        if part.startswith("http") and _VERBATIM.fullmatch(part):
            return f"<{_escape(part)}>"
        if _VERBATIM.fullmatch(part):
            return _escape(part)
        return pattern.sub(lambda found: mentions.get(found[0].lower(), found[0]), _escape(part))

    return "".join(map(slack_text, _VERBATIM.split(typed)))


def _escape(text: str) -> str:
    return html.escape(text, quote=False)
