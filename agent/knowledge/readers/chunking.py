"""Cuts a document into chunks: by heading, then by size, never inside a paragraph, list item, table row or code line.

A chunk's text is lines of the document as they stand; only a table that goes on repeats its head. Lines count from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from agent.knowledge.readers.anchors import slug
from agent.knowledge.readers.reading import Part, ReadDocument
from agent.knowledge.types import PATH

CHUNK_CHARS: Final = 1_200
"""About two hundred words: small enough to be about one thing, large enough to be ranked by its words."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?。！？])\s+|\n")
_UNSEEN: Final = re.compile(r"\s*<(?:!--|script|style)", re.IGNORECASE)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """The lines under one heading (0-based, half open), as blocks that belong together."""

    headings: tuple[str, ...]
    anchor: str
    blocks: tuple[tuple[int, int, str], ...]


def chunk_document(document: ReadDocument) -> tuple[Chunk, ...]:
    """All chunks of a document, in order."""
    chunks: list[Chunk] = []
    for part in document.parts:
        chunks += _markdown_chunks(part) if document.form == "markdown" else _text_chunks(part)
    return tuple(chunks)


def _text_chunks(part: Part) -> list[Chunk]:
    lines = part.text.split("\n")
    section = _Section(headings=(), anchor="", blocks=tuple(_paragraphs(lines)))
    return _section_chunks(section, lines, part)


def _paragraphs(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    start = -1
    for number, line in enumerate([*lines, ""]):
        if line.strip():
            start = number if start < 0 else start
        elif start >= 0:
            yield (start, number, "paragraph")
            start = -1


def _markdown_chunks(part: Part) -> list[Chunk]:
    lines = part.text.split("\n")
    chunks: list[Chunk] = []
    for section in _sections(_PARSER.parse(part.text)):
        chunks += _section_chunks(section, lines, part)
    return chunks


def _sections(tokens: Sequence[Token]) -> Iterator[_Section]:
    """Top-level blocks, gathered under their headings."""
    trail: dict[int, str] = {}
    seen: dict[str, int] = {}
    anchor = ""
    blocks: list[tuple[int, int, str]] = []
    for index, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        if token.type == "heading_open":
            yield _Section(headings=tuple(trail.values()), anchor=anchor, blocks=tuple(blocks))
            title = _plain_heading(tokens[index + 1])
            trail = {depth: text for depth, text in trail.items() if depth < int(token.tag[1])}
            trail[int(token.tag[1])] = title
            anchor = _unique(slug(title), seen)
            blocks = [(token.map[0], token.map[1], "heading")]
        else:
            blocks.append((token.map[0], token.map[1], token.type))
    yield _Section(headings=tuple(trail.values()), anchor=anchor, blocks=tuple(blocks))


def _plain_heading(inline: Token) -> str:
    return " ".join("".join(child.content for child in inline.children or ()).split())


def _unique(anchor: str, seen: dict[str, int]) -> str:
    """The second heading of one name is ``name-1``, as hosts do it."""
    count = seen.get(anchor, 0)
    seen[anchor] = count + 1
    return f"{anchor}-{count}" if count else anchor


def _section_chunks(section: _Section, lines: Sequence[str], part: Part) -> list[Chunk]:
    """Blocks are filled into chunks of about ``CHUNK_CHARS``; a heading alone is none."""
    chunks: list[Chunk] = []
    held: list[tuple[int, str]] = []
    for start, text, opens in _pieces(section, lines):
        if (
            held
            and (opens or sum(len(t) + 2 for _, t in held) + len(text) > CHUNK_CHARS)
            and not _only_heading(held, section)
        ):
            chunks.append(_chunk(section, held, part))
            held = []
        held.append((start, text))
    if held and not _only_heading(held, section):
        chunks.append(_chunk(section, held, part))
    return chunks


def _only_heading(held: Sequence[tuple[int, str]], section: _Section) -> bool:
    start, _, kind = section.blocks[0]
    return kind == "heading" and len(held) == 1 and held[0][0] == start


def _chunk(section: _Section, held: Sequence[tuple[int, str]], part: Part) -> Chunk:
    return Chunk(
        text="\n\n".join(text for _, text in held),
        heading=section.headings[-1] if section.headings else "",
        path=PATH.join(section.headings),
        anchor=section.anchor,
        line=part.line + held[0][0],
        page=part.page,
    )


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
    for number, line in _units(lines, kind):
        if held and sum(len(text) + 1 for text in held) + len(line) > CHUNK_CHARS:
            yield (first, "\n".join(held), True)
            held, first = list(head), start + number
        held.append(line)
    yield (first, "\n".join(held), True)


def _units(lines: Sequence[str], kind: str) -> Iterator[tuple[int, str]]:
    """The smallest pieces that stay whole: list items, else lines, else sentences of an over-long line."""
    if kind in {"bullet_list_open", "ordered_list_open"}:
        yield from _items(lines)
        return
    for number, line in enumerate(lines):
        yield from ((number, piece) for piece in _fitting(line))


def _items(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """List items of the top level with all that hangs on them; an item too long for a chunk falls into lines."""
    depth = len(lines[0]) - len(lines[0].lstrip())
    starts = [n for n, line in enumerate(lines) if _is_item(line, depth)] or [0]
    for begin, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        item = "\n".join(lines[begin:end])
        if len(item) <= CHUNK_CHARS:
            yield (begin, item)
        else:
            yield from ((begin + n, piece) for n, line in enumerate(lines[begin:end]) for piece in _fitting(line))


_ITEM: Final = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")


def _is_item(line: str, depth: int) -> bool:
    found = _ITEM.match(line)
    return found is not None and len(found["indent"]) <= depth


def _fitting(line: str) -> Iterator[str]:
    """A line, in sentences where it is longer than a chunk, and cut where even a sentence is."""
    if len(line) <= CHUNK_CHARS:
        yield line
        return
    for sentence in _SENTENCE_END.split(line):
        for at in range(0, len(sentence), CHUNK_CHARS):
            yield sentence[at : at + CHUNK_CHARS]
