"""Values and helpers that all readers share: text and parts, limits, clean text, and the packages of Office files."""

import posixpath
import re
import shutil
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from io import BytesIO
from typing import Final, Literal, TypeVar
from xml.etree import ElementTree as ET

from markdown_it import MarkdownIt

from agent.knowledge.types import ReadError

Form = Literal["markdown", "text", "asciidoc", "org", "rst"]
Piece = TypeVar("Piece")

MAX_CHARS: Final = 2_000_000  # maximum length of a document's text, some 1,000 pages
IN_PART: Final = "is read in part only: it is too long"
MAX_PAGES: Final = 2_000
MAX_ENTRIES: Final = 5_000  # of a package
MAX_UNPACKED: Final = 200_000_000
MAX_XML: Final = 60_000_000  # bytes of one XML part
MAX_ELEMENTS: Final = 1_000_000  # of one XML part: each takes some 200 bytes of memory
_OLE: Final = b"\xd0\xcf\x11\xe0"  # container of encrypted packages and of formats before 2007
_ENCRYPTED_ENTRY: Final = 0x1
_STRICT: Final = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")  # ISO 29500 Strict has separate namespaces
_TRANSITIONAL: Final = rb"http://schemas.openxmlformats.org/\1/2006/"
_XML: Final = (".xml", ".rels")
_SHEETS: Final = re.compile(r"xl/worksheets/[^/]+\.xml")  # reading a long one takes little memory
_SHEET_HEAD: Final = 10_000  # bytes that contain the namespaces and begin the data
_SHEET_DATA: Final = re.compile(rb"<(\w+:)?sheetData\b")
# Errors that parsers of binary formats raise on damaged input, as we observed or as documented.
_PARSER_ERRORS: Final[tuple[type[Exception], ...]] = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError),
    *(struct.error, zipfile.BadZipFile, zlib.error),
    SyntaxError,  # lxml's XML error is a subclass
)
_NO_MEMORY: Final = 2  # libxml2's code, in lxml's errors
# Control characters, and signs that show nothing inside a word: the soft hyphen, the word joiner, the byte order mark.
_CONTROL: Final = dict.fromkeys([*range(9), *range(11, 32), 127, 0xAD, 0x2060, 0xFEFF])
_SUPERSCRIPTS: Final = dict(zip("0123456789+-−=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿ", strict=True))
_SUBSCRIPTS: Final = dict(zip("0123456789+-−=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎", strict=True))
_NOTE_MARK: Final = re.compile(r"(?<=[^\W\d_]{4})(?=[⁰¹²³⁴-⁹])")  # and not in km², H₂O
_INLINE_MARKUP: Final = re.compile(  # an escaped sign, the signs of emphasis and code, a link
    r"\\([!-/:-@\[-`{-~])|[*`]+|(?<![^\W_])_+|_+(?![^\W_])|\[([^\]]*)\]\([^)]*\)"
)
BLOCKS: Final = MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])
_PADDING: Final = re.compile(r"(?<=\S)[ \t]{3,}(?=\|)|(?<=(?<!\\)\|)[ \t]{3,}")  # around the borders of cells
HEADING_ATTRIBUTES: Final = re.compile(r"\s*\{:?[ ]*(?:#(?P<id>[\w-]+)|\.)[^{}\n]*\}$")  # ``## Leave {#time-off}``

_ROMAN: Final = dict(zip(
    ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
    (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), strict=True,
))  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPart:
    """Part of a document: a whole file or one page. ``line`` is its first line in the document's text."""

    text: str
    page: int = 0
    line: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDocument:
    """A document's text. ``updated_at`` is an ISO 8601 date or empty. ``cut`` says what was not read."""

    title: str
    form: Form
    parts: tuple[DocumentPart, ...]
    updated_at: str
    cut: str = ""

    @property
    def text(self) -> str:
        """The whole text, with an empty line between pages."""
        return "\n\n".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Result of a reader. ``title`` comes from outside the file's text. ``fields`` are front matter."""

    parts: tuple[DocumentPart, ...]
    title: str = ""
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class ReadLimits:
    """Limits on reading one file; ``ends`` is in seconds of `time.monotonic`. ``cut`` names the omitted part."""

    ends: float = float("inf")
    max_chars: int = MAX_CHARS
    cut: str = ""
    chars: int = 0

    def take(self, pieces: Iterable[Piece], unit: str, length: Callable[[Piece], int]) -> Iterator[Piece]:
        """Yield pieces within the limits of time and characters. Note where it first stopped ("page 12")."""
        for number, piece in enumerate(pieces, 1):
            self.chars += length(piece)
            if self.chars > self.max_chars or time.monotonic() > self.ends:
                why = "it is too long" if self.chars > self.max_chars else "it takes too much time"
                self.cut = self.cut or f"is read up to {unit} {number - 1} only: {why}"
                return
            yield piece


