"""PDF files: pages, forms, fonts without a map, and what is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fpdf import FPDF

from agent.knowledge.readers.reading import parse_document
from agent.knowledge.types import ReadError
from tests.support.documents import read_document

FORM = """
5 0 obj <</Type/Annot/Subtype/Widget/FT/Tx/T(seats)/V(Forty seats)/Rect[10 10 200 40]/AP<</N 6 0 R>>>> endobj
6 0 obj <</Type/XObject/Subtype/Form/BBox[0 0 190 30]/Resources<</Font<</F 4 0 R>>>>/Length 39>> stream
BT /F 12 Tf 5 10 Td (Forty seats) Tj ET
endstream endobj
"""


def pdf(path: Path, *pages: str, title: str = "") -> Path:
    made = FPDF()
    made.set_title(title)
    made.set_font("Helvetica", size=12)
    for text in pages:
        made.add_page()
        if text:
            made.multi_cell(0, 8, text)
    made.output(str(path))
    return path


def by_hand(text: str, font: str = "/Subtype/Type1/BaseFont/Helvetica", more: str = "") -> bytes:
    """Return a PDF of one page."""
    content = f"BT /F 12 Tf 20 100 Td {text if text.endswith('Tj') else f'({text}) Tj'} ET"
    return f"""%PDF-1.7
1 0 obj <</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[5 0 R]>>>> endobj
2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj
3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 900 300]/Annots[5 0 R]/Contents 7 0 R/Resources<</Font<</F 4 0 R>>>>>>
endobj
4 0 obj <</Type/Font{font}>> endobj{more}
7 0 obj <</Length {len(content)}>> stream
{content}
endstream endobj
trailer <</Root 1 0 R>>
%%EOF""".encode()


def drawn_font(name: Callable[[int], str]) -> str:
    """Return a font of drawn glyphs without a map to letters, only with these names of the glyphs."""
    codes = range(32, 127)
    names = " ".join(f"/{name(code)}" for code in codes)
    glyphs = "".join(f"/{name(code)} 8 0 R" for code in codes)
    return (
        "/Subtype/Type3/FontBBox[0 0 9 9]/FontMatrix[.1 0 0 .1 0 0]/FirstChar 32/LastChar 126"
        f"/Widths[{'9 ' * len(codes)}]/Encoding<</Differences[32 {names}]>>/CharProcs<<{glyphs}>>"
    )


SQUARE = "\n8 0 obj <</Length 24>> stream\n9 0 d0 0 0 8 8 re f      \nendstream endobj"


def test_a_pdf_has_pages_and_title(tmp_path: Path) -> None:
    document = read_document(pdf(tmp_path / "g.pdf", "First\nLast updated: 2026-05-04", "", "Third", title="Guide"))
    assert (document.title, document.updated_at) == ("Guide", "2026-05-04")
    assert [(part.page, part.line) for part in document.parts] == [(1, 1), (3, 4)]
    assert document.text.split("\n")[3] == "Third"


def test_a_filled_in_form_is_read() -> None:
    document = parse_document("form.pdf", by_hand("How many?", more=FORM))
    assert document.text.split() == ["How", "many?", "Forty", "seats"]


def test_letters_of_a_font_without_a_map_are_read_if_they_are_writing() -> None:
    letters = {32: "space", 46: "period"}
    font = drawn_font(lambda code: letters.get(code) or (chr(code) if chr(code).isalpha() else f"x{code}"))
    document = parse_document("a.pdf", by_hand("The badge opens the door.", font, SQUARE))
    assert document.text == "The badge opens the door."
    with pytest.raises(ReadError, match="do not say which letters"):
        parse_document("a.pdf", by_hand("7KH EDGJH RSHQV 9ROXPHV 5&20$1", font, SQUARE))


def test_unevenly_placed_letters_are_joined_into_words() -> None:
    words = "The badge opens the door of the lab"
    letters = [f"1 0 0 1 {20 + 7.2 * at} {100 + at % 2 * 5} Tm ({letter}) Tj" for at, letter in enumerate(words)]
    dancing = " ".join(letter for letter in letters if "( )" not in letter)
    courier = "/Subtype/Type1/BaseFont/Courier"
    assert parse_document("a.pdf", by_hand(dancing, courier)).text == words


def test_a_scanned_or_locked_pdf_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="has no text"):
        read_document(pdf(tmp_path / "s.pdf", "", ""))
    made = FPDF()
    made.set_encryption(owner_password="owner", user_password="word")
    made.add_page()
    made.output(str(tmp_path / "locked.pdf"))
    with pytest.raises(ReadError, match="password"):
        read_document(tmp_path / "locked.pdf")


def test_a_pdf_with_too_many_pages_is_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.knowledge.readers.pdf.MAX_PAGES", 1)  # a limit, not behaviour: 2,000 pages take long
    document = read_document(pdf(tmp_path / "p.pdf", "a", "b"))
    assert (document.text, document.cut) == ("a", "is read up to page 1 only: it is too long")
