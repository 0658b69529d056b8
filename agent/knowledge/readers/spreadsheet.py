"""Readers of Excel workbooks and CSV, as Markdown tables under their headers. Only this module imports openpyxl."""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from decimal import ROUND_HALF_UP, Decimal
from html import unescape
from itertools import islice, zip_longest
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import quote

from agent.knowledge.readers.document import (
    Content,
    DocumentPart,
    ReadLimits,
    clean,
    join_header_rows,
    open_package,
    raise_or_lower,
    refusing_damage,
    table_row,
)
from agent.knowledge.readers.text import decode

MAX_ROWS: Final = 100_000  # maximum rows of a sheet
MAX_COLUMNS: Final = 200
PART_ROWS: Final = 200
MAX_LONE_ROWS: Final = 20  # maximum lone cells above a table's header
_MAX_EMPTY_ROWS: Final = 1_000  # a sheet may declare a million rows
_SAMPLE: Final = 2_048  # the time of the sniffer's patterns grows quadratically
_DELIMITERS: Final = ",;\t|"
_BLOCK: Final = 1_000_000  # bytes of a sheet's XML that are searched for links at once
_OVERLAP: Final = 5_000  # longer than a link with its formula
_RULE: Final = " --- |"
_RULE_LINE: Final = "\n|"  # between a header and its rule
_NO_RESULT: Final = re.compile(
    rb"<(?:\w+:)?c(?![^<>]*t=\"str\")[^<>]*><(?:\w+:)?f[^<>]*>[^<]*</(?:\w+:)?f>"
    rb"(?:<(?:\w+:)?v\s*/>|<v></v>)?</(?:\w+:)?c>"
)
_MERGED: Final = re.compile(rb"<(?:\w+:)?mergeCell ref=\"([A-Z]{1,3}\d{1,7}:[A-Z]{1,3}\d{1,7})\"")
_LINK: Final = re.compile(rb"<(?:\w+:)?hyperlink\s([^<>]*)>")
_LINK_FORMULA: Final = re.compile(
    rb"<(?:\w+:)?c r=\"([A-Z]{1,3}\d{1,7})\"[^<>]*><(?:\w+:)?f[^<>]*>"
    rb"HYPERLINK\((?:\"|&quot;)((?:[^\"<&]|&amp;){1,2000})"
)
_ATTRIBUTE: Final = re.compile(rb"([\w:]+)=\"([^\"]*)\"")
_REF: Final = re.compile(r"[A-Z]{1,3}\d{1,7}(?::[A-Z]{1,3}\d{1,7})?")
_UNSAFE: Final = re.compile(r"[\s()<>|]")  # characters to escape in the address of a Markdown link
_SCALE: Final = re.compile(r"[0#?.](,+)(?![0#?,.])")  # each comma after the last digit divides by a thousand
_DIGITS: Final = re.compile(r"General|[0#?][0#?.,\s]*")
_MAX_ROUNDED: Final = 1e15  # a larger number has no decimals
_OTHER_FORM: Final = re.compile(r"[Ee][+-]|/")  # a power of ten, a fraction
_BRACKET: Final = re.compile(r"\[(?:\$([^\]-]*))?[^\]]*\]")  # a currency with its country, a colour, a condition
_UNIT: Final = re.compile(r"\"([^\"]*)\"|\\(.)|([$€£¥])")


def read_csv(data: bytes, limits: ReadLimits) -> Content:
    """Read a delimited text file (CSV, TSV) as one table."""
    text = decode(data)
    if separator := re.match(r"sep=(.)\n", text):  # for Excel
        text = text[separator.end() :]
    try:
        dialect: Any = csv.Sniffer().sniff(text[:_SAMPLE], _DELIMITERS)
    except csv.Error:
        dialect = csv.excel_tab if "\t" in text[:_SAMPLE] else csv.excel
    with refusing_damage("CSV file", csv.Error):
        csv.field_size_limit(len(text) + 1)
        rows = csv.reader(io.StringIO(text), dialect)
        return Content(parts=_parts("", limits.take(_table(rows), "row", len)))


def read_xlsx(data: bytes, limits: ReadLimits) -> Content:
    """Read the visible sheets, each under its name. For formulas their last results are used."""
    from openpyxl import load_workbook  # noqa: PLC0415 - slow to load, and CSV does not need it
    from openpyxl.utils.exceptions import InvalidFileException  # noqa: PLC0415 - likewise

    with refusing_damage("Excel workbook", InvalidFileException):
        workbook = load_workbook(open_package(data), read_only=True, data_only=True, rich_text=True)
        parts: list[DocumentPart] = []
        for sheet in workbook.worksheets:
            if sheet.sheet_state == "visible":
                rows = limits.take(_table(_read_rows(sheet, limits)), f"sheet {sheet.title}, row", len)
                parts += _parts(f"## {sheet.title}\n\n", rows)
        return Content(title=clean(workbook.properties.title or ""), parts=tuple(parts))


