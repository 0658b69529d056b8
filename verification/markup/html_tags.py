"""HTML in a draft: which tags mean formatting, which are a leak of the machinery, which are just words.

A tag of the two-phase protocol is never repaired: it fails.
"""

from __future__ import annotations

import re
from html.entities import html5

from verification.text.lexicon import beside

_VALUE = r"(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s\"'<>=]+)"
TAG = re.compile(rf"<(/?)([A-Za-z][A-Za-z0-9]*)((?:\s+(?:[\w:-]+\s*=\s*{_VALUE}|open|checked|disabled))*)\s*(/?)>")
_TAGS = beside(__file__)
LEAKED = re.compile(
    rf"</?(?:{'|'.join(_TAGS['leaked'].split())})(?:\s[^<>\n]*)?>|<\|[A-Za-z_]{{3,40}}\|>|</?antml:[^<>\n]*>",
    re.IGNORECASE,
)
# The longest name of an entity in HTML 5 has 31 letters.
ENTITY = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z][A-Za-z0-9]{1,31}));")
ESCAPED = re.compile(r"&(?:amp|lt|gt);")
_ATTRIBUTE = re.compile(r"\b(href|src|alt)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
EMPHASIS: dict[str, str] = _TAGS["emphasis"]
CODE, ALONE, BLOCKS, HEADINGS, _SILENT = (
    frozenset(_TAGS[kind].split()) for kind in ("code", "alone", "blocks", "headings", "silent")
)
BREAKS: dict[str, str] = {**_TAGS["breaks"], **dict.fromkeys(HEADINGS, "\n# ")}
HTML = CODE | BLOCKS | _SILENT | {*EMPHASIS, *BREAKS, "a", "img"}


def attributes(text: str) -> dict[str, str]:
    """``href``, ``src`` and ``alt`` of a tag."""
    return {match[1].lower(): match[2] or match[3] or match[4] or "" for match in _ATTRIBUTE.finditer(text)}


def character(match: re.Match[str]) -> str:
    """What an entity stands for; empty if it is none. White space becomes a plain space."""
    if match[3]:
        found = html5.get(match[3] + ";", "")
    else:
        code = int(match[1]) if match[1] else int(match[2], 16)
        found = chr(code) if 0x20 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"  # noqa: PLR2004 - Unicode's own bounds
    return " " if found.isspace() else found
