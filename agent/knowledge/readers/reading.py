"""The table of document formats, and the conversion of a file to text with a title and date.

A new format needs a row and a reader. ``ReadError`` says in plain words why a file has no text.
"""

import hashlib
import os
import re
import stat
from calendar import day_abbr
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate
from importlib import import_module
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from agent.knowledge.readers.document import (
    HEADING_ATTRIBUTES,
    IN_PART,
    Content,
    Form,
    ReadDocument,
    ReadLimits,
    one_line,
    without_padding,
)
from agent.knowledge.readers.text import strip_template_code
from agent.knowledge.types import ReadError
from verification.values.dates import moments

MAX_BYTES: Final = 10_000_000
MAX_PACKED_BYTES: Final = 50_000_000  # a PDF or an Office document may be larger, because most of it is pictures
MAX_TITLE_CHARS: Final = 300
_READ_TRIES: Final = 3  # a file that changes while it is read is read again
_OFFICE: Final = "application/vnd.openxmlformats-officedocument."


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A document format. ``reader`` is ``module:function`` below this package, loaded for the first such file.

    ``types`` are its media types. ``packed`` formats are binary. ``name_is_title`` is set for programs. ``advice`` says
    what to do about a format that is not read.
    """

    name: str
    suffixes: tuple[str, ...]
    reader: str = "text:read_text"
    form: Form = "markdown"
    types: tuple[str, ...] = ()
    packed: bool = False
    name_is_title: bool = False
    advice: str = ""

    @property
    def max_bytes(self) -> int:
        """Maximum size of a file in bytes."""
        return MAX_PACKED_BYTES if self.packed else MAX_BYTES

    @property
    def keeps_lines(self) -> bool:
        """True if the lines of the text are those of the file."""
        return self.reader.startswith(("text:", "markup:", "markdown:read_markdown"))

    def read(self, data: bytes, limits: ReadLimits) -> Content:
        """Return the text of a file's bytes. Raises ``ReadError``."""
        module, _, function = self.reader.partition(":")
        content: Content = getattr(import_module(f"agent.knowledge.readers.{module}"), function)(data, limits)
        return content


# Data and settings (JSON, YAML, TOML, INI …) are not read: they contain secrets more often than answers.
FORMATS: Final = (
    Format(name="Markdown", suffixes=(".md", ".markdown", ".mdx"), reader="markdown:read_markdown",
           types=("text/markdown", "text/x-markdown")),
    Format(name="HTML", suffixes=(".html", ".htm", ".xhtml"), reader="html:read_html",
           types=("text/html", "application/xhtml+xml")),
    Format(name="Word", suffixes=(".docx",), reader="docx:read_docx", packed=True,
           types=(f"{_OFFICE}wordprocessingml.document",)),
    Format(name="PowerPoint", suffixes=(".pptx",), reader="pptx:read_pptx", packed=True,
           types=(f"{_OFFICE}presentationml.presentation",)),
    Format(name="Excel", suffixes=(".xlsx", ".xlsm"), reader="spreadsheet:read_xlsx", packed=True,
           types=(f"{_OFFICE}spreadsheetml.sheet",)),
    Format(name="CSV", suffixes=(".csv", ".tsv"), reader="spreadsheet:read_csv", types=("text/csv",)),
    Format(name="Jupyter notebook", suffixes=(".ipynb",), reader="markdown:read_notebook"),
    Format(name="PDF", suffixes=(".pdf",), reader="pdf:read_pdf", form="text", packed=True, types=("application/pdf",)),
    Format(name="reStructuredText", suffixes=(".rst",), reader="markup:read_rst", form="rst"),
    Format(name="AsciiDoc", suffixes=(".adoc", ".asciidoc"), reader="markup:read_asciidoc", form="asciidoc"),
    Format(name="Org", suffixes=(".org",), reader="markup:read_org", form="org"),
    Format(name="subtitles", suffixes=(".vtt", ".srt"), reader="text:read_transcript", form="text"),
    Format(name="plain text", suffixes=(".txt", ".text", ".log", ".tex"), form="text",
           types=("text/plain",)),
    Format(name="program", form="text", name_is_title=True, suffixes=(
        ".py", ".pyi", ".js", ".mjs", ".ts", ".jsx", ".tsx", ".go", ".java", ".kt", ".rb", ".rs", ".c", ".h", ".cc",
        ".cpp", ".hpp", ".cs", ".php", ".swift", ".scala", ".sh", ".sql", ".proto", ".lua", ".r", ".ex", ".exs", ".vue",
    )),
    Format(name="not read", suffixes=(".odt", ".ods", ".odp"), advice="save it as .docx, .xlsx, .pptx or PDF"),
    Format(name="not read", suffixes=(".doc", ".docm", ".dot", ".dotx", ".dotm", ".rtf", ".pages"),
           advice="save it as .docx or PDF"),
    Format(name="not read", suffixes=(".ppt", ".pptm", ".pps", ".ppsx", ".potx", ".key"),
           advice="save it as .pptx or PDF"),
    Format(name="not read", suffixes=(".xls", ".xlsb", ".xlt", ".xltx", ".numbers"), advice="save it as .xlsx or .csv"),
    Format(name="not read", suffixes=(".epub", ".mobi"), advice="convert it to HTML or PDF"),
    Format(name="not read", suffixes=(".eml", ".msg", ".one"), advice="save it as text or PDF"),
    Format(name="not read", suffixes=(".zip", ".7z", ".rar", ".gz", ".tgz", ".tar"), advice="unpack it"),
)  # fmt: skip
_BY_SUFFIX: Final = {suffix: each for each in FORMATS for suffix in each.suffixes}
FORMATS_BY_TYPE: Final = {kind: each for each in FORMATS for kind in each.types}
_TEMPLATES: Final = (".erb", ".j2", ".jinja", ".jinja2", ".njk", ".liquid", ".tmpl", ".tpl", ".hbs", ".ejs", ".in")


