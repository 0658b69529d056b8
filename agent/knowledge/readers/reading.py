"""Turns a file into text with title, date and positions: Markdown, plain text, code, HTML, PDF and Word.

``ReadError`` says in plain words why a file has no text. Only regular files are opened.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from html import unescape
from itertools import chain
from pathlib import Path, PurePath
from typing import Final, Literal

from html_to_markdown import ConversionOptions, convert
from html_to_markdown.exceptions import ConversionError

from agent.knowledge.types import ReadError
from verification.values.dates import moments

Form = Literal["markdown", "text"]

# What is read. Data and settings (JSON, YAML, TOML, INI …) are not: they hold secrets more often than answers.
SUFFIXES: Final[dict[str, Form]] = {
    **dict.fromkeys((".md", ".markdown", ".html", ".htm", ".docx"), "markdown"),
    **dict.fromkeys((".pdf", ".txt", ".text", ".rst", ".adoc", ".org", ".log", ".csv", ".tsv", ".tex"), "text"),
}
# Programs: text whose title is the file's name.
CODE: Final = frozenset(
    {".py", ".pyi", ".js", ".mjs", ".ts", ".jsx", ".tsx", ".go", ".java", ".kt", ".rb", ".rs", ".c", ".h", ".cc"}
    | {".cpp", ".hpp", ".cs", ".php", ".swift", ".scala", ".sh", ".sql", ".proto", ".lua", ".r", ".ex", ".exs", ".vue"}
)
SUFFIXES.update(dict.fromkeys(CODE, "text"))
MAX_BYTES: Final = 10_000_000
MAX_PDF_BYTES: Final = 50_000_000  # of a PDF or a Word document: most of it are pictures
PACKED: Final = frozenset({".pdf", ".docx"})
MAX_PAGES: Final = 2_000
_TRIES: Final = 3  # a file that is written to while it is read is read again
# What parsers of packed forms were seen to raise, or plainly can, on damaged input.
_PARSER_ERRORS: Final[tuple[type[Exception], ...]] = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError),
    *(struct.error, zipfile.BadZipFile, zlib.error),
    SyntaxError,  # lxml's own error for XML is one
)

_HTML: Final = ConversionOptions(
    extract_metadata=False,
    autolinks=False,
    skip_images=True,
    max_depth=400,
    exclude_selectors=[
        *("script", "style", "nav", "footer", "aside", "form", "template", "noscript", "svg", "iframe"),
        *("a.headerlink", "a.anchor", "a.hash-link"),  # the signs beside headings that builders of documentation add
    ],
)
_FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\n(?P<fields>(?:.*\n){0,60}?)---[ \t]*(?:\n|\Z)")
_FIELD: Final = re.compile(r"^(?P<name>[A-Za-z_-]+):[ \t]*(?P<value>.*?)[ \t]*$", re.MULTILINE)
# What a document says of its own age, in seven languages; `rest` begins with the date.
_AGES: Final = (
    r"(?:last[ _-])?(?:updated|modified|reviewed|changed)(?:[ \t]+on)?|as of|stand"
    r"|(?:version|versión|fassung) (?:of|vom|du|del?)"
    r"|(?:zuletzt )?(?:aktualisiert|geändert|überarbeitet)(?: am)?|(?:dernière )?mise? à jour(?: le)?"
    r"|dernière modification|(?:última )?(?:actualización|modificación)|actualizado(?: el)?"
    r"|(?:terakhir )?diperbarui(?: pada)?|pembaruan terakhir|(?:最終)?更新日?|最后更新|更新日期|更新时间|更新于"
)
_DATES: Final = r"(?:date|datum|fecha|tanggal|日付|日期)(?=[*_ ]{0,3}[:：|])"  # as minutes have it, in the head alone
_REST: Final = r"[*_]{0,2}[ \t]*[:：|]?[*_]{0,2}[ \t]*(?P<rest>[^\n]{4,40})"
_STATED_DATE: Final = re.compile(rf"^[\W_]{{0,4}}(?:{_AGES}){_REST}", re.IGNORECASE | re.MULTILINE)
_HEAD_DATE: Final = re.compile(
    rf"(?:^|(?<=[.;|·•–—][ \t]))[\W_]{{0,4}}(?:{_AGES}|{_DATES}){_REST}", re.IGNORECASE | re.MULTILINE
)
"""At the top several facts may share a line: "Owner: Sales. Last updated: 2024-01-10"."""
_HEAD_CHARS: Final = 600
_HEAD_LINE: Final = 240  # characters: what is longer is told of something else
_SECTION: Final = re.compile(r"^#{2,6} ", re.MULTILINE)
_HEADING: Final = re.compile(r"^#{1,2}[ \t]+(?P<text>.+?)[ \t]*#*[ \t]*$", re.MULTILINE)
_RST_TITLE: Final = re.compile(r"^(?P<text>\S[^\n]{0,200})\n(?P<line>[=\-~^*#])(?P=line){2,}[ \t]*$", re.MULTILINE)
_TITLE_WITHIN: Final = 4_000
_HTML_TITLE: Final = re.compile(r"<title[^>]*>(?P<text>[^<]{1,300})</title", re.IGNORECASE)
_HTML_CHARSET: Final = re.compile(rb"<meta[^>]{0,200}?charset=[\"']?\s*([A-Za-z0-9_-]{2,20})", re.IGNORECASE)
_TAG_MARKS: Final = re.compile(r"[*_`]+|\[([^\]]*)\]\([^)]*\)")
_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_CONTROL: Final = {n: None for n in range(32) if n not in {9, 10}} | {127: None}
_FOREIGN_SHARE: Final = 0.15  # Western text has fewer letters beyond ASCII: it is in another encoding then


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A stretch of a document: a whole file, or one page. ``line`` is where it starts in the document's text."""

    text: str
    page: int = 0
    line: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDocument:
    """A document as it was read. ``updated_at`` is an ISO 8601 date."""

    title: str
    form: Form
    parts: tuple[Part, ...]
    updated_at: str

    @property
    def text(self) -> str:
        """All of it, pages parted by an empty line."""
        return "\n\n".join(part.text for part in self.parts)


