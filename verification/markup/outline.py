"""The units of an answer, in order and without overlap: sentences, list items, table rows, headings and code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from sentencex import segment  # type: ignore[import-untyped]  # a compiled wheel without type information

from verification.markup import scanner

Kind = Literal["sentence", "item", "row", "head", "foot", "heading", "fence"]

_ITEM: Final = re.compile(r"([ \t\u00a0\u2003]*)(?:[-*+•◦▪▫‣▸☐☑]|([0-9]{1,9})[.)])[ \t\u00a0]+\S")
_HEADING: Final = re.compile(r" {0,3}#{1,6}\s+\S.*|\*{1,2}[^*\n]{1,200}\*{1,2}:?\s*")
_ROW: Final = re.compile(r"\s*\|.*\|\s*")
_RULE_ROW: Final = re.compile(r"\s*\|[\s|:-]+\|\s*")
_RULING: Final = re.compile(r"(?=.*[-─═=]{2})[\s|│:+─┼═=-]+")
_INTRODUCES: Final = re.compile(r"[:：](?:\s*\[[0-9]+\])*[\s*_]*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One unit: its span without line end, the block it is part of, and for items depth and number.

    ``introduces`` is true where it ends in a colon. ``first`` is the number its ordered list begins with.
    """

    start: int
    end: int
    kind: Kind
    block: int
    introduces: bool = False
    indent: int = 0
    number: int | None = None
    first: int = 1


def outline(text: str) -> tuple[Unit, ...]:
    """The units of a text in order."""
    units: list[Unit] = []
    for block, (kind, start, end) in enumerate(_blocks(text)):
        match kind:
            case "sentence":
                units += _sentences(text, start, end, block)
            case "item":
                units += _items(text, start, end, block)
            case "row":
                units += _rows(text, start, end, block)
            case "fence":
                units += _fenced(text, start, end, block)
            case _:
                units.append(Unit(start=start, end=end, kind=kind, block=block))
    return tuple(units)


def _blocks(text: str) -> Iterator[tuple[Kind, int, int]]:
    """Neighbouring lines of one kind; a blank line ends any block but a list whose next line is an item again."""
    open_kind: Kind | None = None
    start = end = 0
    for kind, line_start, line_end in _lines(text):
        joins = kind == open_kind and kind not in {"heading", "fence"}
        lazy = open_kind == "item" and kind == "sentence" and line_start == end + 1 and text[line_start] in " \t"
        near = line_start == end + 1 or (kind == "item" and not text[end:line_start].strip())
        if (joins and near) or lazy:
            end = line_end
            continue
        if open_kind:
            yield open_kind, start, end
        open_kind, start, end = kind, line_start, line_end
    if open_kind:
        yield open_kind, start, end


def _lines(text: str) -> Iterator[tuple[Kind, int, int]]:
    """Each line that is not blank, with its kind; a fence is one line."""
    at = 0
    for part in scanner.segments(text):
        if part.kind == "fence":
            yield from _plain_lines(text, at, part.start)
            yield "fence", part.start, part.start + len(text[part.start : part.end].rstrip())
            at = part.end
    yield from _plain_lines(text, at, len(text))


def _plain_lines(text: str, start: int, end: int) -> Iterator[tuple[Kind, int, int]]:
    at = start
    for line in text[start:end].split("\n"):
        if line.strip():
            yield _kind(line), at, at + len(line)
        at += len(line) + 1


def _kind(line: str) -> Kind:
    if _ITEM.match(line):
        return "item"
    if _ROW.fullmatch(line):
        return "row"
    return "heading" if _HEADING.fullmatch(line) else "sentence"


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
        introduces = bool(_INTRODUCES.search(seen))
        yield Unit(start=first, end=first + len(seen), kind="sentence", block=block, introduces=introduces)


_ONLY_CITES: Final = re.compile(r"(?:\s*\[[0-9]+\])*[\s.。]*")


def _items(text: str, start: int, end: int, block: int) -> Iterator[Unit]:
    """The items of a list, each with its continuation lines."""
    units: list[Unit] = []
    first: dict[int, int] = {}
    at = start
    for line in text[start:end].split("\n"):
        match = _ITEM.match(line)
        if match:
            indent = len(match[1].expandtabs(4))
            number = int(match[2]) if match[2] else None
            first = {depth: begun for depth, begun in first.items() if depth <= indent}
            begun = first.setdefault(indent, number) if number is not None else 1
            units.append(
                Unit(start=at, end=at + len(line), kind="item", block=block, indent=indent, number=number, first=begun)
            )
        elif line.strip():
            units[-1] = replace(units[-1], end=at + len(line))
        at += len(line) + 1
    for unit in units:
        yield replace(unit, introduces=bool(_INTRODUCES.search(text[unit.start : unit.end].rstrip())))


def _fenced(text: str, start: int, end: int, block: int) -> Iterator[Unit]:
    """A fence as one unit; one that holds a table as head, rows and foot."""
    lines = text[start:end].split("\n")
    ruling = next((number for number, line in enumerate(lines[:4]) if number > 1 and _RULING.fullmatch(line)), 0)
    if not ruling or len(lines) < ruling + _LEAST_BELOW or lines[-1].strip() != "```":
        yield Unit(start=start, end=end, kind="fence", block=block)
        return
    at = start
    for number, line in enumerate(lines):
        kind: Kind = "head" if number <= ruling else "foot" if number == len(lines) - 1 else "row"
        yield Unit(start=at, end=at + len(line), kind=kind, block=block)
        at += len(line) + 1


_LEAST_BELOW: Final = 3
"""A ruling, one row and the closing fence."""


def _rows(text: str, start: int, end: int, block: int) -> Iterator[Unit]:
    """The rows of a Markdown table: what stands above its rule, and the rule, are the head."""
    lines = text[start:end].split("\n")
    rules = [number for number, line in enumerate(lines) if _RULE_ROW.fullmatch(line)]
    head = rules[0] if rules else -1
    at = start
    for number, line in enumerate(lines):
        yield Unit(start=at, end=at + len(line), kind="head" if number <= head else "row", block=block)
        at += len(line) + 1