def suffix_of(name: str) -> str:
    """Return the suffix that determines a file's format, in lower case: ``.html`` for ``page.html.erb``."""
    *_, before, last = ("", "", *Path(name.lower()).suffixes)
    return before if last in _TEMPLATES and before in _BY_SUFFIX else last


def format_of(name: str) -> Format | None:
    """Return the format of a file name; None if it is not read."""
    found = _BY_SUFFIX.get(suffix_of(name))
    return None if found is None or found.advice else found


def advice_for(suffix: str) -> str:
    """Return the advice for files of a format that is not read, or an empty text."""
    return _BY_SUFFIX[suffix].advice if suffix in _BY_SUFFIX else ""


# Labels of a document's age in seven languages.
_AGES: Final = (
    r"(?:last[ _-]?)?(?:updated|modified|reviewed|changed|revised)(?:[ _-]?(?:on|at))?|lastmod|date[ _-]?modified"
    r"|update[ _-]date|as of|stand|(?:version|versión|fassung) (?:of|vom|du|del?)"
    r"|(?:zuletzt )?(?:aktualisiert|geändert|überarbeitet)(?: am)?|(?:dernière )?mise? à jour(?: le)?"
    r"|dernière modification|(?:última )?(?:actualización|modificación)|actualizado(?: el)?"
    r"|(?:terakhir )?diperbarui(?: pada)?|pembaruan terakhir|(?:最終)?更新日?|最后更新|更新日期|更新时间|更新于"
)
_CREATED: Final = r"date|datum|fecha|tanggal|日付|日期|(?:created|published)(?:[ _-]?(?:on|at))?|(?:pub|rev)[ _-]?date"
_LABELS: Final = (re.compile(_AGES, re.IGNORECASE), re.compile(_CREATED, re.IGNORECASE))
# A label is at the start of a line or after another fact: "Owner: Sales. Last updated: 2024-01-10".
_HEAD_DATE: Final = re.compile(
    rf"(?:^|(?<=[.;·•–—][ \t]))[*_>#\- \t(:+]{{0,6}}(?:(?:{_AGES})|(?:{_CREATED})(?=[*_ ]{{0,3}}[:：]))"
    r"[*_]{0,2}[ \t]*[:：]?[*_]{0,2}[ \t]*(?P<rest>[^\n]{4,40})",
    re.IGNORECASE | re.MULTILINE,
)
_HEAD_CHARS: Final = 600
_WEEKDAY: Final = re.compile(r"\A[^\W\d]{2,4}\.?,[ \t]+(?=\d)")  # "Mo., 6. Mai"
_FIRST_DAY: Final = "1900-01-01"
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d")
_NOT_PROSE: Final = re.compile(
    r"^(?:[ \t]*\|.*|(?: {4}|\t).*)$|^(?P<fence>```|~~~).*?(?:^(?P=fence)|\Z)", re.MULTILINE | re.DOTALL
)


def date_of(fields: Mapping[str, str], text: str, *, committed: float, changed: float) -> str:
    """Return a document's ISO 8601 date or an empty string. The times are seconds since 1970, 0 if unknown."""
    named = [(name.replace("_", " "), value) for name, value in fields.items()]
    values = [value for label in _LABELS for name, value in named if label.fullmatch(name)]
    labelled = [found["rest"] for found in _HEAD_DATE.finditer(_NOT_PROSE.sub("", text[:_HEAD_CHARS]))]
    by_commit, by_change = (
        datetime.fromtimestamp(seconds, UTC).date().isoformat() if seconds else "" for seconds in (committed, changed)
    )
    dates = (*(_iso(value) or _read_date(value) for value in values), by_commit, *map(_read_date, labelled), by_change)
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()  # today somewhere
    return next((day for day in dates if _FIRST_DAY <= day <= tomorrow), "")


def parse_timestamp(text: str) -> float:
    """Return an ISO 8601 date or time in seconds since 1970; 0 if it is invalid."""
    try:
        moment = datetime.fromisoformat(text)
        return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return 0.0