@contextmanager
def damaged(what: str, *own: type[Exception]) -> Iterator[None]:
    """Turns what a parser raises, errors of its ``own`` among it, into ``ReadError``."""
    expected = (*own, *_PARSER_ERRORS)
    try:
        yield
    except expected as error:
        raise ReadError(reason=f"is a damaged {what}") from error


def most_bytes(suffix: str) -> int:
    """How many bytes are read of a file with this suffix."""
    return MAX_PDF_BYTES if suffix.lower() in PACKED else MAX_BYTES


def check_size(path: PurePath, size: int) -> None:
    """Raises ``ReadError`` where so many bytes are more than are read."""
    limit = most_bytes(path.suffix)
    if size > limit:
        raise ReadError(reason=f"is too big ({size // 1_000_000} MB; the limit is {limit // 1_000_000} MB)")


def read_bytes(path: Path) -> tuple[bytes, float]:
    """The bytes of a regular file of bearable size, and when it was changed (seconds since 1970).

    All of one state of the file: one that changes meanwhile is read again, and refused if it does not come to rest.
    """
    try:
        for _ in range(_TRIES):
            before = path.stat()
            if not stat.S_ISREG(before.st_mode):
                raise ReadError(reason="is not a regular file")
            check_size(path, before.st_size)
            with path.open("rb") as file:
                data, after = file.read(before.st_size + 1), os.fstat(file.fileno())  # one more tells a file that grew
            if (before.st_mtime_ns, before.st_size, before.st_ino) == (after.st_mtime_ns, after.st_size, after.st_ino):
                return data, before.st_mtime
    except OSError as error:
        raise ReadError(reason=f"cannot be opened ({error.strerror or type(error).__name__})") from error
    raise ReadError(reason="is being written; it is read when it rests", temporary=True)


