"""Word documents: their form is kept, and packages made to harm are named, not unpacked."""

import io
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from docx import Document
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.knowledge.readers.document import ReadLimits, join_header_rows
from agent.knowledge.readers.docx import read_docx
from agent.knowledge.types import ReadError
from tests.support.documents import bytes_of, read_document


def travel_rules() -> bytes:
    document = Document()
    document.core_properties.title = "Travel rules"
    document.add_heading("Travel", 0)
    document.add_heading("Hotels", 1)
    document.add_paragraph("A hotel may cost 140 euros a night.")
    document.add_paragraph("Book early", style="List Bullet")
    document.add_paragraph("Ask twice", style="List Bullet")
    document.add_paragraph("First", style="List Number")
    table = document.add_table(rows=3, cols=2)
    for row, (city, price) in zip(table.rows, (("City", "Euros"), ("Bern", "190"), ("", "")), strict=True):
        row.cells[0].text, row.cells[1].text = city, price
    document.add_paragraph("")
    return bytes_of(document.save)


def text_of(data: bytes) -> str:
    parts = read_docx(data, ReadLimits()).parts
    return parts[0].text if parts else ""


def package_of(entries: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in entries.items():
            package.writestr(name, content)
    return stream.getvalue()


def changed_package(replaced: dict[str, bytes]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(travel_rules())) as package:
        return package_of({name: package.read(name) for name in package.namelist()} | replaced)


def test_the_formatting_of_a_word_document_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "travel.docx"
    file.write_bytes(travel_rules())
    document = read_document(file)
    assert (document.title, document.form) == ("Travel", "markdown")
    assert document.text == (
        "# Travel\n\n# Hotels\n\nA hotel may cost 140 euros a night.\n\n- Book early\n- Ask twice\n1. First\n\n"
        "| City | Euros |\n| --- | --- |\n| Bern | 190 |\n"
    )


def test_a_numbered_list_is_counted_as_word_shows_it() -> None:
    document = Document()
    for text, style in (("Open", "List Number"), ("Close", "List Number"), ("Then:", None), ("Leave", "List Number")):
        document.add_paragraph(text, style=style)
    lists = document.part.numbering_part.element
    of_style = document.styles["List Number"].element.xpath("./w:pPr/w:numPr/w:numId/@w:val")[0]
    again = lists.add_num(lists.num_having_numId(int(of_style)).abstractNumId.val)
    again.add_lvlOverride(0).add_startOverride(1)
    for text, level in (("Ring", 0), ("twice", 1), ("Wait", 0)):
        listed = document.add_paragraph(text, style="List Paragraph")._p.get_or_add_pPr().get_or_add_numPr()
        listed.get_or_add_numId().val, listed.get_or_add_ilvl().val = again.numId, level
    assert text_of(bytes_of(document.save)) == "1. Open\n2. Close\n\nThen:\n\n3. Leave\n1. Ring\n    - twice\n2. Wait\n"


def test_a_list_has_the_letters_and_numbers_that_word_prints() -> None:
    document = Document()
    levels = zip(range(3), ("lowerLetter", "upperRoman", "decimal"), ("%1)", "%2.", "%1.%3"), strict=True)
    made = "".join(
        f"<w:lvl w:ilvl='{n}'><w:numFmt w:val='{form}'/><w:lvlText w:val='{text}'/></w:lvl>" for n, form, text in levels
    )
    lists = document.part.numbering_part.element
    lists.insert(0, parse_xml(f"<w:abstractNum {nsdecls('w')} w:abstractNumId='99'>{made}</w:abstractNum>"))
    number = lists.add_num(99).numId
    for text, level in (("Open", 0), ("Close", 0), ("Ring", 1), ("twice", 2)):
        listed = document.add_paragraph(text)._p.get_or_add_pPr().get_or_add_numPr()
        listed.get_or_add_numId().val, listed.get_or_add_ilvl().val = number, level
    assert text_of(bytes_of(document.save)) == "- a) Open\n- b) Close\n    - I. Ring\n        - b.1 twice\n"


def test_a_package_that_unpacks_to_too_much_is_refused() -> None:
    bomb = changed_package({"word/media/1.bin": bytes(201_000_000)})
    assert len(bomb) < 2_000_000
    with pytest.raises(ReadError, match="would unpack to 201 MB"):
        text_of(bomb)
    with pytest.raises(ReadError, match="would unpack to"):
        text_of(changed_package({"word/document.xml": b"<a>" + bytes(61_000_000)}))


def test_entities_do_not_expand_without_limit() -> None:
    lines = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    document = f'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY e0 "x">{lines}]><d>&e11;</d>'.encode()
    with pytest.raises(ReadError):
        text_of(changed_package({"word/document.xml": document}))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xd0\xcf\x11\xe0 and so on", "locked with a password"),
        (b"PK\x03\x04 broken", "damaged"),
        (package_of({"other.txt": b"x"}), "damaged"),
        (changed_package({"word/document.xml": b"<broken"}), "damaged"),
        (travel_rules()[:-200], "damaged"),
    ],
)
def test_an_unreadable_document_is_named(data: bytes, reason: str) -> None:
    with pytest.raises(ReadError, match=reason):
        text_of(data)


