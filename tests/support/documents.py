"""A file as a document, read as an index reads it."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from openpyxl import Workbook

from agent.knowledge.readers.chunking import chunk_document
from agent.knowledge.readers.document import DocumentPart, ReadDocument
from agent.knowledge.readers.reading import format_of, parse_document, read_bytes
from agent.thread.conversation import AttachedFile, FilePart


def read_document(path: Path) -> ReadDocument:
    data, changed = read_bytes(path)
    return parse_document(path.name, data, changed=changed)


SMALL: dict[str, Any] = {
    "docs": {
        "a/1": {"title": "Kiln", "text": "The kiln cools down slowly after firing."},
        "b": {"title": "Boats", "text": "Boats need a pilot in the harbour."},
        "c": {"title": "", "text": "Pears are picked in autumn."},
    },
    "queries": {"q1": "how does a kiln cool", "q2": "pilot for boats", "q3": "quarks", "q4": "pears"},
    "qrels": {"q1": {"a/1": 1}, "q2": {"b": 2, "c": 1}, "q3": {"a/1": 0}},
}


def attached_file(name: str, text: str) -> AttachedFile:
    """A file as it comes with a question, cut into parts."""
    known = format_of(name)
    parts = (DocumentPart(text=text),)
    document = ReadDocument(title=name, form=known.form if known else "text", parts=parts, updated_at="")
    cut = tuple(FilePart(chunk.path, chunk.line, chunk.text) for chunk in chunk_document(document))
    return AttachedFile(name=name, text=text, parts=cut)


def bytes_of(save: Callable[[io.BytesIO], object]) -> bytes:
    """The bytes of a saved Office document, workbook or presentation."""
    stream = io.BytesIO()
    save(stream)
    return stream.getvalue()


def replace_in_package(package: bytes, name: str, old: bytes, new: bytes) -> bytes:
    """An Office file with one of its members changed."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(package)) as source, zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as target:
        for member in source.namelist():
            content = source.read(member)
            assert member != name or old in content
            target.writestr(member, content.replace(old, new) if member == name else content)
    return result.getvalue()


def workbook(*changes: bytes) -> bytes:
    """Return a workbook with XML in place of the end of its sheet's data."""
    return replace_in_package(bytes_of(Workbook().save), "xl/worksheets/sheet1.xml", b"</sheetData>", b"".join(changes))


def slow_workbook() -> bytes:
    """Return a workbook that takes half a minute to read."""
    return workbook(b"</sheetData>", b'<mergeCell ref="A1:A1"/>' * 4_000_000)