@contextmanager
def refusing_damage(what: str, *own: type[Exception]) -> Iterator[None]:
    """Turn the errors that a parser raises on damaged input, including its ``own``, into ``ReadError``."""
    expected = (*own, *_PARSER_ERRORS)
    try:
        yield
    except expected as error:
        if getattr(error, "code", None) == _NO_MEMORY:
            raise MemoryError from error
        raise ReadError(reason=f"is a damaged {what}") from error


def join_parts(texts: Iterable[str]) -> tuple[DocumentPart, ...]:
    """Return pages (counted from 1) as parts, without the empty ones."""
    parts: list[DocumentPart] = []
    line = 1
    for number, text in enumerate(texts, 1):
        if stripped := text.strip("\n"):
            parts.append(DocumentPart(text=stripped, page=number, line=line))
            line += stripped.count("\n") + 2
    return tuple(part for part in parts if part.text.strip())


def whole(text: str) -> tuple[DocumentPart, ...]:
    """Return a text as the only part, or no part if it is blank."""
    return (DocumentPart(text=text),) if text.strip() else ()


def front_matter(title: str, updated: str = "") -> str:
    """Return front matter from which a title is read as it is."""
    quoted = " ".join(title.split()).replace('"', '\\"')
    date = f"updated: {updated}\n" if updated else ""
    return f'---\ntitle: "{quoted}"\n{date}---\n\n'


def clean(text: str) -> str:
    """Return text with plain line endings, without control characters and lone surrogates."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n").translate(_CONTROL)
    return text.encode("utf-8", "replace").decode("utf-8")


def one_line(text: str) -> str:
    """Return text on one line as a page shows it, without inline markup and HTML entities."""
    return " ".join(unescape(_INLINE_MARKUP.sub(lambda m: m[1] or m[2] or "", text)).split())


def table_row(cells: Iterable[str]) -> str:
    """Return cells as a row of a Markdown table."""
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |"


def without_padding(text: str) -> str:
    """Return Markdown without the spaces and dashes that only align the columns of its tables. Its lines stay."""
    if not _PADDING.search(text) and "| ----" not in text:
        return text
    lines = text.split("\n")
    for table in BLOCKS.parse(text):
        if table.type == "table_open" and table.map:
            begin, end = table.map
            lines[begin:end] = [_PADDING.sub(" ", line) for line in lines[begin:end]]
            lines[begin + 1] = re.sub("-{4,}", "---", lines[begin + 1])
    return "\n".join(lines)


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a Markdown table of equal width, the first one as its header, or the first two."""
    width = max(map(len, rows), default=0)
    if header := join_header_rows(*rows[:2]) if len(rows) > 1 else []:
        rows = [header, *rows[2:]]
    lines = [table_row([*row, *[""] * (width - len(row))]) for row in rows]
    return "\n".join([*lines[:1], f"|{' --- |' * width}", *lines[1:]]) if rows else ""


