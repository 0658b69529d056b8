"""Reader of PDF: the text layer of each page. Only this module imports pypdfium2."""

import re
from collections.abc import Iterator
from typing import Final

import pypdfium2
from pypdfium2 import raw

from agent.knowledge.readers.document import (
    MAX_PAGES,
    Content,
    ReadLimits,
    clean,
    join_parts,
    one_line,
    refusing_damage,
)
from agent.knowledge.types import ReadError
from verification.text.language import detect_language

# PDFium's marks of a hyphen at a line's end.
_BROKEN_WORD: Final = re.compile(r"[\x02\ufffe]\r?\n?|(?<=[^\W\d_])\u00ad\r?\n?")
_SPACED: Final = re.compile(r"(?:[\u3040-\u30ff\u3400-\u9fff] ){3,}[\u3040-\u30ff\u3400-\u9fff]")  # 九 三 七 年
_UNMAPPED: Final = re.compile("[\ufffd\ue000-\uf8ff]")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_PLAIN: Final = re.compile(  # a word, a number, or signs
    r"[^\w\x00-\x1f]*(?:(?:[A-ZÀ-ÖØ-Þ]?[a-zß-öø-ſ]+|[A-ZÀ-ÖØ-ÞĀ-ſ]+)(?:['’./@-][A-Za-zÀ-ſ]+)*|\d[\d.,:/-]*)?[^\w\x00-\x1f]*"
)
_ODD_SHARE: Final = 0.2
_MIN_LINES: Final = 20
_LETTERS_A_LINE: Final = 4  # average letters per line: fewer means letters or figures of a drawing
_GAP: Final = 0.2  # gap between two words, as a share of a letter's height
_SAMPLE: Final = 300  # letters sampled per page
_NO_LETTERS: Final = "\ufffd"
_UNMAPPED_SHARE: Final = 0.3  # share of sampled letters that the page's font does not identify


def read_pdf(data: bytes, limits: ReadLimits) -> Content:
    """Read the pages up to ``MAX_PAGES``. A page of unmapped glyphs is skipped and reported."""
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
            if len(document) > MAX_PAGES:
                limits.cut = limits.cut or f"is read up to page {MAX_PAGES} only: it is too long"
        finally:
            document.close()
    reason = "the fonts do not say which letters their signs are"
    if unmapped and not parts:
        raise ReadError(reason=f"has no readable text: {reason} (save it again, or use text recognition)")
    if unmapped:
        named = ", ".join(map(str, unmapped[:5])) + (" …" if unmapped[5:] else "")
        limits.cut = limits.cut or f"is read without page {named}: {reason}"
    if not parts:
        raise ReadError(limits.cut or "has no text (scanned pages need text recognition first)")
    return Content(title=title, parts=parts)


def _texts(document: pypdfium2.PdfDocument) -> Iterator[str]:
    document.init_forms()
    for number in range(min(len(document), MAX_PAGES)):
        page = document[number]
        text, is_unmapped = _page_text(page)
        if _has_fields(page):  # they become part of the page, which may break its fonts
            raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY)
            page.close()
            page = document[number]
            filled, is_garbled = _page_text(page)
            if len(set(text.split()) - set(filled.split())) <= _ODD_SHARE * len(text.split()):
                text, is_unmapped = filled, is_garbled
        page.close()
        text = _SPACED.sub(lambda line: line[0].replace(" ", ""), _BROKEN_WORD.sub("", text))
        yield _NO_LETTERS if is_unmapped else clean(text)


def _page_text(page: pypdfium2.PdfPage) -> tuple[str, bool]:
    """Return the text of a page, and whether it is unreadable because its fonts have no map to letters."""
    text_page = page.get_textpage()
    text = text_page.get_text_range()
    lines = text.split("\r\n")
    if len(lines) > _MIN_LINES and sum(map(len, lines)) < _LETTERS_A_LINE * len(lines):
        text = _join_letters(text_page)
    count = int(text_page.count_chars())
    sample = range(0, count, max(1, count // _SAMPLE))
    errors = sum(raw.FPDFText_HasUnicodeMapError(text_page, at) == 1 for at in sample)  # they may still be right
    share = max(len(_UNMAPPED.findall(text)) / max(1, count), errors / max(1, len(sample)))
    text_page.close()
    return text, share > _UNMAPPED_SHARE and not _reads_well(text)


def _has_fields(page: pypdfium2.PdfPage) -> bool:
    kinds = []
    for number in range(raw.FPDFPage_GetAnnotCount(page)):
        annotation = raw.FPDFPage_GetAnnot(page, number)
        kinds.append(raw.FPDFAnnot_GetSubtype(annotation))
        raw.FPDFPage_CloseAnnot(annotation)
    return not {raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_FREETEXT}.isdisjoint(kinds)


def _join_letters(text_page: pypdfium2.PdfTextPage) -> str:
    """Return the words of a page that PDFium breaks after each letter, joined by the gaps between its glyphs."""
    pieces: list[str] = []
    right = bottom = 0.0
    for at in range(text_page.count_chars()):
        letter = chr(raw.FPDFText_GetUnicode(text_page, at))
        if raw.FPDFText_IsGenerated(text_page, at) or letter.isspace():
            continue
        box = text_page.get_charbox(at, loose=True)
        size = box[3] - box[1]
        if abs(box[1] - bottom) > size / 2 or box[0] < right - size:
            pieces.append("\n")
        elif box[0] - right > _GAP * size:
            pieces.append(" ")
        pieces.append(letter)
        right, bottom = box[2], box[1]
    return "".join(pieces).strip()


def _reads_well(text: str) -> bool:
    """Return whether this is readable text: a known language, or Latin words in usual case and numbers."""
    tokens = text.split()
    odd = sum(not _PLAIN.fullmatch(token) for token in tokens)
    if odd > _ODD_SHARE * len(tokens) and detect_language(text) not in {"ja", "zh"}:
        return False
    is_clean = len(_UNMAPPED.findall(text)) + len(_CONTROL.findall(text)) <= _ODD_SHARE * len(text) / 10
    return is_clean and (detect_language(text) is not None or not text.isupper())
