"""Convert the aligned lines of a verified chunk to Slack's ``table`` block, or to a list of short lines.

Monospaced lines break in a narrow thread pane. Every cell keeps its text; a citation in a cell becomes a link.
"""

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from verification.markup.scanner import fences
from verification.markup.tables import drawn_rows, is_drawn
from verification.types import Source

Block = dict[str, Any]
Row = Sequence[str]

MAX_ROWS: Final = 100
MAX_COLUMNS: Final = 20
MAX_CELLS_LENGTH: Final = 10_000  # characters of all cells of a message's one table
_MAX_LIST_ROWS: Final = 60
"""Rows. A longer list is harder to read than aligned lines."""
_CITATION: Final = re.compile(r"\[(\d{1,9})\]")


class Part(NamedTuple):
    """A part of a chunk. If it is a table, ``rows`` are its cells, header first."""

    text: str
    rows: Sequence[Row] = ()


def split_tables(chunk: str) -> list[Part]:
    """Split a chunk into mrkdwn and tables, in order. A table with rows of unequal length remains a fence."""
    parts: list[Part] = []
    position = 0
    for fence in fences(chunk):
        body = chunk[fence.body : fence.body_end].strip("\n")
        rows = drawn_rows(html.unescape(body)) if is_drawn(body) else []
        if len({len(row) for row in rows}) == 1 and len(rows[0]) <= MAX_COLUMNS:
            parts += [Part(chunk[position : fence.start]), Part(chunk[fence.start : fence.end], rows)]
            position = fence.end
    if not parts:
        return [Part(chunk)]
    parts.append(Part(chunk[position:]))
    return [part._replace(text=part.text.strip("\n")) for part in parts if part.text.strip()]


def is_native_table(rows: Sequence[Row]) -> bool:
    """Return whether Slack accepts these rows as the table of a message."""
    return len(rows) <= MAX_ROWS and sum(len(cell) for row in rows for cell in row) <= MAX_CELLS_LENGTH


def is_readable_list(rows: Sequence[Row]) -> bool:
    """Return whether these rows are few enough to be read as a list."""
    return 1 < len(rows) <= _MAX_LIST_ROWS


def table_block(rows: Sequence[Row], sources: Sequence[Source]) -> Block:
    """Return the rows as a ``table`` block with a bold header and wrapped columns."""
    urls = _source_urls(sources)
    head, *body = rows
    cells = [[_cell(cell, urls, bold=True) for cell in head]]
    cells += [[_cell(cell, urls) for cell in row] for row in body]
    return {"type": "table", "rows": cells, "column_settings": [{"is_wrapped": True} for _ in head]}


def list_block(rows: Sequence[Row], sources: Sequence[Source]) -> Block:
    """Return the rows as a list: the first cell of each, and under it the other cells with their column names."""
    urls = _source_urls(sources)
    (_, *names), *body = rows
    elements: list[Block] = []
    for first, *rest in body:
        elements.append(_list_items([_text_elements(first, urls, bold=True)], indent=0))
        named = [
            _text_elements(f"{name}: ", urls) + _text_elements(cell, urls)
            for name, cell in zip(names, rest, strict=True)
            if cell
        ]
        elements += [_list_items(named, indent=1)] if named else []
    return {"type": "rich_text", "elements": elements}


def _list_items(items: Sequence[list[Block]], *, indent: int) -> Block:
    sections = [{"type": "rich_text_section", "elements": words} for words in items]
    return {"type": "rich_text_list", "style": "bullet", "indent": indent, "elements": sections}


def _cell(text: str, urls: Mapping[str, str], *, bold: bool = False) -> Block:
    section = {"type": "rich_text_section", "elements": _text_elements(text, urls, bold=bold)}
    return {"type": "rich_text", "elements": [section]}


def _text_elements(text: str, urls: Mapping[str, str], *, bold: bool = False) -> list[Block]:
    """Return text elements, and links for citations that have an address. Slack rejects an empty text."""
    style = {"style": {"bold": True}} if bold else {}
    words: list[Block] = []
    position = 0
    for citation in _CITATION.finditer(text):
        if url := urls.get(citation[1]):
            words += [{"type": "text", "text": text[position : citation.start()], **style}]
            words += [{"type": "link", "url": url, "text": citation[0]}]
            position = citation.end()
    words.append({"type": "text", "text": text[position:], **style})
    return [word for word in words if word["text"]] or [{"type": "text", "text": " "}]


def _source_urls(sources: Sequence[Source]) -> dict[str, str]:
    return {str(source.id): source.url for source in sources if source.url.startswith(("https://", "http://"))}
