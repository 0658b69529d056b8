"""Tables: detected as pipes, drawn as an aligned block of monospaced text.

Columns align by their width in a terminal. Very long cells do not widen a column. ``is_drawn`` recognises a drawn
table, so that chunks can repeat its header and claims in its cells can be checked.
"""

import html
import re

from verification.markup.scanner import segments

_MAX_WIDTH = 60  # columns: one long cell must not push all others out of sight
_PIPE = re.compile(r"\\?\|")
_DRAWN_RULE = re.compile(r"-+(?:-\+-+)+|-{3,}")
_MARKS = re.compile(r"(?<![\w*_~])([*_~])(?=[^\s*_~])([^\n]*?)(?<=[^\s*_~])\1(?![\w*_~])")
_TOKEN = re.compile(r"<([^<>|\n]+)(?:\|([^<>\n]*))?>")


def is_delimiter(line: str) -> bool:
    """Recognise the ``|---|:--:|`` below a table's header."""
    return "-" in line and "|" in line and not line.strip("|-: \t")


def is_row(line: str) -> bool:
    """Recognise a line that is a table row by itself: ``| a | b |``."""
    line = line.strip()
    return line.startswith("| ") and line.endswith(" |") and " | " in line[1:-1]


def split_cells(line: str) -> list[str]:
    r"""The cells of a row. A pipe in code, in a token, or written ``\|`` belongs to its cell."""
    line = line.strip()
    if "`" in line or "<" in line:
        parts = [(kind, line[start:end]) for kind, start, end in segments(line)]
        line = "".join(part if kind == "text" else _PIPE.sub("\x00", part) for kind, part in parts)
    line = line.replace("\\|", "\x00").removeprefix("|").removesuffix("|")
    return [cell.replace("\x00", "|").strip() for cell in line.split("|")]


def column_alignments(line: str) -> str:
    """The alignments of the columns below a delimiter row: ``<``, ``>`` or ``^`` each."""
    signs = {(True, True): "^", (False, True): ">"}
    return "".join(signs.get((cell.startswith(":"), cell.endswith(":")), "<") for cell in split_cells(line))


def flatten_cell(text: str) -> str:
    """A cell of mrkdwn as plain text that keeps the addresses of links."""
    if "<" in text:
        text = _TOKEN.sub(lambda token: f"{token[2]} ({token[1]})" if token[2] else token[1], text)
    parts = [(kind, text[start:end]) for kind, start, end in segments(text)]
    text = "".join(strip_marks(part) if kind == "text" else part.strip("`") for kind, part in parts)
    return html.unescape(text)


def strip_marks(text: str) -> str:
    """Remove Slack's emphasis marks and zero-width joins."""
    for _ in range(3):  # nested bold, italics and strike
        if "*" not in text and "_" not in text and "~" not in text:
            break
        text = _MARKS.sub(r"\2", text)
    return text.replace("\u200b", "")


def display_width(text: str) -> int:
    """The columns that a text needs in a terminal."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth  # noqa: PLC0415 - a tenth of each start, for tables that are not in ASCII

    columns = wcswidth(text)  # wide letters take two columns (Unicode, UAX 11)
    return columns if columns >= 0 else len(text)


def draw_table(table: list[list[str]], alignments: str, *, headed: bool) -> str:
    """Draw the rows as aligned lines without a fence. ``alignments`` has ``<``, ``>`` or ``^`` for each column."""
    # Three ticks would end the block in Slack.
    rows = [[cell.replace("\n", " ").replace("```", "``\u200b`") for cell in row] for row in table]
    widths = [1] * max(map(len, rows))
    for row in rows:
        for column, cell in enumerate(row):
            widths[column] = max(widths[column], min(display_width(cell), _MAX_WIDTH))
    if len(widths) == 1:
        widths[0] = max(widths[0], 3)
    lines = [" | ".join(map(_pad, row, widths, alignments.ljust(len(widths), "<"))).rstrip() for row in rows]
    if headed:
        lines.insert(1, "-+-".join("-" * size for size in widths))
    return "\n".join(lines)


def _pad(cell: str, size: int, alignment: str) -> str:
    room = max(0, size - display_width(cell))
    left = room if alignment == ">" else room // 2 if alignment == "^" else 0
    return " " * left + cell + " " * (room - left)


def is_drawn(body: str) -> bool:
    """Return True if the body of a fence is a table that ``draw_table`` made with a header."""
    lines = body.split("\n", 2)
    return len(lines) > 1 and bool(_DRAWN_RULE.fullmatch(lines[1]))


def drawn_rows(body: str) -> list[list[str]]:
    """The cells of a drawn table, header first, without its rule."""
    header, _, *rows = body.split("\n")
    return [[cell.strip() for cell in f"{line} ".split(" | ")] for line in (header, *rows)]
