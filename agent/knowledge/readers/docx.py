"""The text of a Word document as Markdown. The only importer of docx, loaded for the first such document.

How much a package would unpack to is checked before anything is unpacked. Raises ``ReadError`` only.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final

from docx import Document
from docx.document import Document as Opened
from docx.opc.exceptions import OpcError
from docx.table import Table
from docx.text.paragraph import Paragraph

from agent.knowledge.types import ReadError

MAX_ENTRIES: Final = 5_000
MAX_UNPACKED: Final = 200_000_000
MAX_XML: Final = 60_000_000
"""Bytes of one XML part: it is parsed whole, into several times its size."""
_LOCKED: Final = b"\xd0\xcf\x11\xe0"
"""What an encrypted document begins with: its package lies inside a container of the older kind."""
_ENCRYPTED_ENTRY: Final = 0x1
_DEEPEST_HEADING: Final = 6
_HEADING: Final = re.compile(r"heading (?P<depth>[1-9])", re.IGNORECASE)
_PARSER_ERRORS: Final = (
    OpcError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    OSError,
    RecursionError,
    RuntimeError,
    SyntaxError,  # lxml's own error for XML is one
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What zip, XML and Word's own rules make the parser raise on damaged input."""


def docx_markdown(data: bytes) -> tuple[str, str]:
    """The title of the properties (or nothing) and the text as Markdown."""
    if data.startswith(_LOCKED):
        msg = "is locked with a password, or of the form before 2007 (.doc)"
        raise ReadError(msg)
    try:
        _bearable(data)
        document = Document(io.BytesIO(data))
        return (document.core_properties.title or "").strip(), "\n\n".join(_blocks(document)) + "\n"
    except _PARSER_ERRORS as error:
        msg = "is a damaged Word document"
        raise ReadError(msg) from error


def _bearable(data: bytes) -> None:
    """Refuse what would unpack to too much. An entry never yields more bytes than the package says it has."""
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        entries = package.infolist()
    if any(entry.flag_bits & _ENCRYPTED_ENTRY for entry in entries):
        msg = "is locked with a password"
        raise ReadError(msg)
    largest = max((entry.file_size for entry in entries if entry.filename.endswith((".xml", ".rels"))), default=0)
    unpacked = sum(entry.file_size for entry in entries)
    if len(entries) > MAX_ENTRIES or unpacked > MAX_UNPACKED or largest > MAX_XML:
        msg = f"would unpack to {unpacked // 1_000_000} MB in {len(entries)} files, which is more than is read"
        raise ReadError(msg)


def _blocks(document: Opened) -> Iterator[str]:
    items: list[str] = []
    for block in document.iter_inner_content():
        if isinstance(block, Paragraph) and _marker(block):
            items.append(_marker(block) + _line(block.text))
            continue
        if items:
            yield "\n".join(items)
            items = []
        text = _table(block) if isinstance(block, Table) else _paragraph(block)
        if text:
            yield text
    if items:
        yield "\n".join(items)


def _paragraph(paragraph: Paragraph) -> str:
    text = paragraph.text.strip()
    depth = _depth(_style(paragraph))
    return f"{'#' * depth} {_line(text)}" if depth and text else text


def _depth(style: str) -> int:
    """How deep a heading is; 0 for text."""
    if style.lower() == "title":
        return 1
    found = _HEADING.fullmatch(style)
    return min(int(found["depth"]), _DEEPEST_HEADING) if found else 0


def _marker(paragraph: Paragraph) -> str:
    style = _style(paragraph).lower()
    if not paragraph.text.strip() or not style.startswith("list"):
        return ""
    return "1. " if "number" in style else "- "


def _style(paragraph: Paragraph) -> str:
    style = paragraph.style
    return (style.name or "") if style is not None else ""


def _table(table: Table) -> str:
    """Rows with bars between cells; a cell that spans several columns is there once."""
    rows = [[_line(cell.text).replace("|", "\\|") for cell in dict.fromkeys(row.cells)] for row in table.rows]
    rows = [row for row in rows if any(row)]
    if not rows:
        return ""
    width = max(len(row) for row in rows)
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
    return "\n".join([lines[0], f"|{' --- |' * width}", *lines[1:]])


def _line(text: str) -> str:
    return " ".join(text.split())
