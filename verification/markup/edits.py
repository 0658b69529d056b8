"""Edits of a text and the faults they repair, and the state that one pass shares between its blocks.

An edit that overlaps an earlier one is skipped. The next pass finds its fault again.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from verification.types import Dialect

ZERO_WIDTH = "\u200b"
# Slack's documentation asks to escape these three. Other escapes would be shown literally.
ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
UNESCAPED = re.compile(r"[<>]|&(?!(?:amp|lt|gt);)")
_TAG_NAME = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)")


class Edit(NamedTuple):
    """Replace ``[start, end)`` with ``text``."""

    start: int
    end: int
    text: str


class FormFault(NamedTuple):
    """A fault in form, or a form that is not Slack's best, with its kind and its place."""

    kind: str
    start: int
    end: int


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text after all edits."""
    pieces: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start >= position:
            pieces += (text[position : edit.start], edit.text)
            position = edit.end
    return "".join([*pieces, text[position:]])


def blank_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with spaces in place of these spans, so that offsets stay valid."""
    return apply_edits(text, [Edit(start, end, " " * (end - start)) for start, end in spans])


@dataclass  # no slots, because of the cached properties
class MarkupPage:
    """The text, the dialect and the definitions of a pass, and the edits and faults it collected."""

    text: str
    dialect: Dialect
    references: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    footnotes: set[str] = field(default_factory=set)
    edits: list[Edit] = field(default_factory=list)
    faults: list[FormFault] = field(default_factory=list)

    @cached_property
    def is_mrkdwn(self) -> bool:
        """True unless the page stays standard Markdown."""
        return self.dialect == "mrkdwn"

    def edit(self, start: int, end: int, text: str) -> None:
        """Note one replacement."""
        self.edits.append(Edit(start, end, text))

    def fault(self, kind: str, start: int, end: int) -> None:
        """Note one fault."""
        self.faults.append(FormFault(kind, start, end))

    def replace(self, kind: str, start: int, end: int, text: str) -> None:
        """Note a fault that one replacement repairs."""
        self.fault(kind, start, end)
        self.edit(start, end, text)

    @cached_property
    def tags(self) -> frozenset[tuple[bool, str]]:
        """The names of all tags on the page, each with True if it is a closing tag."""
        return frozenset((match[1] == "/", match[2].lower()) for match in _TAG_NAME.finditer(self.text))
