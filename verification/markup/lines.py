"""The lines of an answer and their kinds. Claims, salvage and streams use them to see which lines belong together.

In a fence, code is distinguished from plain words. A table is detected as pipes, and drawn as an aligned block of
monospaced text. ``is_drawn`` recognises it, so that chunks can repeat its header and its cells can be checked.
"""

import html
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import Final, Literal, NamedTuple

from verification.markup.scanner import QUOTE, Fence, fences, segments
from verification.types import Source

Kind = Literal["text", "heading", "item", "row", "head", "rule", "frame", "fence", "blank"]
"""``head`` is the row above a table's ``rule``; ``frame`` is the text around a table in a code block."""

ITEM: Final = re.compile(r"[ \t\u00a0\u2003]*(?:[-*+–•◦▪▫‣▸☐☑]|([0-9]{1,9})[.)]|[a-z][.)])[ \t\u00a0]+")
_HEADING: Final = re.compile(r"#{1,6}\s+\S.*|\*{1,2}[^*\n]{1,200}\*{1,2}:?")
_ROW: Final = re.compile(r"\|.*\|")
# Match against a stripped line: white space at its ends would make this quadratic.
_RULE: Final = re.compile(r"[-|+─│═┼:=_* \t]{3,}")
ANY_CITATION: Final = re.compile(r"\[(\d{1,12}(?:\s*[,;–-]\s*\d{1,12})*)\]")  # also one that is a link
CITATION: Final = re.compile(rf"{ANY_CITATION.pattern}(?!\()")
_RANGE: Final = re.compile(r"([0-9]+)(?:\s*[-–]\s*([0-9]+))?")
_MAX_RANGE: Final = 30
_MAX_DIGITS: Final = 12  # maximum digits, because Python's int() is quadratic
NO_SOURCE: Final = -1
"""A number that is too high for any source."""
_COLON_END: Final = re.compile(r"[:：][\s*_~]*$")
_EMOJI: Final = re.compile(r"(?<!\w):[a-z0-9_+-]{2,30}:")
_CODE: Final = re.compile(r"```[^`]+```")
_MAX_LINE: Final = 2_000
_MAX_RULE_ROW: Final = 4  # a table's rule must be in the first lines of a code block
NON_EMPTY_LINE: Final = re.compile(r"[^\n]+")
_CODE_SIGN: Final = re.compile(r"[={}();$|<>\\&`\[\]#@]|(?<!\S)--?[A-Za-z]|://|/\w+/")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_MIN_PROSE_WORDS: Final = 3  # "make test" is a command, "then restart the service" is not


class TextLine(NamedTuple):
    """A line with the lines that continue it, without its line end. A code block is one line."""

    start: int
    end: int
    kind: Kind
    content: int  # the start of the text after a marker, or of the code after the ticks
    indent: int = 0
    number: int | None = None


def lines(text: str) -> Iterator[TextLine]:
    """Yield the lines of a text, including those of a table in a code block."""
    at = 0
    for fence in fences(text):
        yield from _plain_lines(text, at, fence.start)
        yield from _fence_lines(text, fence)
        at = fence.end
    yield from _plain_lines(text, at, len(text))


def cited_numbers(inside: str) -> Iterator[int]:
    """Yield the numbers of a citation. A range gives each number in it, unless it is reversed or too long."""
    for match in _RANGE.finditer(inside):
        first, last = match[1], match[2] or match[1]
        if max(len(first), len(last)) > _MAX_DIGITS or not 0 <= int(last) - int(first) <= _MAX_RANGE:
            yield NO_SOURCE
        else:
            yield from range(int(first), int(last) + 1)


def ends_in_colon(line: str) -> bool:
    """Return True if a line ends in a colon, ignoring marks and citations, and so introduces the next line."""
    return bool(_COLON_END.search(_EMOJI.sub("", CITATION.sub("", line))))