def _read_date(text: str) -> str:
    """Return the date at the start of a text; a month counts as its first day. "03/04/2026" is ambiguous."""
    if text[:3] in day_abbr and (parsed := parsedate(text)):  # as in mail, and as Git writes it
        return _iso("{:04}-{:02}-{:02}".format(*parsed))
    found = moments(_WEEKDAY.sub("", text.rstrip("*_) ")))
    begins = found[1].start if found and found[0].weekday and found[1:] else 0  # "Wednesday, 11 November"
    days = {(m.year, m.month, m.day or 1) for m in found if m.start == begins and m.month}
    if len(days) != 1:
        return ""
    year, month, day = days.pop()
    return _iso(f"{year or 0:04}-{month:02}-{day:02}")


def _iso(text: str) -> str:
    """Return the day of an ISO 8601 date or time; empty without one."""
    found = _ISO.match(text)
    try:
        return date.fromisoformat(found[0]).isoformat() if found else ""
    except ValueError:
        return ""


_EXPORT_ID: Final = re.compile(r"[ _-][0-9a-f]{32}$")  # after the title in the names of Notion's exports
# A level-one heading, or a block of code, in which a comment looks like a heading.
_HEADING: Final = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[\s\S]*?(?:^[ \t]*(?P=fence)|\Z)"
    r"|^ {0,3}#[ \t]+(?P<text>[^\n]+)$|^(?P<under>[^\s|>#-][^\n]{0,200})\n=+[ \t]*$",
    re.MULTILINE,
)
# Titles that programs put into the properties automatically.
_AUTOMATIC_TITLE: Final = re.compile(
    r"(?:untitled|document|presentation|powerpoint presentation|book|slide|title|workbook)[ -]?\d*"
    r"|microsoft \w+ - .*|.*\.(?:docx?|pptx?|xlsx?|pdf|rtf|odt|indd|tex|dvi|qxd|md|html?|txt)|\W*",
    re.IGNORECASE,
)


def check_size(name: str, size: int) -> None:
    """Raise ``ReadError`` if a file of this name is too big to be read."""
    known = format_of(name)
    if known and size > known.max_bytes:
        reason = f"is too big ({-(-size // 1_000_000)} MB; the limit is {known.max_bytes // 1_000_000} MB)"
        raise ReadError(reason, trouble="big")


def read_bytes(path: Path) -> tuple[bytes, float]:
    """Return the bytes of a regular file and the time of its last change. Refuse one that keeps changing, for now."""
    try:
        for _ in range(_READ_TRIES):
            # Opened before it is looked at, and non-blocking: it may become a pipe, which has no end, at any moment.
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                before = os.fstat(file.fileno())
                if not stat.S_ISREG(before.st_mode):
                    raise ReadError(reason="is not a regular file")
                check_size(path.name, before.st_size)
                data, after = file.read(before.st_size + 1), os.fstat(file.fileno())  # one more byte if it grew
            if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, len(data)):
                return data, before.st_mtime
    except OSError as error:
        raise ReadError(reason=f"cannot be opened ({error.strerror or type(error).__name__})") from error
    raise ReadError(reason="is being written; the next sync reads it", temporary=True)


def digest_of(data: bytes) -> str:
    """Return a digest of the content."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def parse_document(
    name: str, data: bytes, *, changed: float = 0.0, committed: float = 0.0, limits: ReadLimits | None = None
) -> ReadDocument:
    """Parse the bytes of a file. ``changed`` and ``committed`` are seconds since 1970, 0 if unknown."""
    known = format_of(name)
    if known is None:
        advice = f": {advised}" if (advised := advice_for(suffix_of(name))) else ""
        raise ReadError(reason=f"has a format that is not read ({suffix_of(name) or 'no suffix'}){advice}")
    check_size(name, len(data))
    if not data.strip():
        raise ReadError(reason="is empty")
    limits, stem = limits or ReadLimits(), Path(name).stem
    if not name.lower().endswith(suffix_of(name)):  # a template such as ``page.html.erb``
        data = strip_template_code(data)
    while (written := format_of(stem)) and not written.name_is_title:  # ``page.html.md`` becomes HTML
        stem = Path(stem).stem
    content = known.read(data, limits)
    if not content.parts:
        raise ReadError(reason=limits.cut or "has no text")
    parts, text = content.parts, content.parts[0].text
    if len(text) > limits.max_chars:
        parts, limits.cut = (replace(parts[0], text=text[: limits.max_chars]),), IN_PART
    if known.form == "markdown":
        parts = tuple(replace(part, text=without_padding(part.text)) for part in parts)
    headings = _HEADING.finditer(text) if known.form == "markdown" else ()
    shown = (HEADING_ATTRIBUTES.sub("", found["text"] or "").rstrip(" \t#") or found["under"] for found in headings)
    heading = next(filter(None, shown), "")
    own = "" if _AUTOMATIC_TITLE.fullmatch(content.title) else content.title
    words = re.sub(r"[-_\s]+", " ", _EXPORT_ID.sub("", unquote(stem))).strip()
    from_name = (not known.name_is_title and words[:1].upper() + words[1:]) or name
    return ReadDocument(
        title=one_line(content.fields.get("title") or heading or own)[:MAX_TITLE_CHARS] or from_name,
        form=known.form,
        parts=parts,
        updated_at=date_of(content.fields, text, committed=committed, changed=changed),
        cut=limits.cut,
    )
