"""Every format of the table in docs/knowledge.md is read, and the table is that of the code."""

import io
import json
import re
import zipfile
from copy import deepcopy
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from docx import Document
from docx.opc.packuri import PackURI as WordURI
from docx.opc.part import Part as WordPart
from fpdf import FPDF
from openpyxl import Workbook
from openpyxl.styles import Font
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.opc.package import Part as PptxPart
from pptx.opc.packuri import PackURI
from pptx.oxml import parse_xml
from pptx.oxml.ns import nsdecls

from agent.knowledge.readers.reading import FORMATS, Format, format_of, parse_document, suffix_of
from tests.support.documents import bytes_of

PAGE = Path(__file__).parents[5] / "docs" / "knowledge.md"
SAYS = "Forty seats"
READ = [known for known in FORMATS if not known.advice]


def word() -> bytes:
    document = Document()
    document.add_paragraph(SAYS)
    return bytes_of(document.save)


def slides() -> bytes:
    presentation = Presentation()
    for title, text in (("Plans", f"{SAYS}\nand more"), ("Prices", "Nine euros")):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, text
    shape = slide.shapes.add_table(1, 2, 0, 0, 9, 9)
    shape.table.cell(0, 0).text, shape.table.cell(0, 1).text = "a", "b"
    slide.notes_slide.notes_text_frame.text = "Say it twice."
    hidden = presentation.slides.add_slide(presentation.slide_layouts[1])
    hidden.shapes.title.text = "Hidden"
    hidden.element.set("show", "0")
    return bytes_of(presentation.save)


def sheet_of(*rows: list[Any]) -> Any:
    """Return the sheet of a new workbook with these rows."""
    sheet = Workbook().worksheets[0]
    for row in rows:
        sheet.append(row)
    return sheet


def sheets() -> bytes:
    sheet = sheet_of(["Price list"], [], ["Plan", "Price", "Share"], ["Team", 3.0, 0.15], [SAYS])
    sheet.title, sheet["C4"].number_format = "Plans", "0%"
    secret = sheet.parent.create_sheet("Secret")
    secret.append(["salary"])
    secret.sheet_state = "hidden"
    return bytes_of(sheet.parent.save)


def pdf() -> bytes:
    document = FPDF()
    document.add_page()
    document.set_font("helvetica")
    document.cell(text=SAYS)
    return bytes(document.output())


CELL = {"cell_type": "code", "source": ["seats()"], "outputs": [{"text": [SAYS]}]}
SAMPLES = {
    "Word": word(),
    "PowerPoint": slides(),
    "Excel": sheets(),
    "PDF": pdf(),
    "CSV": f"Plan;Size\nTeam;{SAYS}\n".encode(),
    "Jupyter notebook": json.dumps({"cells": [CELL], "metadata": {}}).encode(),
}


@pytest.mark.parametrize("known", READ, ids=lambda known: known.name)
def test_one_file_of_each_format_is_read(known: Format) -> None:
    for suffix in known.suffixes:
        name = f"file.tsv{suffix}" if suffix == ".none" else f"file{suffix.upper()}"
        document = parse_document(name, SAMPLES.get(known.name, SAYS.encode()))
        assert SAYS in document.text
        assert document.form == known.form