def _plain_lines(text: str, start: int, end: int) -> Iterator[TextLine]:
    """Yield the lines outside fences. A line that starts in lower case continues the one before."""
    spans: list[tuple[int, int]] = []
    for line in text[start:end].split("\n"):
        above = text[spans[-1][0] : spans[-1][1]] if spans else ""
        goes_on = line.lstrip()[:1].islower() and not ITEM.match(line)
        if goes_on and above.strip() and len(above) < _MAX_LINE and not _COLON_END.search(above):
            spans[-1] = (spans[-1][0], start + len(line))
        else:
            spans.append((start, start + len(line)))
        start += len(line) + 1
    below = [text[first:last].strip() for first, last in spans[1:]]
    for (first, last), following in zip(spans, [*below, ""], strict=True):
        yield _classify_line(text[first:last].replace("\n", " "), first, following)


def _classify_line(line: str, start: int, following: str) -> TextLine:
    bare = line.strip()
    marker = ITEM.match(line)
    indent = len(line[: len(line) - len(line.lstrip())].expandtabs(4))
    kind: Kind = "item" if marker else "text"
    if not bare:
        kind = "blank"
    elif _RULE.fullmatch(bare):
        kind = "rule"
    elif _ROW.fullmatch(bare):
        kind = "head" if "-" in following and _RULE.fullmatch(following) else "row"
    elif bare[0] in "#*" and _HEADING.fullmatch(CITATION.sub("", bare).strip()):
        kind = "heading"
    content = start + (marker.end() if marker else 0)
    if _CODE.fullmatch(bare):
        kind, content = "fence", start + line.index("```") + 3
    return TextLine(start, start + len(line), kind, content, indent, int(marker[1]) if marker and marker[1] else None)


def _fence_lines(text: str, fence: Fence) -> Iterator[TextLine]:
    """Yield a code block as one line, or as the lines of the table drawn in it."""
    rows = text[fence.start : fence.end].rstrip().split("\n")
    rule = next((at for at, row in enumerate(rows[:_MAX_RULE_ROW]) if at and _RULE.fullmatch(row.strip())), 0)
    at = fence.start
    if not rule or fence.inline:
        code = text.index(fence.ticks, at) + len(fence.ticks)
        yield TextLine(at, at + len("\n".join(rows)), "fence", code)
        return
    for number, row in enumerate(rows):
        framing = number < rule - 1 or number == 0 or (fence.closed and number == len(rows) - 1)
        kind: Kind = "frame" if framing else "head" if number < rule else "rule" if number == rule else "row"
        yield TextLine(at, at + len(row), kind, at)
        at += len(row) + 1


def code_runs(body: str, offset: int) -> Iterator[tuple[int, int, bool]]:
    """Yield spans of a fence's lines: adjacent code lines as one (True), each line of words alone (False)."""
    runs: list[tuple[int, int, bool]] = []
    for line in NON_EMPTY_LINE.finditer(body):
        if words := line[0].strip():
            start, code = offset + line.start() + line[0].index(words), is_code(words)
            joins = code and runs and runs[-1][2]
            runs.append((runs.pop()[0] if joins else start, start + len(words), code))
    yield from runs


def is_code(line: str) -> bool:
    """Return True if a line is more than plain words. Chinese and Japanese have no spaces between words."""
    if _CODE_SIGN.search(line):
        return True
    return len(_WORD.findall(line)) < _MIN_PROSE_WORDS and not re.search("[\u3040-\u30ff\u3400-\u9fff]{4}", line)


_MAX_WIDTH = 60  # maximum width: one long cell must not push all others out of sight
_CELL_PIPE = re.compile(r"\\?\|")
_DRAWN_RULE = re.compile(r"-+(?:-\+-+)+|-{3,}")
# A sign next to the same sign is none: "__init__".
_EMPHASIS = re.compile(r"(?<![^\W_])([*_~])(?<!\1\1)(?!\1|\s)([^\n]{0,1000}?)(?<!\s)(?<!\1)\1(?!\1|[^\W_])")
_SLACK_TOKEN = re.compile(r"<([^<>|\n]+)(?:\|([^<>\n]*))?>")


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
        line = "".join(part if kind == "text" else _CELL_PIPE.sub("\x00", part) for kind, part in parts)
    line = line.replace("\\|", "\x00").removeprefix("|").removesuffix("|")
    return [cell.replace("\x00", "|").strip() for cell in line.split("|")]