def join_header_rows(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Return the header of a table whose first row has cells over several columns (``2025 |  | 2026 | ``).

    Empty if the second row may be data: it is a header if each group has the same labels, or if it has words and its
    other cells are empty or repeat those above.
    """
    width = max(len(first), len(second))
    above, below = ([cell.strip() for cell in (*row, *[""] * (width - len(row)))] for row in (first, second))
    groups: list[list[int]] = []  # columns under the same cell
    for at, cell in enumerate(above):
        if cell or not groups:
            groups.append([])
        groups[-1].append(at)
    wide = [group for group in groups if len(group) > 1 and above[group[0]]]
    labels = [[below[at] for at in group] for group in wide]
    if not wide or not all(map(all, labels)):
        return []
    others = [at for group in groups if group not in wide for at in group]
    are_same = len(labels) > 1 and all(each == labels[0] for each in labels) and len({*labels[0]}) > 1
    are_words = all(any(map(str.isalpha, cell)) for cell in below if cell) and (len(others) > 0)
    if not (are_same or are_words) or any(above[at] and below[at] not in {"", above[at]} for at in others):
        return []
    joined = [above[at] or below[at] for at in range(width)]
    for group in wide:
        for at in group:
            joined[at] = f"{above[group[0]]} {below[at]}"
    return joined


def part_note_marks(text: str) -> str:
    """Put a space between a word and a raised number after it, so that a search finds the word."""
    return _NOTE_MARK.sub(" ", text)


def raise_or_lower(text: str, way: str) -> str:
    """Return superscript (``way`` ``sup``) or subscript (``sub``) text in a form that does not merge with a number."""
    signs = _SUPERSCRIPTS if way == "sup" else _SUBSCRIPTS
    bare = text.strip().strip("[]")
    if bare and all(character in signs for character in bare):
        return "".join(signs[character] for character in bare)
    if len(bare) > 1 and bare.isalpha():  # as in 1st
        return bare
    mark = "^" if way == "sup" else "_"
    return f"{mark}({bare})" if bare else ""


def numeral(form: str, count: int) -> str:
    """Return a list's number as it is printed. ``form`` is ``upperLetter``, ``lowerRoman`` and so on."""
    text = str(count)
    if form.endswith("Letter"):
        text = chr(ord("a") + (count - 1) % 26) * ((count - 1) // 26 + 1)
    elif form.endswith("Roman"):
        text = ""
        for sign, value in _ROMAN.items():
            text += sign * (count // value)
            count %= value
    return text.upper() if form.startswith("upper") else text


def open_package(data: bytes) -> BytesIO:
    """Return the package without pictures and dangling links, in transitional namespaces. Raises ``ReadError``."""
    if data.startswith(_OLE):
        raise ReadError(reason="is locked with a password, or in a format older than 2007")
    with zipfile.ZipFile(BytesIO(data)) as package:  # an entry never yields more bytes than it declares
        entries = {entry.filename: entry for entry in package.infolist()}
        _check_size([*entries.values()])
        result = BytesIO()
        with zipfile.ZipFile(result, "w") as plain:
            for name in filter(lambda name: name.endswith(_XML), entries):
                if _SHEETS.fullmatch(name):
                    _copy_sheet(package, plain, name)
                    continue
                xml = package.read(name)
                if xml.count(b"<", 0, len(xml)) > 2 * MAX_ELEMENTS:  # a start and an end
                    raise ReadError(reason=f"has more than {MAX_ELEMENTS:,} elements in one part", trouble="big")
                xml = _STRICT.sub(_TRANSITIONAL, xml)
                plain.writestr(name, _existing_links(xml, name, entries) if name.endswith(".rels") else xml)
    result.seek(0)
    return result


def _copy_sheet(package: zipfile.ZipFile, plain: zipfile.ZipFile, name: str) -> None:
    copy = zipfile.ZipInfo(name)
    copy.compress_type = zipfile.ZIP_DEFLATED
    with package.open(name) as source, plain.open(copy, "w") as target:
        head = _STRICT.sub(_TRANSITIONAL, source.read(_SHEET_HEAD))
        # Without a size, openpyxl would read the whole sheet to find it.
        target.write(_SHEET_DATA.sub(rb'<\1dimension ref="A1"/>\g<0>', head, count=1))
        shutil.copyfileobj(source, target)


def _check_size(entries: list[zipfile.ZipInfo]) -> None:
    if any(entry.flag_bits & _ENCRYPTED_ENTRY for entry in entries):
        raise ReadError(reason="is locked with a password")
    unpacked = sum(entry.file_size for entry in entries)
    parts = (entry for entry in entries if entry.filename.endswith(_XML) and not _SHEETS.fullmatch(entry.filename))
    largest = max((part.file_size for part in parts), default=0)
    if len(entries) > MAX_ENTRIES or unpacked > MAX_UNPACKED or largest > MAX_XML:
        msg = f"would unpack to {unpacked // 1_000_000} MB in {len(entries)} files, which is more than is read"
        raise ReadError(msg, trouble="big")


def _existing_links(xml: bytes, name: str, entries: dict[str, zipfile.ZipInfo]) -> bytes:
    """Return the relationships whose targets are XML parts of the package or outside of it."""
    folder = posixpath.dirname(posixpath.dirname(name))
    if b"<!DOCTYPE" in xml.replace(b"\0", b""):  # in text of two-byte characters half of the bytes are zero
        raise ReadError(reason="is a damaged package: its links declare entities")
    root = ET.fromstring(xml)  # noqa: S314 - it has no entities
    for link in list(root):
        target = posixpath.normpath(posixpath.join("/", folder, link.get("Target") or "")).lstrip("/")
        if link.get("TargetMode") != "External" and (target not in entries or not target.endswith(_XML)):
            root.remove(link)
    return bytes(ET.tostring(root))