def test_the_page_lists_the_formats_of_the_code() -> None:
    rows = re.findall(
        r"^\| (?P<name>[^|]+?) \| (?P<suffixes>`[^|]+?`) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert rows == [(known.name, " ".join(f"`{suffix}`" for suffix in known.suffixes)) for known in READ]


def test_a_template_is_read_as_its_rendered_text() -> None:
    assert [suffix_of(name) for name in ("a.html.erb", "a.md.j2", "x.y.MD", "a.erb")] == [".html", ".md", ".md", ".erb"]
    assert format_of("page.erb") is None


def test_slides_have_titles_tables_and_notes() -> None:
    document = parse_document("deck.pptx", SAMPLES["PowerPoint"])
    assert document.title == "Plans"
    assert [part.page for part in document.parts] == [1, 2]
    assert document.parts[0].text == "# Plans\n\n- Forty seats\n- and more"
    assert document.parts[1].text == "## Prices\n\nNine euros\n\n| a | b |\n| --- | --- |\n\nNotes: Say it twice."


def test_sheets_have_their_names_and_displayed_values() -> None:
    table = "| Plan | Price | Share |\n| --- | --- | --- |\n| Team | 3 | 15% |\n| Forty seats |  |  |\n"
    assert parse_document("prices.xlsx", SAMPLES["Excel"]).text == f"## Plans\n\nPrice list\n\n{table}"


def test_each_part_of_a_long_table_has_its_header() -> None:
    rows = "".join(f"{n},plan {n}\n" for n in range(450))
    parts = parse_document("a.csv", f"id,name\n{rows}".encode()).parts
    assert [part.text.split("\n", 1)[0] for part in parts] == ["| id | name |"] * 3
    assert sum(part.text.count("| plan ") for part in parts) == 450


def test_slides_are_read_as_they_look() -> None:
    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    line = slide.shapes.add_textbox(0, 0, 9, 9).text_frame.paragraphs[0]
    for text, style in (("Old price 30", {"strike": "sngStrike"}), (" 40 for 10", {}), ("6", {"baseline": "30000"})):
        run = line.add_run()
        run.text = text
        for name, value in style.items():
            run.font._element.set(name, value)
    line.add_line_break()
    run = line.add_run()
    run.text, run.hyperlink.address = "our wiki", "https://wiki.example"
    table = slide.shapes.add_table(3, 2, 0, 0, 9, 9).table
    table.cell(1, 0).merge(table.cell(2, 0))
    for row, (first, second) in enumerate((("Region", "Plan"), ("North", "Team"), ("", "Solo"))):
        table.cell(row, 0).text, table.cell(row, 1).text = first, second
    text = parse_document("a.pptx", bytes_of(presentation.save)).text
    assert "40 for 10⁶ [our wiki](https://wiki.example)" in text
    assert "Old" not in text
    assert "| North | Solo |" in text


def chart_of(presentation: Any) -> Any:
    """Return a chart of two series on a new slide."""
    data: Any = CategoryChartData(number_format="0%")  # type: ignore[no-untyped-call]  # the library has no types
    data.categories = [date(2025, 1, 1), date(2026, 1, 1)]
    data.add_series("Seats", (0.25, None))
    data.add_series("Desks", (0.5, 1), '#,##0.0" t"')
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, 9, 9, data).chart
    chart.chart_title.text_frame.text = "Use by year"
    chart.element.xpath("//c:val//c:v")[-1].text = "#N/A"
    return chart


CHART = (
    "Use by year\n\n|  | Seats | Desks |\n| --- | --- | --- |\n| 2025-01-01 | 25% | 0.5 t |\n| 2026-01-01 |  | #N/A |"
)
DIAGRAM = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
SMART_ART = (
    f'<d:dataModel xmlns:d="{DIAGRAM}" xmlns:a="{DIAGRAM.replace("diagram", "main")}"><d:pt><a:p><a:r><a:t>Ask </a:t>'
    "</a:r><a:r><a:t>Ann</a:t></a:r></a:p></d:pt><d:pt><a:p/></d:pt><d:pt><a:p><a:r><a:t>Pay</a:t></a:r></a:p></d:pt>"
    "</d:dataModel>"
).encode()
GRAPHIC = f"""<a:graphic xmlns:a="{DIAGRAM.replace("diagram", "main")}" xmlns:d="{DIAGRAM}"
  xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"
  xmlns:c="{DIAGRAM.replace("diagram", "chart")}"><a:graphicData uri="{DIAGRAM}">%s</a:graphicData></a:graphic>"""


def test_charts_and_smart_art_of_slides_are_read() -> None:
    presentation = Presentation()
    part = chart_of(presentation).part
    frame = presentation.slides[0].shapes[0].element
    smart = deepcopy(frame)
    data = PptxPart(PackURI("/ppt/diagrams/data1.xml"), "application/xml", part.package, SMART_ART)
    key = presentation.slides[0].part.relate_to(data, f"{DIAGRAM}Data")
    smart.replace(smart[-1], parse_xml(GRAPHIC % f'<d:relIds r:dm="{key}"/><d:relIds r:dm="gone"/>'))
    frame.addnext(smart)
    text = parse_document("a.pptx", bytes_of(presentation.save)).text
    assert text == f"## Slide 1\n\n{CHART}\n\n- Ask Ann\n- Pay"


