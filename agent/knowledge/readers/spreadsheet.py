"""Readers of tables: Excel workbooks and CSV, as Markdown tables under their headers. The only importer of openpyxl."""

import csv
import io
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from itertools import islice
from typing import Any, Final

from agent.knowledge.readers.document import Content, Limits, Part, clean, refusing_damage, table_row
from agent.knowledge.readers.package import open_package
from agent.knowledge.readers.text import decode

MAX_ROWS: Final = 100_000  # of a sheet
MAX_COLUMNS: Final = 200
PART_ROWS: Final = 200
MAX_LONE_ROWS: Final = 20  # above a table's header
_MAX_EMPTY_ROWS: Final = 1_000  # a sheet may be declared a million rows long
_SAMPLE: Final = 2_048  # the sniffer's patterns take the square of it
_DELIMITERS: Final = ",;\t|"
_RULE: Final = " --- |"


def read_csv(data: bytes, limits: Limits) -> Content:
    """Read a file of separated values as one table."""
    text = decode(data)
    try:
        dialect: Any = csv.Sniffer().sniff(text[:_SAMPLE], _DELIMITERS)
    except csv.Error:
        dialect = csv.excel_tab if "\t" in text[:_SAMPLE] else csv.excel
    with refusing_damage("CSV file", csv.Error):
        csv.field_size_limit(len(text) + 1)
        rows = csv.reader(io.StringIO(text), dialect)
        return Content(parts=_parts("", limits.take(_table(rows), "row", len)))


def read_xlsx(data: bytes, limits: Limits) -> Content:
    """Read the visible sheets, each under its name. Formulas count with their last results."""
    from openpyxl import load_workbook  # noqa: PLC0415 - slow to load, and CSV does not need it
    from openpyxl.utils.exceptions import InvalidFileException  # noqa: PLC0415 - likewise

    with refusing_damage("Excel workbook", InvalidFileException):
        workbook = load_workbook(open_package(data), read_only=True, data_only=True)
        sheets = [sheet for sheet in workbook.worksheets if sheet.sheet_state == "visible"]
        parts = (part for sheet in sheets for part in _parts(f"## {sheet.title}\n\n", _sheet_rows(sheet, limits)))
        return Content(title=clean(workbook.properties.title or ""), parts=tuple(parts))


def _sheet_rows(sheet: Any, limits: Limits) -> Iterator[str]:
    sheet.reset_dimensions()  # a wrong declaration would hide rows
    rows = ([_cell_text(cell) for cell in row[:MAX_COLUMNS]] for row in sheet.iter_rows(max_row=MAX_ROWS))
    return limits.take(_table(rows), f"sheet {sheet.title}, row", len)


def _parts(above: str, lines: Iterator[str]) -> tuple[Part, ...]:
    """Return a table in parts of ``PART_ROWS`` rows under its header: a whole one would take much memory to parse."""
    parts: list[Part] = []
    head = above
    while (some := list(islice(lines, PART_ROWS))) and any(some):
        text = clean(head + "\n".join(some) + "\n")
        parts.append(Part(text=text, line=1 + len(parts) * PART_ROWS))
        if not parts[1:]:
            head = above + next((f"{line}\n" for line in some if _RULE in line), "")
    return tuple(parts)


def _table(rows: Iterable[list[str]]) -> Iterator[str]:
    """Yield rows as lines of a Markdown table. Lone cells above its header are paragraphs."""
    lone: list[str] = []
    width = 0
    for cells in _filled_rows(rows):
        if not width and len(cells) == 1 and len(lone) < MAX_LONE_ROWS:
            lone += cells
        elif width:
            yield table_row([*cells, *[""] * (width - len(cells))])
        else:
            width = len(cells)
            yield from (f"{cell.strip()}\n" for cell in lone)
            yield f"{table_row(cells)}\n|{_RULE * width}"
    if not width:
        yield "\n".join(lone)


def _filled_rows(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield rows without empty cells at their ends, up to a long run of empty rows."""
    empty = 0
    for row in islice(rows, MAX_ROWS):
        filled = max((number for number, cell in enumerate(row, 1) if cell.strip()), default=0)
        empty = 0 if filled else empty + 1
        if empty > _MAX_EMPTY_ROWS:
            return
        if filled:
            yield row[: min(filled, MAX_COLUMNS)]


def _cell_text(cell: Any) -> str:
    """Return a cell as Excel shows it, as far as its format matters for the meaning."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float) and "%" in str(cell.number_format):
        return f"{round(value * 100, 6):.15g}%"
    return f"{value:.15g}" if isinstance(value, float) else str(value)