def test_a_locked_entry_is_named() -> None:
    data = bytearray(travel_rules())
    at = data.rindex(b"PK\x01\x02")
    data[at + 8] |= 1
    with pytest.raises(ReadError, match="locked with a password"):
        text_of(bytes(data))


NOTE = "<w:p><w:r><w:t>Costs 5</w:t></w:r><w:r><w:footnoteReference w:id='2'/></w:r></w:p>"
PARTS = (
    "<m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>x</m:t></m:r><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:den>"
)
EQUATION = f"<m:oMathPara><m:oMath><m:r><m:t>3</m:t></m:r><m:f>{PARTS}</m:f></m:oMath></m:oMathPara>"


def equation(parts: str) -> str:
    return f"<w:p><m:oMath>{parts}</m:oMath></w:p>"


N, K = (f"<m:r><m:t>{letter}</m:t></m:r>" for letter in "nk")
OVER = f"<m:f><m:fPr><m:type m:val='noBar'/></m:fPr><m:num>{N}</m:num><m:den>{K}</m:den></m:f>"
ROW = f"<m:mr><m:e>{N}</m:e><m:e>{K}</m:e></m:mr>"
BOX = "<w:pict><w:txbxContent><w:p><w:r><w:t>In a box</w:t></w:r></w:p></w:txbxContent></w:pict>"


BEGIN = "<w:r><w:fldChar w:fldCharType='begin'/><w:instrText>"
RESULT = "</w:instrText></w:r><w:r><w:fldChar w:fldCharType='separate'/></w:r><w:r>{run}</w:r><w:r><w:instrText>"
END = "</w:instrText><w:fldChar w:fldCharType='end'/></w:r>"