def test_charts_and_smart_art_of_a_word_document_are_read() -> None:
    document, drawn = Document(), []
    chart = chart_of(Presentation()).part.blob
    for number, (blob, mark) in enumerate(((chart, "c:chart r:id"), (SMART_ART, "d:relIds r:dm"))):
        part = WordPart(WordURI(f"/word/drawn{number}.xml"), "application/xml", blob, document.part.package)
        drawn.append(f'<{mark}="{document.part.relate_to(part, DIAGRAM)}"/>')
    for graphic in drawn:
        document.add_paragraph("Seen: ").runs[0]._element.append(parse_xml(GRAPHIC % graphic))
    text = parse_document("a.docx", bytes_of(document.save)).text
    assert text == f"Seen: \n\n{CHART}\n\nSeen: \n\n- Ask Ann\n- Pay\n"


def test_numbers_of_a_list_on_a_slide_are_those_that_people_see() -> None:
    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    frame = slide.shapes.add_textbox(0, 0, 9, 9).text_frame
    for level, kind, text in (
        *((0, "arabicPeriod", "One"), (1, "alphaLcParenR", "First"), (1, "alphaLcParenR", "Second"), (1, "", "Point")),
        *((0, "arabicPeriod", "Two"), (0, "", "Break"), (0, 'romanUcPeriod" startAt="4', "Four")),
    ):
        line = frame.add_paragraph()
        line.text, line.level = text, level
        if kind:
            line._p.get_or_add_pPr().append(parse_xml(f'<a:buAutoNum {nsdecls("a")} type="{kind}"/>'))
    shown = "1. One\n    - a) First\n    - b) Second\n    - Point\n2. Two\n- Break\n- IV. Four"
    assert parse_document("a.pptx", bytes_of(presentation.save)).text == f"## Slide 1\n\n{shown}"


RICH = (
    '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><r><t>10</t></r>'
    '<r><rPr><vertAlign val="superscript"/></rPr><t>6</t></r><r><rPr><strike/></rPr><t>old</t></r>'
    '<r><t xml:space="preserve"> users</t></r></si></sst>'
)
SHARED = (
    '<Override PartName="/xl/sharedStrings.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.spreadsheetml.sharedStrings+xml"/></Types>'
)


def text_of(sheet: Any) -> str:
    return parse_document("a.xlsx", bytes_of(sheet.parent.save)).text


