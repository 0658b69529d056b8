"""Repair formatting without a model: a draft becomes valid Slack mrkdwn, or clean standard Markdown.

``repair`` does not change valid text, or any visible word, number, URL or byte of code. A repair can reveal another
fault (``<br># Title``), so passes repeat until no fault is left, at most ``_MAX_PASSES`` times. The rules handle
broadcasts, mentions, leaked tags and JSON.

Code stays as the draft wrote it, with ``<`` and ``&`` raw or escaped, because claims are compared with sources byte by
byte. ``split_chunks`` escapes it for Slack, which shows ``&lt;`` and ``<`` in code alike. The ``&`` of a URL stays raw
too: Slack accepts it, and the address must stay comparable with a source's.
"""

import html
from collections import Counter
from typing import Final

from verification.markup.blocks import survey
from verification.markup.characters import find_control_characters
from verification.markup.lines import strip_marks
from verification.markup.scanner import apply_edits, segments
from verification.types import Dialect, Repair

_MAX_PASSES: Final = 8  # a bound for hostile texts
_CODE_HERE: Final = "\x00"  # never in a repaired text


def repair(text: str, dialect: Dialect = "mrkdwn") -> tuple[str, tuple[Repair, ...]]:
    """Return the text in valid form and the repairs, most frequent kind first."""
    edits, faults = find_control_characters(text)
    text = apply_edits(text, edits) if edits else text
    counts = Counter(fault.kind for fault in faults)
    for number in range(_MAX_PASSES):
        page = survey(text, dialect)
        if not page.edits:
            # Removed definitions and rules leave empty lines at the start and end.
            text = text.strip("\n") if number else text
            break
        text = apply_edits(text, page.edits)
        counts.update(fault.kind for fault in page.faults)
    return text, tuple(Repair(kind=kind, count=count) for kind, count in counts.most_common())


def strip_mrkdwn(text: str) -> str:
    """Return plain text for a notification: labels instead of links, no marks, no escapes."""
    pieces: list[str] = []
    code: list[str] = []
    for kind, start, end in segments(text):
        part = text[start:end]
        if kind in {"code", "fence"}:
            code.append(part.strip("`").strip("\n") if kind == "fence" else part.strip("`"))
            part = _CODE_HERE
        elif kind == "token":  # its label, else its address or name
            inner, _, label = part[1:-1].partition("|")
            name = "@" + inner[1:].partition("^")[0] if inner.startswith("!") else inner.removeprefix("mailto:")
            part = label or name
        pieces.append(part)
    # Code is set aside while marks are removed, because marks in code are text.
    outside = strip_marks("".join(pieces)).split(_CODE_HERE)
    spoken = [piece for pair in zip(outside, [*code, ""], strict=False) for piece in pair]
    return html.unescape("".join(spoken)).strip()