def column_alignments(line: str) -> str:
    """The alignments of the columns below a delimiter row: ``<``, ``>`` or ``^`` each."""
    signs = {(True, True): "^", (False, True): ">"}
    return "".join(signs.get((cell.startswith(":"), cell.endswith(":")), "<") for cell in split_cells(line))


def flatten_cell(text: str) -> str:
    """A cell of mrkdwn as plain text that keeps the addresses of links."""
    text = _SLACK_TOKEN.sub(lambda token: f"{token[2]} ({token[1]})" if token[2] else token[1], text)
    parts = [(kind, text[start:end]) for kind, start, end in segments(text)]
    return html.unescape("".join(strip_marks(part) if kind == "text" else part.strip("`") for kind, part in parts))


def emphasised(text: str, start: int, end: int, depth: int = 3) -> Iterator[tuple[int, int]]:
    """Yield the spans between Slack's emphasis marks, which may be nested: bold, italics and strike."""
    for match in _EMPHASIS.finditer(text, start, end) if depth else ():
        yield match.span(2)
        yield from emphasised(text, *match.span(2), depth - 1)


def strip_marks(text: str) -> str:
    """Remove Slack's emphasis marks and zero-width joins."""
    marks = {place for start, end in emphasised(text, 0, len(text)) for place in (start - 1, end)}
    return "".join(char for place, char in enumerate(text) if place not in marks and char != "\u200b")


