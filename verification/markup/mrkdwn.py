"""Repair characters and formatting without a model: a draft becomes valid Slack mrkdwn, or clean standard Markdown.

``repair`` does not change valid text, or any visible word, number, URL or byte of code. A repair can reveal another
fault (``<br># Title``), so passes repeat until no fault is left, at most ``_MAX_PASSES`` times. The rules handle
broadcasts, mentions, leaked tags and JSON.

Code stays as the draft wrote it, with ``<`` and ``&`` raw or escaped, because claims are compared with sources byte by
byte. ``split_chunks`` escapes it for Slack, which shows ``&lt;`` and ``<`` in code alike. The ``&`` of a URL stays raw
too: Slack accepts it, and the address must stay comparable with a source's.
"""

import html
import re
from collections import Counter
from typing import Final

from verification.markup.blocks import survey
from verification.markup.lines import strip_marks
from verification.markup.scanner import Edit, FormFault, MarkupPage, apply_edits, segments
from verification.types import Dialect, Repair

_MAX_PASSES: Final = 8  # a bound for hostile texts
_CODE_HERE: Final = "\x00"  # never in a repaired text
_SURROGATE: Final = re.compile("[\ud800-\udfff]")  # UTF-8 excludes them (RFC 3629), so no request can contain them
_CONTROL_CHARACTER: Final = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
# Direction marks and overrides, and other characters without width, none of which belongs in an answer.
_DIRECTION: Final = "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
_WITHOUT_WIDTH: Final = (
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a]"
)
_FLAG: Final = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f"
_TAG_LETTER: Final = "[\U000e0000-\U000e007f]"
# Data may hide in rows of variation selectors behind one emoji.
_SELECTORS: Final = (
    "(?<=[\u3400-\u9fff])[\U000e0100-\U000e01ef](?![\ufe00-\ufe0f\U000e0100-\U000e01ef])|(?<=[0-9#*\u00a9\u00ae\u1000-\U0001faff])"
    "[\ufe0e\ufe0f](?![\ufe00-\ufe0f\U000e0100-\U000e01ef])"
)
_JOINER: Final = "(?<=[^\x00-\u02ff])[\u200c\u200d](?=[^\x00-\u02ff\u200b-\u200d])"
_MARK: Final = r"[*_~`#\[\](){}<>|\\+\-:.,&;=]"
_GUARD: Final = f"(?<={_MARK})\u200b(?!\u200b)|(?<!\u200b)\u200b(?={_MARK})"
_UNSENDABLE: Final = re.compile(
    f"(?P<keep>{_FLAG}|{_SELECTORS}|{_JOINER}|{_GUARD})"
    f"|{_CONTROL_CHARACTER}|{_DIRECTION}|{_WITHOUT_WIDTH}|{_TAG_LETTER}|[\u200b-\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_LAYOUT: Final = str.maketrans("\n\t\r", "   ")
_UNWANTED = re.compile("\r\n?|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")
_SPACES = frozenset("\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029")


def remove_unencodable(text: str) -> str:
    """Replace or remove only what cannot be encoded or shown. A source keeps its disguises, so that they are found."""
    return re.sub(_CONTROL_CHARACTER, "", _SURROGATE.sub("\ufffd", text))


def remove_unsendable(text: str) -> tuple[str, int]:
    """Remove unsendable and invisible characters. Lone surrogates become U+FFFD. Also return how many were removed."""
    if text.isascii() and text.translate(_LAYOUT).isprintable():  # a fast check that most texts pass
        return text, 0
    text, count = _SURROGATE.subn("\ufffd", text)
    while (clean := _UNSENDABLE.sub(lambda match: match["keep"] or "", text)) != text:
        count += len(text) - len(clean)
        text = clean  # removing one character may expose another
    return text, count


def find_control_characters(text: str) -> tuple[list[Edit], list[FormFault]]:
    """Return edits that unify line endings and remove control characters and lone surrogates."""
    page = MarkupPage(text)
    for match in _UNWANTED.finditer(text):
        char = match[0][0]
        form = "\n" if char == "\r" else " " if char in _SPACES else "\ufffd" if char >= "\ud800" else ""
        page.replace("line end" if char == "\r" else "control", *match.span(), form)
    return page.edits, page.faults


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
    outside, hidden = strip_marks("".join(pieces)), iter(code)
    return html.unescape(re.sub(_CODE_HERE, lambda _: next(hidden, ""), outside)).strip()
