"""Reader of PDF: the text layer of each page. The only importer of pypdfium2."""

import re
from collections.abc import Iterator
from typing import Final

import pypdfium2
from pypdfium2 import raw

from agent.knowledge.readers.document import MAX_PAGES, Content, Limits, clean, join_parts, one_line, refusing_damage
from agent.knowledge.types import ReadError

# PDFium's marks of a hyphen at a line's end.
_BROKEN_WORD: Final = re.compile(r"[\x02\ufffe]\r?\n?|(?<=[^\W\d_])\u00ad\r?\n?")
_UNMAPPED: Final = re.compile("[\ufffd\ue000-\uf8ff]")
_SAMPLE: Final = 300  # letters of a page
_UNMAPPED_SHARE: Final = 0.3  # of the sampled letters: the page's font does not say which letters they are


def read_pdf(data: bytes, limits: Limits) -> Content:
    """Read the pages up to ``MAX_PAGES``. A page of unmapped glyphs is left out and noted."""
    with refusing_damage("PDF", pypdfium2.PdfiumError):
        try:
            document = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError as error:
            if error.err_code in {raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY}:
                raise ReadError(reason="is locked with a password") from error
            raise
        try:
            title = one_line(clean(document.get_metadata_value("Title") or ""))
            pages = list(limits.take(_texts(document), "page", len))
            unmapped = [number for number, text in enumerate(pages, 1) if text == _NO_LETTERS]
            parts = join_parts("" if text == _NO_LETTERS else text for text in pages)
            if len(document) > MAX_PAGES and not limits.cut:
                limits.cut = f"is read up to page {MAX_PAGES} only: it is too long"
        finally:
            document.close()
    _note_unmapped(unmapped, limits, is_all=not parts)
    if not parts:
        raise ReadError(limits.cut or "has no text (scanned pages need text recognition first)")
    return Content(title=title, parts=parts)


_NO_LETTERS: Final = "\ufffd"


def _texts(document: pypdfium2.PdfDocument) -> Iterator[str]:
    for number in range(min(len(document), MAX_PAGES)):
        page = document[number]
        text_page = page.get_textpage()
        text = text_page.get_text_range()
        count = text_page.count_chars()
        letters = range(0, count, max(1, count // _SAMPLE))
        errors = sum(raw.FPDFText_HasUnicodeMapError(text_page, at) == 1 for at in letters)
        text_page.close()
        page.close()
        shares = errors / max(1, len(letters)), len(_UNMAPPED.findall(text)) / max(1, count)
        is_unmapped = max(shares) > _UNMAPPED_SHARE
        yield _NO_LETTERS if is_unmapped else clean(_BROKEN_WORD.sub("", text))


def _note_unmapped(unmapped: list[int], limits: Limits, *, is_all: bool) -> None:
    reason = "the fonts do not say which letters their signs are"
    if unmapped and is_all:
        msg = f"has no readable text: {reason} (save it again, or use text recognition)"
        raise ReadError(msg)
    if unmapped and not limits.cut:
        named = ", ".join(map(str, unmapped[:5])) + (" …" if unmapped[5:] else "")
        limits.cut = f"is read without page {named}: {reason}"
