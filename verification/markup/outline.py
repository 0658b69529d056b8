"""The units of an answer, in order and without overlap: sentences, list items, table rows, headings and code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from sentencex import segment  # type: ignore[import-untyped]  # a compiled wheel without type information

from verification.markup.lines import TextLine, ends_in_colon, lines

Kind = Literal["sentence", "item", "row", "head", "foot", "heading", "fence"]

_ONLY_CITES: Final = re.compile(r"(?:\s*\[[0-9]+\])*[\s.。]*")
_TABLE: Final = frozenset({"frame", "head", "rule", "row"})


class Unit(NamedTuple):
    """One unit: its span without line end, the block it is part of, and for items depth and number.

    ``introduces`` is true where it ends in a colon.
    """

    start: int
    end: int
    kind: Kind
    block: int
    introduces: bool = False
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
    """The units of one block."""
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
        kind: Kind = "head" if above else "foot" if line.kind == "frame" else "row"
        yield Unit(line.start, line.end, kind, number)
