"""HTML in a draft: which tags mean formatting, which are a leak of the machinery, which are just words.

A tag of the two-phase protocol is never repaired: it fails.
"""

from __future__ import annotations

import re
from html.entities import html5

_VALUE = r"(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s\"'<>=]+)"
TAG = re.compile(rf"<(/?)([A-Za-z][A-Za-z0-9]*)((?:\s+(?:[\w:-]+\s*=\s*{_VALUE}|open|checked|disabled))*)\s*(/?)>")
LEAKED = re.compile(
    r"</?(?:thinking|think|thought|thoughts|answer|reasoning|reflection|scratchpad|analysis|final|response"
    r"|tool_call|tool_calls|tool_response|tool_result|function_call|function_calls|function_results|invoke|parameter"
    r"|system|assistant|user|instructions|context)(?:\s[^<>\n]*)?>|<\|[A-Za-z_]{3,40}\|>|</?antml:[^<>\n]*>",
    re.IGNORECASE,
)
ENTITY = re.compile(r"&(?:#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z][A-Za-z0-9]{1,31}));")
ESCAPED = re.compile(r"&(?:amp|lt|gt);")
_ATTRIBUTE = re.compile(r"\b(href|src|alt)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
EMPHASIS = {"b": "b", "strong": "b", "i": "i", "em": "i", "s": "s", "del": "s", "strike": "s"}
CODE = frozenset({"code", "kbd", "tt", "samp"})
_BREAKS = {"br": "\n", "hr": "\n\n", "li": "\n- ", "h1": "\n# ", "h2": "\n# ", "h3": "\n# "}
_BREAKS |= {"h4": "\n# ", "h5": "\n# ", "h6": "\n# ", "td": " ", "th": " ", "dt": "\n", "dd": "\n"}
_BLOCKS = frozenset({"p", "div", "ul", "ol", "dl", "table", "tr", "section", "blockquote", "details", "summary", "pre"})
_UNMARKED = (
    "span u ins sup sub small big mark font center thead tbody tfoot caption abbr cite q article header footer"
    " main nav aside figure figcaption picture source video audio iframe form label button wbr"
)
_SILENT = frozenset(_UNMARKED.split())
_BREAKING_ENDS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
ALONE = frozenset({"br", "hr", "img", "wbr", "li", "p", "td", "th", "tr", "dt", "dd"})
HTML = frozenset(EMPHASIS) | CODE | frozenset(_BREAKS) | _BLOCKS | _SILENT | {"a", "img"}


def plain_form(name: str, *, closing: bool) -> str:
    """What stands in the place of a tag that has no mark of its own in Slack."""
    if name in _BLOCKS or (closing and name in _BREAKING_ENDS):
        return "\n"
    return "" if closing else _BREAKS.get(name, "")


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