def digest_of(data: bytes) -> str:
    """What tells one content from another."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def parse_document(name: str, data: bytes, *, changed: float) -> ReadDocument:
    """Bytes of a file called ``name``, changed at ``changed`` (seconds since 1970), as a document."""
    suffix = Path(name).suffix.lower()
    form = SUFFIXES.get(suffix)
    if form is None:
        raise ReadError(reason=f"has a form that is not read ({suffix or 'no suffix'})")
    if not data.strip():
        raise ReadError(reason="is empty")
    fields, whole = dict[str, str](), ""
    if suffix == ".pdf":
        title, parts = _pdf(data)
    else:
        title, text = _titled_text(suffix, data)
        if form == "markdown":
            whole = text  # front matter tells a date too, under its name in any language
            fields, text = _front_matter(text)
            heading = _HEADING.search(text)
            title = fields.get("title") or (_one_line(heading["text"]) if heading else title)
        parts = (Part(text=text),) if text.strip() else ()
    if not parts:
        msg = "has no text (scanned pages need text recognition first)" if suffix == ".pdf" else "has no text"
        raise ReadError(msg)
    stated = next((fields[name] for name in ("last_updated", "updated", "date") if _is_date(fields.get(name, ""))), "")
    return ReadDocument(
        title=title or (name if suffix in CODE else _title_from(name)),
        form=form,
        parts=parts,
        updated_at=stated
        or _stated_date(whole or "\n".join(part.text for part in parts))
        or str(datetime.fromtimestamp(changed, UTC).date()),
    )


def _titled_text(suffix: str, data: bytes) -> tuple[str, str]:
    """What stands as the title where the text has no heading (or nothing), and the text."""
    if suffix == ".docx":
        from agent.knowledge.readers.docx import docx_markdown  # noqa: PLC0415 - slow to load, and few have such files

        title, text = docx_markdown(data)
        return _one_line(_clean(title)), _clean(text)
    if suffix in {".html", ".htm"}:
        page = _decode(data, html=True)
        named = _HTML_TITLE.search(page)
        return _one_line(unescape(named["text"])) if named else "", _markdown_of(page)
    text = _decode(data, html=False)
    underlined = _RST_TITLE.search(text[:_TITLE_WITHIN]) if suffix == ".rst" else None
    return _one_line(underlined["text"]) if underlined else "", text


def _markdown_of(page: str) -> str:
    try:
        return _clean(convert(page, _HTML).content or "")
    except (ConversionError, ValueError) as error:
        raise ReadError(reason="is HTML that cannot be taken apart") from error


def _pdf(data: bytes) -> tuple[str, tuple[Part, ...]]:
    """The title of the metadata (or nothing), and the text layer of each page that has one."""
    from pypdf import PdfReader  # noqa: PLC0415 - slow to load, and few have PDFs
    from pypdf.errors import PyPdfError  # noqa: PLC0415 - likewise

    with damaged("PDF", PyPdfError):
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):  # many have no password to open, only one to print
            raise ReadError(reason="is locked with a password")
        if len(reader.pages) > MAX_PAGES:
            raise ReadError(reason=f"has more than {MAX_PAGES} pages")
        title = reader.metadata.title if reader.metadata else None
        pages = [page.extract_text() for page in reader.pages]
    parts: list[Part] = []
    line = 1
    for number, raw in enumerate(pages, 1):
        text = _clean(raw).strip("\n")
        if text.strip():
            parts.append(Part(text=text, page=number, line=line))
            line += text.count("\n") + 2
    return _one_line(_clean(title or "")), tuple(parts)


def _decode(data: bytes, *, html: bool) -> str:
    """UTF-8; else what a mark or the page itself declares; else Windows Western where that is likely."""
    encoding = next((encoding for mark, encoding in _BOMS if data.startswith(mark)), "")
    if not encoding and b"\0" in data[:65_536]:
        raise ReadError(reason="is binary, whatever its name says")
    try:
        return _clean(data.decode(encoding or "utf-8"))
    except UnicodeDecodeError as error:
        declared = _HTML_CHARSET.search(data[:4_096]) if html and not encoding else None
        foreign = sum(byte > 127 for byte in data) > _FOREIGN_SHARE * len(data)  # noqa: PLR2004 - the end of ASCII
        if not encoding and not declared and foreign:
            raise ReadError(reason=f"is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    encoding = encoding or (declared[1].decode("ascii") if declared else "cp1252")
    try:
        return _clean(data.decode(encoding))
    except (UnicodeDecodeError, LookupError) as error:
        raise ReadError(reason=f"is not readable as {encoding}; save it as UTF-8") from error


def _clean(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n").translate(_CONTROL)
    return text.encode("utf-8", "replace").decode("utf-8")


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    """Its fields, and the text with empty lines in their place: line numbers stay true."""
    found = _FRONT_MATTER.match(text)
    if not found:
        return {}, text
    fields = {m["name"].lower().replace("-", "_"): m["value"].strip("\"' ") for m in _FIELD.finditer(found["fields"])}
    return fields, "\n" * found[0].count("\n") + text[found.end() :]


def _stated_date(text: str) -> str:
    """The date that a document gives for itself (ISO 8601): of a month its first day, empty where none is told."""
    for found in chain(_HEAD_DATE.finditer(text, 0, _HEAD_CHARS), _STATED_DATE.finditer(text)):
        told = moments(found["rest"].rstrip("*_ "))
        begins = told[1].start if told and told[0].weekday and told[1:] else 0  # "Wednesday, 11 November"
        read = {(m.year, m.month, m.day or 1) for m in told if m.start == begins and m.month}
        if len(read) == 1:  # "03/04/2026" may be two dates and counts as none
            year, month, day = read.pop()
            written = f"{year}-{month:02}-{day:02}"
            if year and _is_date(written):
                return written
    return _latest_in_head(text)


def _latest_in_head(text: str) -> str:
    """The latest day or month, not after today, of the short lines before the first section: "Care manual · 10/2023".

    Where a document does not label its date, this tells its age better than the day on which the file was copied.
    """
    head = _SECTION.split(text[:_HEAD_CHARS], maxsplit=1)[0]
    told = moments("\n".join(line for line in head.split("\n") if len(line) <= _HEAD_LINE))
    places = [moment.start for moment in told]  # "03/04/2026" is told twice
    sure = (moment for moment in told if moment.year and moment.month and places.count(moment.start) == 1)
    dates = (f"{moment.year}-{moment.month:02}-{moment.day or 1:02}" for moment in sure)
    today = datetime.now(UTC).date().isoformat()
    return max((written for written in dates if _is_date(written) and written <= today), default="")


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _title_from(name: str) -> str:
    words = re.sub(r"[-_\s]+", " ", Path(name).stem).strip()
    return words[:1].upper() + words[1:] or name


def _one_line(text: str) -> str:
    return " ".join(_TAG_MARKS.sub(lambda m: m[1] or "", text).split())
