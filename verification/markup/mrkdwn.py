"""Repairs pure form without a model: a draft becomes valid Slack mrkdwn, or clean standard Markdown.

A valid text is a fixed point, and no visible word, number, URL or byte of code changes. Each pass mends what it finds
at once; a change can lay bare another fault (``<br># Title``), so passes follow until nothing is left, at most
``_PASSES`` of them. Broadcasts, mentions, leaked tags and JSON are for the rules to fail.

Code stays as the draft wrote it, with ``<`` and ``&`` raw or escaped: claims are compared with sources by the same
bytes. ``chunks.split`` escapes it for Slack, where ``&lt;`` and ``<`` in code show the same. The ``&`` of a URL stays
raw too: Slack takes it, and an address must stay comparable with a source's.
"""

from __future__ import annotations

import html
import re
from collections import Counter

from verification.markup.blocks import survey
from verification.markup.edits import Edit, Fault, Page, applied
from verification.markup.scanner import segments
from verification.markup.tables import unmarked
from verification.types import Dialect, Repair

_PASSES = 8  # a bound for hostile texts
_UNWANTED = re.compile("\r\n?|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")
_SPACES = frozenset("\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029")
_CODE_HERE = "\x00"  # never in a repaired text


def cleaning(text: str) -> tuple[list[Edit], list[Fault]]:
    """What makes a text plain lines: one kind of line end, no control characters, no lone surrogates."""
    page = Page(text, "mrkdwn")
    for match in _UNWANTED.finditer(text):
        char = match[0][0]
        form = "\n" if char == "\r" else " " if char in _SPACES else "\ufffd" if char >= "\ud800" else ""
        page.replace("line end" if char == "\r" else "control", *match.span(), form)
    return page.edits, page.faults


def repair(text: str, dialect: Dialect = "mrkdwn") -> tuple[str, tuple[Repair, ...]]:
    """The text in valid form and what was mended, most frequent kind first."""
    edits, faults = cleaning(text)
    text = applied(text, edits) if edits else text
    counts = Counter(fault.kind for fault in faults)
    for number in range(_PASSES):
        page = survey(text, dialect)
        if not page.edits:
            # What was taken away (definitions, rules) leaves empty lines at the ends.
            text = text.strip("\n") if number else text
            break
        text = applied(text, page.edits)
        counts.update(fault.kind for fault in page.faults)
    return text, tuple(Repair(kind=kind, count=count) for kind, count in counts.most_common())


def plain(text: str) -> str:
    """The text of a notification, from mrkdwn: labels instead of links, no marks, no escapes."""
    pieces: list[str] = []
    code: list[str] = []
    for kind, start, end in segments(text):
        part = text[start:end]
        if kind in {"code", "fence"}:
            code.append(part.strip("`").strip("\n") if kind == "fence" else part.strip("`"))
            part = _CODE_HERE
        pieces.append(_spoken(part) if kind == "token" else part)
    # Code waits outside while marks go: what looks like a mark in it is none.
    outside = unmarked("".join(pieces)).split(_CODE_HERE)
    spoken = [piece for pair in zip(outside, [*code, ""], strict=False) for piece in pair]
    return html.unescape("".join(spoken)).strip()


def _spoken(token: str) -> str:
    """What a reader sees of a token."""
    inner, _, label = token[1:-1].partition("|")
    plain = "@" + inner[1:].partition("^")[0] if inner.startswith("!") else inner.removeprefix("mailto:")
    return label or plain
