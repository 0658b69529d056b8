"""Cuts a document into chunks: by heading, then by size, never inside a paragraph, list item, table row or code line.

A chunk's text is lines of the document as they stand; only a table that goes on repeats its head. Lines count from 1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from agent.knowledge.readers.reading import Form, Part, ReadDocument
from agent.knowledge.types import PATH

CHUNK_CHARS: Final = 1_200  # some 200 words: few enough to be about one thing, enough to be ranked by
_SENTENCE_END: Final = re.compile(r"(?<=[.!?。！？])\s+|\n")
_UNSEEN: Final = re.compile(r"\s*<(?:!--|script|style)", re.IGNORECASE)
_ITEM: Final = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_PARSER: Final = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a document. ``heading`` is the nearest one, ``path`` all of them from the top; ``page`` 0 means none.

    ``anchor`` is the heading's fragment, empty where there is no heading.
    """

    text: str
    heading: str = ""
    path: str = ""
    anchor: str = ""
    line: int = 1
    page: int = 0


class _Section(NamedTuple):
    """The blocks under one heading, it the first of them: first line (from 0), line behind the last, kind."""

    headings: tuple[str, ...]
    anchor: str
    blocks: Sequence[tuple[int, int, str]]


def slug(heading: str) -> str:
    """The fragment that repository hosts and most site builders give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower().strip()).replace(" ", "-")


def chunk_document(document: ReadDocument) -> tuple[Chunk, ...]:
    """All chunks of a document, in order."""
    return tuple(chunk for part in document.parts for chunk in _part_chunks(part, document.form))


def _part_chunks(part: Part, form: Form) -> Iterator[Chunk]:
    lines = part.text.split("\n")
    plain = form != "markdown"
    for section in [_Section((), "", _paragraphs(lines))] if plain else _sections(_PARSER.parse(part.text)):
        for held in _filled(section, lines):
            yield Chunk(
                text="\n\n".join(text for _, text in held),
                heading=section.headings[-1] if section.headings else "",
                path=PATH.join(section.headings),
                anchor=section.anchor,
                line=part.line + held[0][0],
                page=part.page,
            )


def _paragraphs(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    runs = groupby(range(len(lines)), key=lambda number: bool(lines[number].strip()))
    held = [list(numbers) for is_text, numbers in runs if is_text]
    return [(numbers[0], numbers[-1] + 1, "paragraph") for numbers in held]


def _sections(tokens: Sequence[Token]) -> Iterator[_Section]:
    trail: dict[int, str] = {}
    seen: Counter[str] = Counter()
    anchor = ""
    blocks: list[tuple[int, int, str]] = []
    for index, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        if token.type == "heading_open":
            yield _Section(tuple(trail.values()), anchor, blocks)
            title = " ".join("".join(child.content for child in tokens[index + 1].children or ()).split())
            trail = {depth: text for depth, text in trail.items() if depth < int(token.tag[1])}
            trail[int(token.tag[1])] = title
            anchor, before = slug(title), seen[slug(title)]
            seen[anchor] += 1
            anchor += f"-{before}" if before else ""  # the second heading of one name is ``name-1``, as hosts do it
            blocks = []
        blocks.append((token.map[0], token.map[1], token.type))
    yield _Section(tuple(trail.values()), anchor, blocks)


def _filled(section: _Section, lines: Sequence[str]) -> Iterator[list[tuple[int, str]]]:
    """Start lines and texts of the blocks, for chunks of about ``CHUNK_CHARS``; a heading alone is none."""
    headings = [start for start, _, kind in section.blocks if kind == "heading_open"]
    held: list[tuple[int, str]] = []
    for start, text, opens in _pieces(section, lines):
        full = opens or sum(len(piece) + 2 for _, piece in held) + len(text) > CHUNK_CHARS
        if full and held and [first for first, _ in held] != headings:
            yield held
            held = []
        held.append((start, text))
    if held and [first for first, _ in held] != headings:
        yield held


def _pieces(section: _Section, lines: Sequence[str]) -> Iterator[tuple[int, str, bool]]:
    """Each block as one piece, or as several where it is too long: start line, text, must begin a new chunk."""
    for start, end, kind in section.blocks:
        text = "\n".join(lines[start:end]).strip("\n")
        if not text.strip() or kind == "hr" or (kind == "html_block" and _UNSEEN.match(text)):
            continue
        if len(text) <= CHUNK_CHARS:
            yield (start, text, False)
        else:
            yield from _split_block(start, lines[start:end], kind)


def _split_block(start: int, lines: Sequence[str], kind: str) -> Iterator[tuple[int, str, bool]]:
    """A long block, at the lines where its items, rows or sentences begin."""
    head = list(lines[:2]) if kind == "table_open" else []
    held: list[str] = []
    first = start
    is_list = kind in {"bullet_list_open", "ordered_list_open"}
    for number, line in _items(lines) if is_list else _fitting(enumerate(lines)):
        if held and sum(len(text) + 1 for text in held) + len(line) > CHUNK_CHARS:
            yield (first, "\n".join(held), True)
            held, first = list(head), start + number
        held.append(line)
    yield (first, "\n".join(held), True)


def _items(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """List items of the top level with all that hangs on them; an item too long for a chunk falls into lines."""
    depth = len(lines[0]) - len(lines[0].lstrip())
    found = ((number, _ITEM.match(line)) for number, line in enumerate(lines))
    starts = [number for number, item in found if item and len(item["indent"]) <= depth] or [0]
    for begin, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        item = "\n".join(lines[begin:end])
        if len(item) <= CHUNK_CHARS:
            yield (begin, item)
        else:
            yield from _fitting(enumerate(lines[begin:end], begin))


def _fitting(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Lines, in sentences where one is longer than a chunk, and cut where even a sentence is."""
    for number, line in lines:
        for sentence in filter(None, _SENTENCE_END.split(line)) if len(line) > CHUNK_CHARS else [line]:
            cuts = range(0, max(1, len(sentence)), CHUNK_CHARS)
            yield from ((number, sentence[at : at + CHUNK_CHARS]) for at in cuts)