def _read_rows(sheet: Any, limits: ReadLimits) -> Iterator[list[str]]:
    """Yield rows. A cell that is merged across rows is repeated in each row that has other cells."""
    from openpyxl.packaging.relationship import get_dependents  # noqa: PLC0415 - slow to load

    sheet.reset_dimensions()  # a wrong size in the file would hide rows
    archive, path = sheet.parent._archive, PurePosixPath(sheet._worksheet_path)  # noqa: SLF001 - the library has no other way
    listed = str(path.parent / "_rels" / f"{path.name}.rels")
    links = get_dependents(archive, listed).to_dict() if listed in archive.namelist() else {}
    repeated, addresses, rest = set[tuple[int, int]](), dict[tuple[int, int], str](), b""
    with sheet._get_source() as source:  # noqa: SLF001 - in its read-only mode the library reads neither
        while block := source.read(_BLOCK):
            xml = rest + block
            for merged in _MERGED.finditer(xml):
                column, first, *_, last = _range(merged[1])
                below = ((row, column) for row in range(first + 1, last + 1))
                repeated.update(islice(below, MAX_ROWS - len(repeated)))
            addresses.update(islice(_addresses(xml, links), MAX_ROWS - len(addresses)))
            rest = xml[-_OVERLAP:]
            if _NO_RESULT.search(xml):
                limits.cut = limits.cut or "is read without the results of formulas: open it in Excel and save it"
    above: list[str] = []
    for number, row in enumerate(sheet.iter_rows(max_row=MAX_ROWS), 1):
        cells = [_cell_text(cell) for cell in row[:MAX_COLUMNS]]
        for at in range(len(cells)) if addresses else ():
            url = addresses.get((number, at), "")
            if cells[at].strip() and url.startswith(("http", "mailto:")) and url != cells[at]:
                cells[at] = f"[{cells[at]}]({_UNSAFE.sub(lambda sign: quote(sign[0]), url)})"
        both = enumerate(zip_longest(cells, above, fillvalue=""))
        above = [over if (number, at) in repeated else text for at, (text, over) in both]
        yield above if any(cells) else cells


def _addresses(xml: bytes, links: Any) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the address of each cell with a link, by row and column (from 0)."""
    for found in _LINK_FORMULA.finditer(xml):
        column, row, *_ = _range(found[1])
        yield (row, column), unescape(found[2].decode(errors="replace"))
    for found in _LINK.finditer(xml):
        pairs = ((name.rpartition(b":")[2], value) for name, value in _ATTRIBUTE.findall(found[1]))
        fields = {name: unescape(value.decode(errors="replace")) for name, value in pairs}
        link = links.get(fields.get(b"id"))
        if link is not None and _REF.fullmatch(fields.get(b"ref", "")):
            url = "#".join(filter(None, (link.Target, fields.get(b"location"))))
            column, first, right, last = _range(fields[b"ref"].encode())
            yield from (((row, at), url) for row in range(first, last + 1) for at in range(column, right + 1))


def _range(ref: bytes) -> tuple[int, int, int, int]:
    """Return the first column (from 0) and row of a range such as ``A1:B7``, and the last ones."""
    from openpyxl.utils import range_boundaries  # noqa: PLC0415 - slow to load, and CSV does not need it

    left, top, right, bottom = (bound or 1 for bound in range_boundaries(ref.decode()))
    return left - 1, top, right - 1, bottom


def _parts(above: str, lines: Iterator[str]) -> tuple[DocumentPart, ...]:
    """Return a table in parts of ``PART_ROWS`` rows under its header: a whole one would take much memory to parse."""
    parts: list[DocumentPart] = []
    head = above
    while (some := list(islice(lines, PART_ROWS))) and any(some):
        text = clean(head + "\n".join(some) + "\n")
        parts.append(DocumentPart(text=text, line=1 + len(parts) * PART_ROWS))
        head = next((f"{above}{line}\n" for line in reversed(some) if _RULE_LINE in line), head)
    return tuple(parts)


def _table(rows: Iterable[list[str]]) -> Iterator[str]:
    """Yield rows as lines of Markdown tables. Lone cells above a header are paragraphs.

    After empty rows, a row of words begins another table if it has a different width.
    """
    lone: list[str] = []
    width = 0
    after_gap = True
    filled = _filled_rows(rows)
    following = next(filled, None)
    while following is not None:
        cells, following = following, next(filled, None)
        words = all(any(map(str.isalpha, cell)) for cell in cells if cell.strip())
        if not cells:
            after_gap = True
        elif len(cells) == 1 and (after_gap or not width) and len(lone) < MAX_LONE_ROWS:
            lone += cells
        elif width and not (after_gap and words and len(cells) != width):
            yield from (table_row([*row, *[""] * (width - len(row))]) for row in (*([cell] for cell in lone), cells))
            lone, after_gap = [], False
        else:
            yield from [""] if width else []
            if header := join_header_rows(cells, following) if following and len(cells) > 1 else []:
                cells, following = header, next(filled, None)
            width = len(cells)
            yield from (f"{cell.strip()}\n" for cell in lone)
            yield f"{table_row(cells)}{_RULE_LINE}{_RULE * width}"
            lone, after_gap = [], False
    yield from (table_row([cell, *[""] * (width - 1)]) for cell in lone) if width else ["\n".join(lone)]


def _filled_rows(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield rows without trailing empty cells, one for several empty rows, and stop at a long run of empty rows."""
    empty = 0
    for row in islice(rows, MAX_ROWS):
        filled = max((number for number, cell in enumerate(row, 1) if cell.strip()), default=0)
        empty = 0 if filled else empty + 1
        if empty > _MAX_EMPTY_ROWS:
            return
        if filled or empty == 1:
            yield row[: min(filled, MAX_COLUMNS)]