def rewritten(data: bytes, *changes: tuple[str, str], **more: str) -> bytes:
    """Return a package with text of its parts replaced, and more parts."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as package, zipfile.ZipFile(result, "w") as changed:
        for name in package.namelist():
            xml = package.read(name).decode()
            for old, new in changes:
                xml = xml.replace(old, new)
            changed.writestr(name, xml)
        for name, xml in more.items():
            changed.writestr(name, xml)
    return result.getvalue()


def test_a_cell_with_a_link_shows_its_address() -> None:
    sheet = sheet_of(
        ["Plan", "Page"], ["Team", '=HYPERLINK("https://b.example/?x=1&y=2","")'], ["https://c.example", "A1"]
    )
    sheet["A2"].hyperlink, sheet["A3"].hyperlink = "https://a.example/a(b)?x=1&y=2", "https://c.example"
    sheet["B3"].hyperlink, sheet["B1"].hyperlink = "#Sheet!A1", "https://d.example"
    sheet["B1"].hyperlink.ref = "#REF!"  # of a cell that was deleted

    last_result = (('<c r="B2"><f>', '<c r="B2" t="str"><f>'), ("</f><v></v>", "</f><v>The page</v>"))
    assert parse_document("a.xlsx", rewritten(bytes_of(sheet.parent.save), *last_result)).text.split("\n")[4:6] == [
        "| [Team](https://a.example/a%28b%29?x=1&y=2) | [The page](https://b.example/?x=1&y=2) |",
        "| https://c.example | A1 |",
    ]


def test_sheets_are_read_as_they_look() -> None:
    header, team = ["Region", "Plan", "Price", "Limit"], ["North", "Team", 1234.5, "rich"]
    sheet = sheet_of(header, team, ["", "Solo", 5], ["", "Old", 3])
    sheet.merge_cells("A2:A3")
    sheet["C2"].number_format, sheet["C3"].number_format = "#,##0.00\\ [$€-407]", '"$"#,##0_);[Red]("$"#,##0)'
    sheet["B4"].font = sheet["C4"].font = Font(strike=True)
    shared = (('t="inlineStr"><is><t>rich</t></is>', 't="s"><v>0</v>'), ("</Types>", SHARED))
    data = rewritten(bytes_of(sheet.parent.save), *shared, **{"xl/sharedStrings.xml": RICH})
    text = parse_document("a.xlsx", data).text
    assert "| North | Team | 1234.5 € | 10⁶ users |\n| North | Solo | $5 |  |" in text
    assert "Old" not in text


def test_a_cell_merged_across_rows_also_counts_below_an_empty_row() -> None:
    sheet = sheet_of(["Region", "Plan"], ["North", "Team"], ["", ""], ["", "Solo"], ["South", "Team"])
    sheet.merge_cells("A2:A4")
    assert "| North | Solo |\n| South | Team |" in text_of(sheet)


@pytest.mark.parametrize(
    ("number_format", "value", "shown"),
    [
        ('#,##0,"k"', 12_000, "12 k"),
        ('"$"#,##0.0,,"M"', 5_400_000, "$5.4 M"),
        ("#,##0", 12_000, "12000"),
        ("[$CHF] #,##0", 9, "CHF 9"),
        ("00000", 1234, "01234"),
        ("0." + 30 * "0", 1234.5, "1234.5"),
        ("0", 2.5, "3"),
        ("#,##0", 3466.666_666_666_67, "3467"),
        ("General", 0.1 + 0.2, "0.3"),
        ("0%", 0.125, "13%"),
        ("0.0%", 0.1254, "12.5%"),
        ('0.0" km/h"', -0.04, "0 km/h"),
        ("$#,##0.00_);($#,##0.00)", -2.345, "-$2.35"),
        ("0.00E+00", 12_345.678, "12345.678"),
        ("# ?/?", 0.5, "0.5"),
        ("0.00", 1e16, "10000000000000000"),
    ],
)
def test_a_number_is_read_at_the_scale_and_with_the_decimals_that_its_format_shows(
    number_format: str, value: float, shown: str
) -> None:
    sheet = sheet_of(["Revenue", value])
    sheet["B1"].number_format = number_format
    assert f"| Revenue | {shown} |" in text_of(sheet)


def test_a_header_of_two_rows_names_each_column_in_a_sheet_and_on_a_page() -> None:
    sheet = sheet_of(["Plan", 2025, "", 2026], ["", "Q1", "Q2", "Q1", "Q2"], ["Team", 1, 2, 3, 4])
    sheet.merge_cells("A1:A2")
    sheet.merge_cells("B1:C1")
    sheet.merge_cells("D1:E1")
    header = "| Plan | 2025 Q1 | 2025 Q2 | 2026 Q1 | 2026 Q2 |\n| --- | --- | --- | --- | --- |\n"
    assert text_of(sheet) == f"## Sheet\n\n{header}| Team | 1 | 2 | 3 | 4 |\n"
    top = "<tr><th rowspan=2>Plan</th><th colspan=2>2025</th><th colspan=2>2026</th></tr>"
    page = f"<table>{top}<tr><th>Q1</th><th>Q2</th><th>Q1</th><th>Q2</th></tr><tr><td>Team</td><td>1</td></tr></table>"
    assert parse_document("a.html", page.encode()).text.startswith(header.split("\n", maxsplit=1)[0])


def test_second_table_of_a_sheet_has_its_own_header() -> None:
    sheet = sheet_of(
        ["Plan", "Price", "Seats"],
        ["Team", 3, 40],
        [],
        ["Offices"],
        ["City", "Desks"],
        ["Bern", 9],
        [],
        ["", "end"],
    )
    first = "| Plan | Price | Seats |\n| --- | --- | --- |\n| Team | 3 | 40 |\n"
    second = "\nOffices\n\n| City | Desks |\n| --- | --- |\n| Bern | 9 |\n|  | end |\n"
    assert text_of(sheet) == f"## Sheet\n\n{first}{second}"


def test_formula_without_a_result_is_reported() -> None:
    sheet = sheet_of(["Seats", "=4*10"])
    assert "without the results of formulas" in parse_document("a.xlsx", bytes_of(sheet.parent.save)).cut


def test_separator_that_excel_writes_above_a_table_is_not_its_title() -> None:
    assert parse_document("a.csv", b"sep=;\nPlan;Price\nTeam;3,5\n").text.startswith("| Plan | Price |")
