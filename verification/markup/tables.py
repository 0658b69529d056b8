"""Tables: found as pipes, shown as an aligned block of monospaced text.

Columns line up by what a terminal would show; very long cells are not padded for. ``is_drawn`` knows a drawn table
again, so that chunks can repeat its header and claims in its cells can be judged.
"""

from __future__ import annotations

import html
import re

from verification.markup.scanner import segments

_WIDEST = 60  # columns: one long cell must not push all others out of sight
_PIPE = re.compile(r"\\?\|")
_DRAWN_RULE = re.compile(r"-+(?:-\+-+)+|-{3,}")
_MARKS = re.compile(r"(?<![\w*_~])([*_~])(?=[^\s*_~])([^\n]*?)(?<=[^\s*_~])\1(?![\w*_~])")
_TOKEN = re.compile(r"<([^<>|\n]+)(?:\|([^<>\n]*))?>")


def is_delimiter(line: str) -> bool:
    """Whether a line is the ``|---|:--:|`` under a table's header."""
    return "-" in line and "|" in line and not line.strip("|-: \t")


def is_row(line: str) -> bool:
    """Whether a line alone shows that it is a table's row: ``| a | b |``."""
    line = line.strip()
    return line.startswith("| ") and line.endswith(" |") and " | " in line[1:-1]


def cells(line: str) -> list[str]:
    r"""The cells of a row; a pipe in code or in a token is part of its cell, and so is ``\|``."""
    line = line.strip()
    if "`" in line or "<" in line:
        parts = [(kind, line[start:end]) for kind, start, end in segments(line)]
        line = "".join(part if kind == "text" else _PIPE.sub("\x00", part) for kind, part in parts)
    line = line.replace("\\|", "\x00").removeprefix("|").removesuffix("|")
    return [cell.replace("\x00", "|").strip() for cell in line.split("|")]


def aligns(line: str) -> str:
    """How the columns under a delimiter row are aligned."""
    marks = ""
    for cell in cells(line):
        right, left = cell.endswith(":"), cell.startswith(":")
        marks += "^" if right and left else ">" if right else "<"
    return marks


def flat(text: str) -> str:
    """A cell of mrkdwn as plain text, addresses of links kept."""
    if "<" in text:
        text = _TOKEN.sub(lambda token: f"{token[2]} ({token[1]})" if token[2] else token[1], text)
    parts = [(kind, text[start:end]) for kind, start, end in segments(text)]
    text = "".join(unmarked(part) if kind == "text" else part.strip("`") for kind, part in parts)
    return html.unescape(text)


def unmarked(text: str) -> str:
    """Text without Slack's emphasis marks and zero-width joins."""
    for _ in range(3):  # bold, italics and strike, one inside the other
        if "*" not in text and "_" not in text and "~" not in text:
            break
        text = _MARKS.sub(r"\2", text)
    return text.replace("\u200b", "")


def width(text: str) -> int:
    """Columns a terminal needs for a text."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth  # noqa: PLC0415 - a tenth of each start, for tables that are not in ASCII

    columns = wcswidth(text)  # wide letters take two columns (Unicode, UAX 11)
    return columns if columns >= 0 else len(text)


def drawn(table: list[list[str]], aligns: str, *, headed: bool) -> str:
    """The rows as aligned lines without a fence; ``aligns`` has ``<``, ``>`` or ``^`` a column, row 0 may be a head."""
    # Three ticks would end the block in Slack.
    rows = [[cell.replace("\n", " ").replace("```", "``\u200b`") for cell in row] for row in table]
    widths = [1] * max(map(len, rows))
    for row in rows:
        for column, cell in enumerate(row):
            widths[column] = max(widths[column], min(width(cell), _WIDEST))
    if len(widths) == 1:
        widths[0] = max(widths[0], 3)
    marks = aligns.ljust(len(widths), "<")
    lines = [" | ".join(map(_padded, row, widths, marks)).rstrip() for row in rows]
    if headed:
        lines.insert(1, "-+-".join("-" * size for size in widths))
    return "\n".join(lines)


def _padded(cell: str, size: int, mark: str) -> str:
    room = max(0, size - width(cell))
    left = room if mark == ">" else room // 2 if mark == "^" else 0
    return " " * left + cell + " " * (room - left)


def is_drawn(body: str) -> bool:
    """Whether the body of a fence is a table that ``drawn`` made with a header."""
    lines = body.split("\n", 2)
    return len(lines) > 1 and bool(_DRAWN_RULE.fullmatch(lines[1]))


def drawn_rows(body: str) -> list[list[str]]:
    """The cells of a drawn table, header first, without its rule."""
    header, _, *rows = body.split("\n")
    return [[cell.strip() for cell in f"{line} ".split(" | ")] for line in (header, *rows)]
