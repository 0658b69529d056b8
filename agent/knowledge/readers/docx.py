"""The text of a Word document as Markdown. The only importer of docx, loaded for the first such document.

How much a package would unpack to is checked before anything is unpacked. Raises ``ReadError`` only.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from docx import Document
from docx.document import Document as Opened
from docx.opc.exceptions import OpcError
from docx.table import Table
from docx.text.paragraph import Paragraph

from agent.knowledge.readers.reading import damaged
from agent.knowledge.types import ReadError

MAX_ENTRIES: Final = 5_000
MAX_UNPACKED: Final = 200_000_000
MAX_XML: Final = 60_000_000  # bytes of one XML part: it is parsed whole, into several times its size
_LOCKED: Final = b"\xd0\xcf\x11\xe0"  # an encrypted package lies inside a container of the older kind
_ENCRYPTED_ENTRY: Final = 0x1
_DEEPEST_HEADING: Final = 6
_HEADING: Final = re.compile(r"heading (?P<depth>[1-9])")


def docx_markdown(data: bytes) -> tuple[str, str]:
    """The title of the properties (or nothing) and the text as Markdown."""
    if data.startswith(_LOCKED):
        raise ReadError(reason="is locked with a password, or of the form before 2007 (.doc)")
    with damaged("Word document", OpcError):
        _bearable(data)
        document = Document(io.BytesIO(data))
        return (document.core_properties.title or "").strip(), "\n\n".join(_blocks(document)) + "\n"


def _bearable(data: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as package:  # no entry yields more bytes than it is said to have
        entries = package.infolist()
    if any(entry.flag_bits & _ENCRYPTED_ENTRY for entry in entries):
        raise ReadError(reason="is locked with a password")
    largest = max((entry.file_size for entry in entries if entry.filename.endswith((".xml", ".rels"))), default=0)
    unpacked = sum(entry.file_size for entry in entries)
    if len(entries) > MAX_ENTRIES or unpacked > MAX_UNPACKED or largest > MAX_XML:
        msg = f"would unpack to {unpacked // 1_000_000} MB in {len(entries)} files, which is more than is read"
        raise ReadError(msg)


def _blocks(document: Opened) -> Iterator[str]:
    """Paragraphs and tables; the items of a list that stand together are one."""
    for is_list, together in groupby(document.iter_inner_content(), key=lambda block: bool(_marker(block))):
        texts = [_table(block) if isinstance(block, Table) else _paragraph(block) for block in together]
        yield from filter(None, ["\n".join(texts)] if is_list else texts)


def _paragraph(paragraph: Paragraph) -> str:
    text, style = paragraph.text.strip(), _style(paragraph)
    if marker := _marker(paragraph):
        return marker + _line(text)
    heading = _HEADING.fullmatch(style)
    depth = min(int(heading["depth"]), _DEEPEST_HEADING) if heading else int(style == "title")
    return f"{'#' * depth} {_line(text)}" if depth and text else text


def _marker(block: Paragraph | Table) -> str:
    """What a list item begins with; nothing for anything else."""
    if isinstance(block, Table) or not block.text.strip() or not _style(block).startswith("list"):
        return ""
    return "1. " if "number" in _style(block) else "- "


def _style(paragraph: Paragraph) -> str:
    return (paragraph.style.name or "").lower() if paragraph.style else ""


def _table(table: Table) -> str:
    """Rows with bars between cells; a cell that spans several columns is there once."""
    rows = [[_line(cell.text).replace("|", "\\|") for cell in dict.fromkeys(row.cells)] for row in table.rows]
    rows = [row for row in rows if any(row)]
    width = max(map(len, rows), default=0)
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
    return "\n".join([*lines[:1], f"|{' --- |' * width}", *lines[1:]]) if rows else ""


def _line(text: str) -> str:
    return " ".join(text.split())
