"""The lines of an answer and what each is: what claims, salvage and streams ask to know which lines belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from verification.markup.scanner import Fence, fences

Kind = Literal["text", "heading", "item", "row", "head", "rule", "frame", "fence", "blank"]
"""``head`` is the row above a table's ``rule``; ``frame`` is what stands round a table in a code block."""

ITEM: Final = re.compile(r"[ \t\u00a0\u2003]*(?:[-*+–•◦▪▫‣▸☐☑]|([0-9]{1,9})[.)]|[a-z][.)])[ \t\u00a0]+")
_HEADING: Final = re.compile(r"#{1,6}\s+\S.*|\*{1,2}[^*\n]{1,200}\*{1,2}:?")
_ROW: Final = re.compile(r"\|.*\|")
# Matched against a line without the white space at its ends: anything else would be quadratic in it.
_RULE: Final = re.compile(r"[-|+─│═┼:=_* \t]{3,}")
CITATION: Final = re.compile(r"\[(\d{1,12}(?:\s*[,;–-]\s*\d{1,12})*)\](?!\()")
_COLON_END: Final = re.compile(r"[:：][\s*_~]*$")
_CODE: Final = re.compile(r"```[^`]+```")
_LONGEST: Final = 2_000
_HIGHEST_RULE: Final = 4  # lines of a code block: below them no table begins


class TextLine(NamedTuple):
    """A line without its end, with the lines it runs on over. ``content`` is where the text behind a marker begins.

    A code block is one line, with the code from ``content`` on.
    """

    start: int
    end: int
    kind: Kind
    content: int
    indent: int = 0
    number: int | None = None


def lines(text: str) -> Iterator[TextLine]:
    """The lines of a text, those of a table in a code block too."""
    at = 0
    for fence in fences(text):
        yield from _plain(text, at, fence.start)
        yield from _fenced(text, fence)
        at = fence.end
    yield from _plain(text, at, len(text))


def ends_in_colon(line: str) -> bool:
    """Whether a line introduces what follows: it ends in a colon, marks and citations aside."""
    return bool(_COLON_END.search(CITATION.sub("", line)))


def _plain(text: str, start: int, end: int) -> Iterator[TextLine]:
    """The lines of a stretch without fences; one that goes on in small letters is joined to the one before."""
    spans: list[tuple[int, int]] = []
    for line in text[start:end].split("\n"):
        above = text[spans[-1][0] : spans[-1][1]] if spans else ""
        goes_on = line.lstrip()[:1].islower() and not ITEM.match(line)
        if goes_on and above.strip() and len(above) < _LONGEST and not _COLON_END.search(above):
            spans[-1] = (spans[-1][0], start + len(line))
        else:
            spans.append((start, start + len(line)))
        start += len(line) + 1
    below = [text[first:last].strip() for first, last in spans[1:]]
    for (first, last), following in zip(spans, [*below, ""], strict=True):
        yield _line(text[first:last].replace("\n", " "), first, following)


def _line(line: str, start: int, following: str) -> TextLine:
    """One line with its kind, as it and the line below show it."""
    bare = line.strip()
    marker = ITEM.match(line)
    indent = len(line[: len(line) - len(line.lstrip())].expandtabs(4))
    kind: Kind = "item" if marker else "text"
    if not bare:
        kind = "blank"
    elif _RULE.fullmatch(bare):
        kind = "rule"
    elif _ROW.fullmatch(bare):
        kind = "head" if "-" in following and _RULE.fullmatch(following) else "row"
    elif bare[0] in "#*" and _HEADING.fullmatch(CITATION.sub("", bare).strip()):
        kind = "heading"
    content = start + (marker.end() if marker else 0)
    if _CODE.fullmatch(bare):
        kind, content = "fence", start + line.index("```") + 3
    return TextLine(start, start + len(line), kind, content, indent, int(marker[1]) if marker and marker[1] else None)


def _fenced(text: str, fence: Fence) -> Iterator[TextLine]:
    """A code block: one line, or the lines of the table that is set in it."""
    rows = text[fence.start : fence.end].rstrip().split("\n")
    rule = next((at for at, row in enumerate(rows[:_HIGHEST_RULE]) if at and _RULE.fullmatch(row.strip())), 0)
    at = fence.start
    if not rule or fence.inline:
        code = text.index(fence.ticks, at) + len(fence.ticks)
        yield TextLine(at, at + len("\n".join(rows)), "fence", code)
        return
    for number, row in enumerate(rows):
        framing = number < rule - 1 or number == 0 or (fence.closed and number == len(rows) - 1)
        kind: Kind = "frame" if framing else "head" if number < rule else "rule" if number == rule else "row"
        yield TextLine(at, at + len(row), kind, at)
        at += len(row) + 1
