"""The lines of an answer and what each is: what claims, salvage and streams ask to know which lines belong together.

``outline`` makes units of them, in order and without overlap. In a fence code is told from plain words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from sentencex import segment  # type: ignore[import-untyped]  # a compiled wheel without type information

from verification.markup.scanner import Fence, fences

Kind = Literal["text", "heading", "item", "row", "head", "rule", "frame", "fence", "blank"]
"""``head`` is the row above a table's ``rule``; ``frame`` is what stands round a table in a code block."""
UnitKind = Literal["sentence", "item", "row", "head", "foot", "heading", "fence"]

ITEM: Final = re.compile(r"[ \t\u00a0\u2003]*(?:[-*+–•◦▪▫‣▸☐☑]|([0-9]{1,9})[.)]|[a-z][.)])[ \t\u00a0]+")
_HEADING: Final = re.compile(r"#{1,6}\s+\S.*|\*{1,2}[^*\n]{1,200}\*{1,2}:?")
_ROW: Final = re.compile(r"\|.*\|")
# Matched against a line without the white space at its ends: anything else would be quadratic in it.
_RULE: Final = re.compile(r"[-|+─│═┼:=_* \t]{3,}")
CITATION: Final = re.compile(r"\[(\d{1,12}(?:\s*[,;–-]\s*\d{1,12})*)\](?!\()")
_RANGE: Final = re.compile(r"([0-9]+)(?:\s*[-–]\s*([0-9]+))?")
_LONGEST_RANGE: Final = 30
_LONGEST_NUMBER: Final = 12  # digits: Python's int() takes quadratic time in thousands of them
NOWHERE: Final = -1
"""Stands for a number that no source can have."""
_COLON_END: Final = re.compile(r"[:：][\s*_~]*$")
_CODE: Final = re.compile(r"```[^`]+```")
_LONGEST: Final = 2_000
_HIGHEST_RULE: Final = 4  # lines of a code block: below them no table begins
WRITTEN: Final = re.compile(r"[^\n]+")
_CODE_SIGN: Final = re.compile(r"[={}();$|<>\\&`\[\]#@]|(?<!\S)--?[A-Za-z]|://|/\w+/")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_PROSE_WORDS: Final = 3  # "make test" is a command, "then restart the service" is not
_ONLY_CITES: Final = re.compile(r"(?:\s*\[[0-9]+\])*[\s.。]*")
_TABLE: Final = frozenset({"frame", "head", "rule", "row"})


class TextLine(NamedTuple):
    """A line without its end, with the lines it runs on over; a code block is one line."""

    start: int
    end: int
    kind: Kind
    content: int  # where the text behind a marker begins, or the code behind the ticks
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


def ids_in(inside: str) -> Iterator[int]:
    """The numbers a citation names; a range is every number in it, unless it is backwards or absurdly long."""
    for match in _RANGE.finditer(inside):
        first, last = match[1], match[2] or match[1]
        if max(len(first), len(last)) > _LONGEST_NUMBER or not 0 <= int(last) - int(first) <= _LONGEST_RANGE:
            yield NOWHERE
        else:
            yield from range(int(first), int(last) + 1)


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


def pieces(body: str, offset: int) -> Iterator[tuple[int, int, bool]]:
    """The runs of a fence's lines as spans: code lines together, each line of plain words by itself (False)."""
    begun = end = -1
    for line in WRITTEN.finditer(body):
        words = line[0].strip()
        if not words:
            continue
        start = offset + line.start() + line[0].index(words)
        if is_code(words):
            begun, end = start if begun < 0 else begun, start + len(words)
            continue
        if begun >= 0:
            yield begun, end, True
            begun = -1
        yield start, start + len(words), False
    if begun >= 0:
        yield begun, end, True


def is_code(line: str) -> bool:
    """Whether a line is more than plain words; Chinese and Japanese words are not parted."""
    if _CODE_SIGN.search(line):
        return True
    return len(_WORD.findall(line)) < _PROSE_WORDS and not re.search("[\u3040-\u30ff\u3400-\u9fff]{4}", line)


class Unit(NamedTuple):
    """One unit: its span without line end, the block it is part of, and for items depth and number."""

    start: int
    end: int
    kind: UnitKind
    block: int
    introduces: bool = False  # it ends in a colon
    indent: int = 0
    number: int | None = None


def outline(text: str) -> tuple[Unit, ...]:
    """The units of a text in order."""
    return tuple(unit for number, block in enumerate(_blocks(text)) for unit in _units(text, block, number))


def _blocks(text: str) -> Iterator[list[TextLine]]:
    """Neighbouring lines of one kind; a blank line ends any block but a list whose next line is an item again."""
    block: list[TextLine] = []
    near = False
    for line in lines(text):
        if line.kind == "blank":
            near = False
            continue
        kind = block[0].kind if block else "blank"
        kin = (line.kind == kind and kind not in {"heading", "fence"}) or {line.kind, kind} <= _TABLE
        hangs = kind == "item" and line.kind == "text" and line.indent > 0
        if block and ((kin and (near or kind == "item")) or (hangs and near)):
            block.append(line)
        else:
            if block:
                yield block
            block = [line]
        near = True
    if block:
        yield block


def _units(text: str, block: list[TextLine], number: int) -> Iterator[Unit]:
    kind = block[0].kind
    if kind == "text" or (kind == "rule" and len(block) == 1):
        yield from _sentences(text, block[0].start, block[-1].end, number)
    elif kind == "item":
        yield from _items(text, block, number)
    elif kind in _TABLE:
        yield from _rows(block, number)
    else:
        yield Unit(block[0].start, block[0].end, "heading" if kind == "heading" else "fence", number)


def _sentences(text: str, start: int, end: int, block: int) -> Iterator[Unit]:
    """The sentences of a paragraph; a piece that only cites belongs to the sentence before it."""
    at = start
    spans: list[tuple[int, int]] = []
    for piece in segment("en", text[start:end]):
        found = text.find(piece, at, end)
        if found < 0:  # the splitter changed the letters: the rest is one sentence
            break
        at = found + len(piece)
        if spans and _ONLY_CITES.fullmatch(piece):
            spans[-1] = (spans[-1][0], at)
        else:
            spans.append((found, at))
    if at < end and text[at:end].strip():
        spans.append((at, end))
    for first, last in spans:
        seen = text[first:last].rstrip()
        yield Unit(first, first + len(seen), "sentence", block, ends_in_colon(seen))


def _items(text: str, block: list[TextLine], number: int) -> Iterator[Unit]:
    """The items of a list, each with its continuation lines."""
    starts = [at for at, line in enumerate(block) if line.kind == "item"]
    for first, last in zip(starts, [*starts[1:], len(block)], strict=True):
        item, end = block[first], block[last - 1].end
        yield Unit(item.start, end, "item", number, ends_in_colon(text[item.start : end]), item.indent, item.number)


def _rows(block: list[TextLine], number: int) -> Iterator[Unit]:
    """The rows of a table; what stands above its rule, and the rule, are the head."""
    above = True
    for line in block:
        above = above and line.kind != "row"
        kind: UnitKind = "head" if above else "foot" if line.kind == "frame" else "row"
        yield Unit(line.start, line.end, kind, number)
