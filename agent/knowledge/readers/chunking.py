"""Cuts a document into chunks: by heading, then by size, at sentences, list items, table rows and code lines.

A chunk's text is lines of the document. There are two exceptions: a continued table repeats its header, and a row
longer than a chunk becomes its cells with their headers. No URL, link or code span is cut. Lines count from 1.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Final, NamedTuple

from markdown_it import MarkdownIt

from agent.knowledge.readers.document import BLOCKS, HEADING_ATTRIBUTES, Form, ReadDocument, one_line
from agent.knowledge.readers.markup import headings_in
from agent.knowledge.types import PATH
from agent.texts.catalogue import truncate

CHUNK_CHARS: Final = 1_200  # some 200 words: short enough for one subject, long enough for ranking
_MAX_NAME_CHARS: Final = 100  # maximum length of a column's name that is repeated in each of its cells
_MIN_SHARE: Final = 3  # a cut after a sentence must leave at least a third of a chunk
_TOKEN: Final = re.compile(
    r"(?P<whole>(?<!`)`++[^`\n]{1,1000}`+|!?\[[^\]\n]{0,500}\]\([^)\s]{0,2000}\)|<?https?://[^\s<>]+>?)\s*|[^\s。！？`\[<]+\s*|.\s*",
    re.DOTALL,
)
_SENTENCE_END: Final = re.compile(r"[.!?…][\"'”’»)\]*_]{0,3}\s*$|[。！？]\s*$")
_UNSEEN: Final = re.compile(r"\s*<(?:!--|script|style)", re.IGNORECASE)
_ITEM: Final = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_CELL_BORDER: Final = re.compile(r"(?<!\\)\|")
_INLINE: Final = MarkdownIt("commonmark")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a document. ``heading`` is the last of the ``path``, ``anchor`` its fragment. ``page`` 0: no pages."""

    text: str
    heading: str = ""
    path: str = ""
    anchor: str = ""
    line: int = 1
    page: int = 0


class _Section(NamedTuple):
    """A heading and the blocks under it, each with its first line (from 0), the line after its last, and its kind."""

    headings: tuple[str, ...]
    anchor: str
    blocks: Sequence[tuple[int, int, str]]


class _Piece(NamedTuple):
    """Text from a line on. ``opens`` a new chunk."""

    line: int
    text: str
    opens: bool = False