@pytest.mark.parametrize(
    ("xml", "text"),
    [
        (
            "<w:p><w:r><w:t>A&#160;</w:t></w:r><w:del><w:r><w:delText>B</w:delText></w:r></w:del><w:ins><w:r>{run}</w:r></w:ins></w:p>",
            "A C",
        ),
        ("<w:p><w:sdt><w:sdtPr/><w:sdtContent><w:r>{run}</w:r></w:sdtContent></w:sdt></w:p>", "C"),
        ("<w:sdt><w:sdtContent><w:p><w:smartTag><w:r>{run}</w:r></w:smartTag></w:p></w:sdtContent></w:sdt>", "C"),
        ("<w:p><w:r><!-- x -->{run}</w:r></w:p>", "C"),
        ("<w:p><w:fldSimple><w:r>{run}</w:r></w:fldSimple></w:p>", "C"),
        (
            "<w:p><w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent><w:r>{run}</w:r></w:sdtContent></w:sdt></w:p>",
            "",
        ),
        (
            "<w:p><w:r><w:t>10</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr>{run}</w:r></w:p>",
            "10^(C)",
        ),
        ("<w:p><w:r><w:rPr><w:strike/></w:rPr>{run}</w:r><w:r><w:t>new</w:t></w:r></w:p>", "new"),
        ("<w:p><w:r><w:rPr><w:strike w:val='0'/></w:rPr>{run}</w:r></w:p>", "C"),
        ("<w:p><w:r><w:rPr><w:vanish/></w:rPr>{run}</w:r></w:p>", ""),
        ("<w:p><w:r><w:rPr><w:rStyle w:val='Gone'/></w:rPr>{run}</w:r><w:r><w:t>new</w:t></w:r></w:p>", "new"),
        ("<w:p><w:pPr><w:pStyle w:val='Own'/></w:pPr><w:r>{run}</w:r></w:p>", "## C"),
        ("<w:p><w:r><w:t>10</w:t></w:r><w:r><w:rPr><w:position w:val='6'/></w:rPr><w:t>6</w:t></w:r></w:p>", "10⁶"),
        ("<w:p><w:r>{run}</w:r><w:r><w:ptab/><w:sym w:font='Wingdings' w:char='F0FC'/></w:r></w:p>", "C\t✓"),
        (EQUATION, "3 1/x²"),
        (equation(f"<m:d><m:e>{N}</m:e></m:d><m:sup>{K}</m:sup><m:d><m:e>{OVER}</m:e></m:d>"), "(n)^(k)(n over k)"),
        (
            equation(f"<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:sub>{N}</m:sub><m:e>{K}</m:e></m:nary>"),
            "∑_(n)k",
        ),
        (
            equation(f"<m:d><m:dPr><m:begChr m:val='['/><m:endChr m:val=''/></m:dPr><m:m>{ROW}{ROW}</m:m></m:d>"),
            "[n k ; n k ;",
        ),
        (equation(f"<m:rad><m:deg>{K}</m:deg><m:e>{N}</m:e></m:rad><m:bar><m:e>{N}</m:e></m:bar>"), "^(k)√(n)n\u0304"),
        ("<w:p><w:r><w:t># of seats</w:t><w:br/><w:t># x</w:t></w:r></w:p>", "\\# of seats\n\\# x"),
        ("<w:p><w:r><w:t>con\u00adtract</w:t></w:r></w:p>", "contract"),
        ("<w:p><w:hyperlink r:id='link'><w:r>{run}</w:r></w:hyperlink></w:p>", "[C](https://a.example/)"),
        (f'<w:p>{BEGIN} HYPERLINK "https://a.example/" \\o "x" {RESULT}{END}</w:p>', "[C](https://a.example/)"),
        (f'<w:p>{BEGIN} HYPERLINK "https://a.example/" \\l "b" {RESULT}{END}</w:p>', "[C](https://a.example/#b)"),
        (f'<w:p>{BEGIN} HYPERLINK \\l "b" {RESULT}{END} {BEGIN} PAGE {END}</w:p>', "C"),
        (f"<w:p>{BEGIN} IF {BEGIN} PAGE {RESULT}{END} {RESULT}{END}</w:p>", "C"),
        (f"<w:p>{BEGIN} TOC \\o {RESULT}</w:instrText></w:r></w:p>", "C"),
        (
            "<w:p><w:fldSimple w:instr='HYPERLINK \"https://a.example/\"'><w:r>{run}</w:r></w:fldSimple></w:p>",
            "[C](https://a.example/)",
        ),
        (f"<w:p><w:r><w:t>A</w:t></w:r><w:r>{BOX}</w:r></w:p>", "A\n\nIn a box"),
        (NOTE, "Costs 5 ¹\n\n¹ For a year."),
    ],
)
def test_a_word_document_is_read_as_it_prints(xml: str, text: str) -> None:
    document = Document()
    rels = document.part.rels
    rels.add_relationship(
        "http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink",
        "https://a.example/",
        "link",
        is_external=True,
    )
    document.styles.add_style("Gone", WD_STYLE_TYPE.CHARACTER).font.strike = True
    document.styles.add_style("Own", WD_STYLE_TYPE.PARAGRAPH).base_style = document.styles["Heading 2"]
    body = xml.format(run="<w:t>C</w:t>")
    document.element.body.insert(0, parse_xml(f"<w:body {nsdecls('w', 'r', 'm')}>{body}</w:body>")[0])
    note = "<w:footnote w:id='2'><w:p><w:r><w:t>For a year.</w:t></w:r></w:p></w:footnote>"
    notes = f"<w:footnotes {nsdecls('w')}>{note}</w:footnotes>"
    assert text_of(with_footnotes(bytes_of(document.save), notes)).replace("\xa0", " ").strip() == text


def with_footnotes(data: bytes, notes: str) -> bytes:
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        entries = {name: package.read(name) for name in package.namelist()}
    rels, types = "word/_rels/document.xml.rels", "[Content_Types].xml"
    link = f'<Relationship Id="notes" Type="{kind}" Target="footnotes.xml"/></Relationships>'
    kind_of_part = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
    part = f'<Override PartName="/word/footnotes.xml" ContentType="{kind_of_part}"/></Types>'
    entries[rels] = entries[rels].replace(b"</Relationships>", link.encode())
    entries[types] = entries[types].replace(b"</Types>", part.encode())
    return package_of(entries | {"word/footnotes.xml": notes.encode()})