def number_text(value: float, number_format: str) -> str:
    """Return a number or a date (days since 1899) as Excel shows it."""
    from openpyxl.styles.numbers import is_date_format  # noqa: PLC0415 - slow to load
    from openpyxl.utils.datetime import from_excel  # noqa: PLC0415 - likewise

    return _date_text(from_excel(value)) if is_date_format(number_format) else _with_unit(value, number_format)


def _date_text(moment: date | time) -> str:
    if isinstance(moment, datetime):
        return moment.date().isoformat() if moment.time() == time() else moment.isoformat(" ", "minutes")
    return moment.isoformat()


def _cell_text(cell: Any) -> str:
    """Return a cell as Excel shows it, as far as its format affects the meaning. Struck-out text is left out."""
    value = cell.value
    if value is None or (cell.has_style and cell.font.strike):
        return ""
    if isinstance(value, list):  # text of several fonts
        return "".join(part if isinstance(part, str) else _text_of(part) for part in value)
    if isinstance(value, date | time):
        return _date_text(value)
    if isinstance(value, bool):
        return str(value).upper()
    return _with_unit(value, str(cell.number_format)) if isinstance(value, int | float) else str(value)


def _text_of(block: Any) -> str:
    way = (block.font.vertAlign or "")[:3]
    text = raise_or_lower(block.text, way) if way in {"sup", "sub"} else block.text
    return "" if block.font.strike else str(text)


def _with_unit(value: float, number_format: str) -> str:
    """Return a number with the decimals, the percent sign, the currency or the words that its format shows."""
    shown = _BRACKET.sub(lambda found: f'"{found[1] or ""}"', number_format.partition(";")[0])
    bare = _UNIT.sub(" ", shown)
    if scale := _SCALE.search(bare):
        value /= 1_000 ** len(scale[1])
    digits = _DIGITS.search(bare)
    is_percent = "%" in bare
    number = Decimal(f"{value:.15g}") * (100 if is_percent else 1)
    if digits and digits[0] != "General" and abs(value) < _MAX_ROUNDED and not _OTHER_FORM.search(bare):
        places = len(re.sub(r"\D", "0", digits[0].strip(" ,").partition(".")[2]))
        places = min(places, 15 - number.adjusted())  # more than the number has would overflow
        number = number.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP) + 0  # no "-0"
    text = f"{number.normalize():f}"
    if is_percent or set(shown) == {"0"}:  # "00000" shows 1234 as 01234
        return f"{text}%" if is_percent else text.zfill(len(shown))
    sides = _DIGITS.split(shown)
    if len(sides) == 1:
        return text
    prefix, suffix = ("".join(map("".join, _UNIT.findall(side))).strip() for side in (sides[0], sides[-1]))
    space = " " if prefix and sides[0].endswith(" ") else ""
    sign = "-" if prefix and text.startswith("-") else ""
    return f"{sign}{prefix}{space}{text.removeprefix(sign)} {suffix}".rstrip()