def slug(heading: str) -> str:
    """Return the URL fragment that repository hosts and most site builders give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower().strip()).replace(" ", "-")


def chunk_document(document: ReadDocument) -> tuple[Chunk, ...]:
    """Return all chunks of a document, in order."""
    return tuple(
        Chunk(
            text="\n\n".join(piece.text for piece in pieces),
            heading=section.headings[-1] if section.headings else "",
            path=PATH.join(section.headings),
            anchor=section.anchor,
            line=part.line + pieces[0].line,
            page=part.page,
        )
        for part in document.parts
        for lines in [part.text.split("\n")]
        for section in (
            _sections(part.text) if document.form == "markdown" else _text_sections(part.text, document.form)
        )
        for pieces in _fill(section, lines)
    )


def _text_sections(text: str, form: Form) -> Iterator[_Section]:
    lines = text.split("\n")
    headings = [*headings_in(text, form)]
    starts = [*(heading.line for heading in headings), len(lines)]
    yield _Section((), "", _paragraphs(lines, 0, starts[0]))
    trail: dict[int, str] = {}
    for heading, end in zip(headings, starts[1:], strict=True):
        trail = {depth: title for depth, title in trail.items() if depth < heading.depth}
        trail[heading.depth] = heading.title
        own = (heading.line, heading.end, "heading_open")
        yield _Section(tuple(trail.values()), "", [own, *_paragraphs(lines, heading.end, end)])


def _paragraphs(lines: Sequence[str], begin: int, end: int) -> list[tuple[int, int, str]]:
    runs = groupby(range(begin, end), key=lambda number: bool(lines[number].strip()))
    paragraphs = [list(numbers) for is_text, numbers in runs if is_text]
    return [(numbers[0], numbers[-1] + 1, "paragraph") for numbers in paragraphs]


def _sections(text: str) -> Iterator[_Section]:
    tokens = BLOCKS.parse(text)
    trail: dict[int, str] = {}
    seen: Counter[str] = Counter()
    anchor = ""
    blocks: list[tuple[int, int, str]] = []
    for index, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        if token.type == "heading_open":
            yield _Section(tuple(trail.values()), anchor, blocks)
            (inline,) = _INLINE.parseInline(tokens[index + 1].content)
            words = (" " if child.type == "html_inline" else child.content for child in inline.children or ())
            whole = " ".join("".join(words).split())
            given = HEADING_ATTRIBUTES.search(whole)
            title = whole[: given.start()] if given else whole
            anchor = (given and given["id"]) or slug(title)
            trail = {depth: text for depth, text in trail.items() if depth < int(token.tag[1])}
            trail[int(token.tag[1])] = title
            before = seen[anchor]
            seen[anchor] += 1
            anchor += f"-{before}" if before else ""  # hosts call the second heading of the same name ``name-1``
            blocks = []
        blocks.append((token.map[0], token.map[1], token.type))
    yield _Section(tuple(trail.values()), anchor, blocks)


def _fill(section: _Section, lines: Sequence[str]) -> Iterator[list[_Piece]]:
    """Group pieces into chunks of about ``CHUNK_CHARS``. A heading alone does not make a chunk."""
    headings = [start for start, _, kind in section.blocks if kind == "heading_open"]
    pieces: list[_Piece] = []
    for piece in _pieces(section, lines):
        is_full = piece.opens or sum(len(held.text) + 2 for held in pieces) + len(piece.text) > CHUNK_CHARS
        if is_full and pieces and [held.line for held in pieces] != headings:
            yield pieces
            pieces = []
        pieces.append(piece)
    if pieces and [held.line for held in pieces] != headings:
        yield pieces


def _pieces(section: _Section, lines: Sequence[str]) -> Iterator[_Piece]:
    """Yield each block as one piece, or as several if it is too long."""
    for start, end, kind in section.blocks:
        text = "\n".join(lines[start:end]).strip("\n")
        if not text.strip() or kind == "hr" or (kind == "html_block" and _UNSEEN.match(text)):
            continue
        if len(text) <= CHUNK_CHARS:
            yield _Piece(start, text)
        elif kind == "table_open":
            yield from _split_table(start, lines[start:end])
        else:
            is_list = kind in {"bullet_list_open", "ordered_list_open"}
            items = _items(start, lines[start:end]) if is_list else _lines(start, lines[start:end])
            yield from _join(list(items), at_sentences=kind.startswith("paragraph"))


def _join(items: Sequence[_Piece], *, at_sentences: bool) -> Iterator[_Piece]:
    """Join lines, items or sentences, each with its line end, into pieces of at most ``CHUNK_CHARS``."""
    held: list[_Piece] = []
    chars = 0
    for item in items:
        while held and chars + len(item.text.rstrip()) > CHUNK_CHARS:
            cut = _sentence_cut(held) if at_sentences else len(held)
            text = "".join(each.text for each in held[:cut])
            yield _Piece(held[0].line, text.rstrip(), opens=True)
            held, chars = held[cut:], chars - len(text)
        held.append(item)
        chars += len(item.text)
    if text := "".join(each.text for each in held).rstrip():
        yield _Piece(held[0].line, text, opens=True)


def _sentence_cut(held: Sequence[_Piece]) -> int:
    """Return the position after the last line that ends a sentence, or the end if that is too early."""
    chars = 0
    cut = len(held)
    for number, piece in enumerate(held, 1):
        chars += len(piece.text)
        if chars * _MIN_SHARE > CHUNK_CHARS and _SENTENCE_END.search(piece.text):
            cut = number
    return cut


def _split_table(start: int, lines: Sequence[str]) -> Iterator[_Piece]:
    """Yield parts of a table, each with its header. A row that is too long becomes cells with their headers."""
    head = "\n".join(lines[:2])
    if len(lines) == 2 or 2 * len(head) > CHUNK_CHARS:  # noqa: PLR2004 - a header alone
        named = (piece for number, line in enumerate(lines[2:], start + 2) for piece in _cells(number, lines[0], line))
        yield from _join([*_lines(start, lines[:1]), *named], at_sentences=False)
        return
    rows: list[str] = []
    first = start
    for number, line in enumerate(lines[2:], start + 2):
        if rows and sum(len(row) + 1 for row in rows) + len(line) + len(head) > CHUNK_CHARS:
            yield _Piece(first, "\n".join([head, *rows]), opens=True)
            rows = []
        if len(line) > CHUNK_CHARS:
            yield from _join([*_cells(number, lines[0], line)], at_sentences=False)
        else:
            first = first if rows or number == start + 2 else number
            rows.append(line)
    if rows:
        yield _Piece(first, "\n".join([head, *rows]), opens=True)


def _cells(number: int, head: str, row: str) -> Iterator[_Piece]:
    """Yield the cells of a row with their headers, on one line if they fit into a chunk. All have the row's number."""
    names, cells = (map(str.strip, _CELL_BORDER.split(line.strip().strip("|"))) for line in (head, row))
    short = (name if len(name) <= _MAX_NAME_CHARS else truncate(one_line(name), _MAX_NAME_CHARS) for name in names)
    facts = [f"{name}: {cell}" if name else cell for name, cell in zip_longest(short, cells, fillvalue="") if cell]
    for fact in facts if len(row) > CHUNK_CHARS else ["; ".join(facts)]:
        yield from _lines(number, [fact])


def _items(start: int, lines: Sequence[str]) -> Iterator[_Piece]:
    """Yield the top-level items of a list with everything below them; an item that is too long is split into lines."""
    depth = len(lines[0]) - len(lines[0].lstrip())
    items = ((number, _ITEM.match(line)) for number, line in enumerate(lines))
    starts = [number for number, item in items if item and len(item["indent"]) <= depth] or [0]
    for begin, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        text = "\n".join(lines[begin:end]) + "\n"
        if len(text) <= CHUNK_CHARS:
            yield _Piece(start + begin, text)
        else:
            yield from _lines(start + begin, lines[begin:end])


def _lines(start: int, lines: Sequence[str]) -> Iterator[_Piece]:
    """Yield lines with their ends. A line that is too long is split into sentences, and a long sentence into words."""
    for number, line in enumerate(lines, start):
        if len(line) < CHUNK_CHARS:
            yield _Piece(number, f"{line}\n")
            continue
        for sentence in _sentences(line):
            if len(sentence) <= CHUNK_CHARS:
                yield _Piece(number, sentence)
                continue
            for token in _TOKEN.finditer(sentence):
                size = len(token[0]) if token["whole"] else CHUNK_CHARS
                yield from (_Piece(number, token[0][at : at + size]) for at in range(0, len(token[0]), size))
        yield _Piece(number, "\n")


def _sentences(line: str) -> Iterator[str]:
    held: list[str] = []
    for token in _TOKEN.finditer(line):
        held.append(token[0])
        ends = not token["whole"] and token[0] != token[0].rstrip() and _SENTENCE_END.search(token[0])
        if ends or token[0][0] in "。！？":
            yield "".join(held)
            held = []
    yield "".join(held)
