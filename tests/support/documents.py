"""A file as a document, read as an index reads it."""

from __future__ import annotations

from pathlib import Path

from agent.knowledge.readers.document import ReadDocument
from agent.knowledge.readers.reading import parse_document, read_bytes


def read_document(path: Path) -> ReadDocument:
    data, changed = read_bytes(path)
    return parse_document(path.name, data, changed=changed)
