"""Markdown's link syntax: destinations, definitions, footnotes, and the Slack token that each becomes.

A destination that Slack cannot open stays readable as code behind its label.
"""

from __future__ import annotations

import html
import re
from typing import NamedTuple

from verification.markup.scanner import SCHEMES

_FLAT = r"(?:[^\s()<>\\]|\\[^\s])"
_ONE = rf"(?:{_FLAT}|\({_FLAT}*+\))"
_TWO = rf"(?:{_FLAT}|\({_ONE}*+\))"
_TITLE = r"(?:[ \t]+(?:\"[^\"\n]{0,400}\"|'[^'\n]{0,400}'|\([^()\n]{0,400}\)))?+"
_DESTINATION = re.compile(rf"\([ \t]*+(?:<([^<>|\n]{{0,2000}})>|({_TWO}*+)){_TITLE}[ \t]*+\)")
_WORDS = re.compile(r"\(([^()<>\n]{1,400})\)")
_ABSOLUTE = re.compile(rf"(?:{SCHEMES}):[^\s]+", re.IGNORECASE)
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
DEFINITION = re.compile(
    r"[ \t]{0,3}\[([^\]\[\n]{1,200})\](:)[ \t]*(<[^<>\s]+>|(?:(?:" + SCHEMES + r"):|\.{0,2}/|#)\S+)"
    r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
FOOTNOTE = re.compile(r"\[(\^)(\w[\w.-]{0,40})\](:?)")
_UNSAFE = {" ": "%20", "|": "%7C", "<": "%3C", ">": "%3E", "`": "%60", "\\": "%5C", "\t": "%20"}
_UNSAFE_CHARS = re.compile(r"[ |<>`\\\t]")


class Destination(NamedTuple):
    """Where a link points and where its closing parenthesis ends. ``url`` is empty for plain words."""

    end: int
    url: str
    words: str = ""


def destination(text: str, start: int, end: int) -> Destination | None:
    """What stands in the parentheses that open at ``start``, or None if they are no destination."""
    match = _DESTINATION.match(text, start, end)
    if match:
        return Destination(match.end(), cleaned(match[1] if match[1] is not None else match[2]))
    match = _WORDS.match(text, start, end)
    return Destination(match.end(), "", match[1]) if match else None


def cleaned(url: str) -> str:
    """A destination without Markdown's own escapes."""
    return html.unescape(_ESCAPED.sub(r"\1", url)) if "\\" in url or "&" in url else url


def is_absolute(url: str) -> bool:
    """Whether Slack can open it."""
    return bool(_ABSOLUTE.fullmatch(url.replace(" ", "%20")))


def is_address(text: str) -> bool:
    """Whether it is a bare mail address."""
    return bool(_ADDRESS.fullmatch(text))


def safe(url: str) -> str:
    """The URL with the characters quoted that would end it inside a ``<…>`` token."""
    return _UNSAFE_CHARS.sub(lambda match: _UNSAFE[match[0]], url)


def key(label: str) -> str:
    """A reference's name as definitions are looked up: case and inner white space do not count."""
    return " ".join(label.split()).casefold()