def display_width(text: str) -> int:
    """The number of columns that a text needs in a terminal."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth  # noqa: PLC0415 - a tenth of each start, for tables that are not in ASCII

    columns = wcswidth(text)  # wide letters take two columns (Unicode, UAX 11)
    return columns if columns >= 0 else len(text)


def draw_table(table: list[list[str]], alignments: str, *, headed: bool) -> str:
    """Draw the rows as aligned lines without a fence. ``alignments`` has ``<``, ``>`` or ``^`` for each column."""
    # Three ticks would end the block in Slack.
    rows = [[cell.replace("\n", " ").replace("```", "``\u200b`") for cell in row] for row in table]
    columns = zip_longest(*rows, fillvalue="")
    least = 1 if max(map(len, rows)) > 1 else 3
    widths = [max(least, *(min(display_width(cell), _MAX_WIDTH) for cell in column)) for column in columns]
    lines = []
    for row in rows:
        cells = []
        for cell, size, alignment in zip(row, widths, alignments.ljust(len(widths), "<"), strict=False):
            room = max(0, size - display_width(cell))
            left = {">": room, "^": room // 2}.get(alignment, 0)
            cells.append(" " * left + cell + " " * (room - left))
        lines.append(" | ".join(cells).rstrip())
    if headed:
        lines.insert(1, "-+-".join("-" * size for size in widths))
    return "\n".join(lines)


def is_drawn(body: str) -> bool:
    """Return True if the body of a fence is a table that ``draw_table`` drew with a header."""
    lines = body.split("\n", 2)
    return len(lines) > 1 and bool(_DRAWN_RULE.fullmatch(lines[1]))


def drawn_rows(body: str) -> list[list[str]]:
    """The cells of a drawn table, header first, without its rule."""
    header, _, *rows = body.split("\n")
    return [[cell.strip() for cell in f"{line} ".split(" | ")] for line in (header, *rows)]


_WRAPPED_CHARS: Final = 50  # a shorter line may end by itself
_MAX_WRAPPED_WIDTH: Final = 100  # of wrapped text
_CODE_INDENT: Final = 4
_ENDED: Final = re.compile(r"[.!?:;|。！？…][\"'”’)\]*_]*\Z")
_CODE_FENCE: Final = re.compile(r"[ \t]*(?:`{3}|~{3})")
_ALONE: Final = re.compile(rf"\s*(?:\Z|#{{1,6}}\s|\||-{{3}}|={{3}}|\[[^\[\]]+\]:\s)|{_CODE_FENCE.pattern}")
_BEGUN: Final = re.compile(  # an item, HTML, or "Label:"
    rf"{ITEM.pattern}|\s*<(?!https?:|mailto:)[\w/!]"
    r"|\s*[*_]{0,2}[A-Z][\w./-]*(?: [\w./-]+){0,2}:[*_]{0,2}(?:\s|\Z)"
)
_CODE_LINE: Final = re.compile(r" = |(?:[{}(\[=]|\);|\):)$|^[^-+*\d\s][^\n]*\n(?: {2}|\t)", re.MULTILINE)
_LINK: Final = re.compile(r"(?<![\w\]])\[[^\[\]]{1,300}\]\(\S")


def source_lines(source: Source) -> tuple[str, ...]:
    """The numbered lines of a source as a judge sees them, without empty lines. A wrapped paragraph is one line."""
    # A page's date may support a claim, so the judge must be able to name its line.
    dated = f", updated {source.updated_at}" if source.updated_at else ""
    paragraphs: list[list[tuple[str, str]]] = []
    is_code, is_alone = False, True
    for line in source.text.splitlines():
        quote = QUOTE.match(line)
        words = line[quote.end() :] if quote else line
        is_open = not (is_alone or is_code or _BEGUN.match(words) or (quote and not QUOTE.match(paragraphs[-1][0][0])))
        is_alone = is_code or bool(_ALONE.match(words))
        is_code ^= bool(_CODE_FENCE.match(words))
        if words.strip():
            paragraphs += [] if is_open and not is_alone else [[]]
            paragraphs[-1].append((line, words))
    title = " ".join(f"{source.title}{dated}".split())
    return (title, *chain.from_iterable(map(_unwrap, paragraphs)))


def at_section(source: Source, line: int) -> Source:
    """The source with the link and the title of the section that a line is in."""

    def lines_above(section: tuple[int, str, str]) -> int:
        return len(source_lines(replace(source, text=source.text[: section[0]])))

    count = bisect_right(source.sections, line, key=lines_above)
    return replace(source, url=source.sections[count - 1][1], title=source.sections[count - 1][2]) if count else source


def _unwrap(paragraph: Sequence[tuple[str, str]]) -> list[str]:
    """Join the lines of a paragraph, each with and without marks of quotes, if it was wrapped: CommonMark, 6.7."""
    joined: list[str] = []
    is_wrapped = _is_wrapped([words for _, words in paragraph])
    marker = ITEM.match(paragraph[0][1])
    above = "  "
    for line, words in paragraph:
        start = words.lstrip()
        # CommonMark, 5.2: the text of an item is indented as far as its first line
        in_item = marker is not None and 0 <= len(words) - len(start) - marker.end() < _CODE_INDENT
        goes_on = is_wrapped and (start[0].islower() or not _ENDED.search(above))
        if (in_item or goes_on) and not above.endswith(("  ", "\\")):  # not a line break that is meant
            joined[-1] += f" {start.rstrip()}"
        else:
            joined.append(line)
        above = words
    return joined


def _is_wrapped(paragraph: Sequence[str]) -> bool:
    """Return True if the lines are one text that was wrapped, and not a list of names, an address, or a log."""
    starts, text = [line.split()[0] for line in paragraph], "\n".join(paragraph)
    if (len(set(starts)) == 1 and not starts[0][0].islower()) or _CODE_LINE.search(text):  # a log or a program
        return False
    width, breaks = max(map(len, paragraph)), [*zip(paragraph, starts[1:], strict=False)]
    has_clause = any(len(above) >= _WRAPPED_CHARS and word[0].islower() for above, word in breaks)
    fill = [len(above) >= max(_WRAPPED_CHARS, width - len(word)) for above, word in breaks if not _ENDED.search(above)]
    is_full = width <= _MAX_WRAPPED_WIDTH and bool(fill) and all(fill)
    return is_full or has_clause or bool(_LINK.search(text))
