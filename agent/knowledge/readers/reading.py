"""Turns a file into text with title, date and positions. ``ReadError`` says in plain words why a file has no text."""

import hashlib
import os
import re
import stat
from dataclasses import replace
from pathlib import Path
from typing import Final

from agent.knowledge.readers.dates import date_of
from agent.knowledge.readers.document import ReadDocument, ReadLimits, one_line
from agent.knowledge.readers.formats import format_of, is_template, reason_not_read
from agent.knowledge.readers.text import strip_template_code
from agent.knowledge.types import ReadError

MAX_TITLE_CHARS: Final = 300
_READ_TRIES: Final = 3  # a file that changes while it is read is read again
# A level-one heading, or a block of code, in which a comment looks like one.
_HEADING: Final = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,})[\s\S]*?(?:^[ \t]*(?P=fence)|\Z)"
    r"|^ {0,3}#[ \t]+(?P<text>[^\n]+?)[ \t]*#*[ \t]*$|^(?P<under>[^\s|>#-][^\n]{0,200})\n=+[ \t]*$",
    re.MULTILINE,
)
# Titles that programs write into properties by themselves.
_AUTOMATIC_TITLE: Final = re.compile(
    r"(?:untitled|document|presentation|powerpoint presentation|book|slide|title|workbook)[ -]?\d*"
    r"|microsoft \w+ - .*|.*\.(?:docx?|pptx?|xlsx?|pdf|rtf|odt|indd|tex|dvi|qxd|md|html?|txt)|\W*",
    re.IGNORECASE,
)


def check_size(name: str, size: int) -> None:
    """Raise ``ReadError`` if a file of this name is too big to be read."""
    known = format_of(name)
    if known and size > known.max_bytes:
        raise ReadError(reason=f"is too big ({size // 1_000_000} MB; the limit is {known.max_bytes // 1_000_000} MB)")


def read_bytes(path: Path) -> tuple[bytes, float]:
    """Return the bytes of a regular file and the time of its last change (seconds since 1970).

    A file that changes meanwhile is read again; if it keeps changing, it is refused for now.
    """
    try:
        for _ in range(_READ_TRIES):
            before = path.stat()
            if not stat.S_ISREG(before.st_mode):
                raise ReadError(reason="is not a regular file")
            check_size(path.name, before.st_size)
            with path.open("rb") as file:
                data, after = file.read(before.st_size + 1), os.fstat(file.fileno())  # one more byte if it grew
            if (before.st_mtime_ns, before.st_size, before.st_ino) == (after.st_mtime_ns, after.st_size, after.st_ino):
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
        raise ReadError(reason=reason_not_read(name))
    check_size(name, len(data))
    if not data.strip():
        raise ReadError(reason="is empty")
    limits = limits or ReadLimits()
    content = known.load_reader()(strip_template_code(data) if is_template(name) else data, limits)
    if not content.parts:
        raise ReadError(reason=limits.cut or "has no text")
    parts, text = content.parts, content.parts[0].text
    if len(text) > limits.max_chars:
        parts, limits.cut = (replace(parts[0], text=text[: limits.max_chars]),), "is read in part only: it is too long"
    heading = _first_heading(text) if known.form == "markdown" else ""
    own = "" if _AUTOMATIC_TITLE.fullmatch(content.title) else content.title
    title = one_line(content.fields.get("title") or heading or own)[:MAX_TITLE_CHARS]
    return ReadDocument(
        title=title or (name if known.name_is_title else _title_from(name)),
        form=known.form,
        parts=parts,
        updated_at=date_of(content.fields, text, committed=committed, changed=changed),
        cut=limits.cut,
    )


def _first_heading(text: str) -> str:
    headings = (found["text"] or found["under"] for found in _HEADING.finditer(text))
    return next(filter(None, headings), "")


def _title_from(name: str) -> str:
    stem = name[: -len("".join(Path(name).suffixes)) or None] if format_of(name) else Path(name).stem
    words = re.sub(r"[-_\s]+", " ", stem).strip()
    return words[:1].upper() + words[1:] or name
