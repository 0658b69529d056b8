"""Edits of a text and the faults they mend, and what one pass shares between its blocks.

An edit that overlaps an earlier one is skipped: the next pass finds what it was for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from verification.types import Dialect

ZERO_WIDTH = "\u200b"
# The three that Slack's documentation tells to escape, and no others: more would be shown as they are written.
ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
UNESCAPED = re.compile(r"[<>]|&(?!(?:amp|lt|gt);)")
_TAG_NAME = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)")


class Edit(NamedTuple):
    """Put ``text`` in the place of ``[start, end)``."""

    start: int
    end: int
    text: str


class Fault(NamedTuple):
    """Something wrong in form (or merely not Slack's best form), with its kind and its exact place."""

    kind: str
    start: int
    end: int


def applied(text: str, edits: Iterable[Edit]) -> str:
    """The text after all edits."""
    pieces: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start >= position:
            pieces += (text[position : edit.start], edit.text)
            position = edit.end
    return "".join([*pieces, text[position:]])


def blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with spaces in the place of these spans, so that all other places stay."""
    return applied(text, [Edit(start, end, " " * (end - start)) for start, end in spans])


class Page:
    """The text, the dialect and the definitions of a pass, and what it found."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text = text
        self.dialect = dialect
        self.is_mrkdwn = dialect == "mrkdwn"
        self.edits: list[Edit] = []
        self.faults: list[Fault] = []
        self.references: dict[str, str] = {}
        self.footnotes: set[str] = set()
        self.used: set[str] = set()

    def edit(self, start: int, end: int, text: str) -> None:
        """Note one replacement."""
        self.edits.append(Edit(start, end, text))

    def fault(self, kind: str, start: int, end: int) -> None:
        """Note one fault."""
        self.faults.append(Fault(kind, start, end))

    def replace(self, kind: str, start: int, end: int, text: str) -> None:
        """Note a fault that one replacement mends."""
        self.fault(kind, start, end)
        self.edit(start, end, text)

    @cached_property
    def tags(self) -> frozenset[tuple[bool, str]]:
        """The names of the tags anywhere on the page, each with whether it is a closing one."""
        return frozenset((match[1] == "/", match[2].lower()) for match in _TAG_NAME.finditer(self.text))
