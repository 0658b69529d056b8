"""The text layer of a PDF, one string a page.

The only importer of pypdf, loaded for the first PDF; it raises nearly anything on damaged files.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import Final

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from agent.knowledge.types import ReadError

MAX_PAGES: Final = 2_000

_PARSER_ERRORS: Final = (
    PyPdfError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)
"""What the parser was seen to raise, or plainly can, on damaged input."""


def pdf_pages(data: bytes) -> tuple[str, list[str]]:
    """The title of the metadata (or nothing) and the text of each page."""
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            msg = "is locked with a password"
            raise ReadError(msg)
        if len(reader.pages) > MAX_PAGES:
            msg = f"has more than {MAX_PAGES} pages"
            raise ReadError(msg)
        title = reader.metadata.title if reader.metadata else None
        return title or "", [page.extract_text() for page in reader.pages]
    except _PARSER_ERRORS as error:
        msg = "is a damaged PDF"
        raise ReadError(msg) from error