def test_merged_cells_keep_their_columns() -> None:
    document = Document()
    table = document.add_table(rows=3, cols=3)
    for cell, text in zip(table.rows[0].cells, ("Plan", "Seats", "Price"), strict=True):
        cell.text = text
    table.cell(1, 0).merge(table.cell(2, 0)).text = "Team"
    table.cell(1, 1).merge(table.cell(1, 2)).text = "3"
    table.cell(2, 2).text = "9"
    rows = "| Plan | Seats | Price |\n| --- | --- | --- |\n| Team | 3 |  |\n| Team |  | 9 |\n"
    assert text_of(bytes_of(document.save)) == rows


def test_a_header_of_two_rows_names_each_column() -> None:
    document = Document()
    table = document.add_table(rows=3, cols=5)
    for row, texts in zip(table.rows, ("Plan|2025||2026|", "|Q1|Q2|Q1|Q2", "Team|1|2|3|4"), strict=True):
        for cell, text in zip(row.cells, texts.split("|"), strict=True):
            cell.text = text
    for left, right in ((1, 2), (3, 4)):
        table.cell(0, left).merge(table.cell(0, right))
    table.cell(0, 0).merge(table.cell(1, 0))
    header = "| Plan | 2025 Q1 | 2025 Q2 | 2026 Q1 | 2026 Q2 |\n| --- | --- | --- | --- | --- |\n"
    assert text_of(bytes_of(document.save)) == f"{header}| Team | 1 | 2 | 3 | 4 |\n"


@pytest.mark.parametrize(
    ("first", "second", "header"),
    [
        ("2025||2026", "Q1|Q2|Q1|Q2", "2025 Q1|2025 Q2|2026 Q1|2026 Q2"),
        ("|2025|", "Plan|Q1|Q2", "Plan|2025 Q1|2025 Q2"),
        ("Plan|Price||Note", "|Monthly|Yearly|", "Plan|Price Monthly|Price Yearly|Note"),
        ("Revenue||Cost|", "2025|2026|2025|2026", "Revenue 2025|Revenue 2026|Cost 2025|Cost 2026"),
        ("Plan|Price|", "Pro|5|50", ""),
        ("Name||City", "Ann|Lee|Berlin", ""),
        ("Name||Address|", "Ann|Lee|Main|Berlin", ""),
        ("Prices||", "Plan|Monthly|Yearly", ""),
        ("|Name|", "1|Ann|Lee", ""),
        ("a|b", "c|d", ""),
        ("Plan||Price", "Pro||5", ""),
        ("", "a", ""),
    ],
)
def test_a_row_of_data_is_no_header(first: str, second: str, header: str) -> None:
    assert "|".join(join_header_rows(first.split("|"), second.split("|"))) == header


def test_strict_open_xml_and_a_missing_picture_are_not_damage() -> None:
    strict = b"http://purl.oclc.org/ooxml/wordprocessingml/main"
    loose = b"http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    with zipfile.ZipFile(io.BytesIO(travel_rules())) as package:
        entries = {name: package.read(name).replace(loose, strict) for name in package.namelist()}
    rels = "word/_rels/document.xml.rels"
    gone = b'<Relationship Id="rIdX" Type="http://x/image" Target="media/gone.png"/></Relationships>'
    entries[rels] = entries[rels].replace(b"</Relationships>", gone)
    assert "A hotel may cost 140 euros a night." in text_of(package_of(entries))


def test_a_table_inside_a_cell_is_read_with_it() -> None:
    document = Document()
    cell = document.add_table(rows=1, cols=1).cell(0, 0)
    cell.text = "Bern"
    cell.add_table(rows=1, cols=1).cell(0, 0).text = "190"
    assert text_of(bytes_of(document.save)) == "| Bern 190 |\n| --- |\n"


@settings(max_examples=30)
@given(st.integers(0, 30_000), st.binary(min_size=1, max_size=8))
def test_damage_anywhere_raises_our_own_error_or_none(at: int, damage: bytes) -> None:
    data = travel_rules()
    at %= len(data)
    broken = data[:at] + damage + data[at + len(damage) :]
    with suppress(ReadError):
        text_of(broken)
