"""``file_read``: lines of a text file, or the names in a folder, inside configured folders.

Every step of a path is opened without following links, so that swapping a folder for a link in between leads nowhere.
"""

import asyncio
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from threading import Event
from typing import IO, Any, Final

from agent.tools.builtin.specs import spec_of
from agent.tools.tool import ToolFailed, ToolResult
from verification.types import Source

FILE_READ: Final = "file_read"
MAX_TEXT_CHARS: Final = 14_000  # given to the model at once
MAX_READ_BYTES: Final = MAX_TEXT_CHARS * 4
MAX_LISTED: Final = 200
MAX_SCANNED_BYTES: Final = 16 << 30  # bytes skipped on the way to a line
_BLOCK: Final = 1 << 20
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking: a pipe without a writer would block the thread for ever.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileRefused(ToolFailed):
    """The file may not or cannot be read."""

    hints = ("Name a folder to see what is in it.",)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileExcerpt:
    """Lines ``first`` to ``last`` of a file (0 if they were not counted). ``cut``: there is more of it."""

    text: str
    first: int = 0
    last: int = 0
    cut: bool = False


class FileReadTool:
    """Reads below its roots, each known by its folder's name."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = tuple(root.resolve() for root in roots)
        self._names = ", ".join(root.name for root in self._roots)
        self.spec = spec_of(FILE_READ, names=self._names)

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Read. Returns one source with the exact text."""
        given_up = Event()
        try:
            title, stretch, changed = await asyncio.to_thread(self._read, arguments, given_up)
        finally:
            given_up.set()  # no caller waits for the thread any more
        note = " There is more of it: ask for other lines." if stretch.cut else ""
        return ToolResult(
            content=f"{title}: {len(stretch.text)} characters.{note}" if stretch.text else f"{title} is empty.",
            sources=(Source(id=0, title=title, text=stretch.text, origin=f"tool:{FILE_READ}", updated_at=changed),),
        )

    def _read(self, arguments: Mapping[str, Any], given_up: Event) -> tuple[str, FileExcerpt, str]:
        """Return title, text and time of the last change (ISO 8601)."""
        root, inside = self._place(str(arguments["path"]))
        opened = _open_below(root, inside)
        status = os.fstat(opened)
        changed = datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds")
        title = "/".join((root.name, *inside))
        if stat.S_ISDIR(status.st_mode):
            try:
                return title, _list_folder(opened), changed
            finally:
                os.close(opened)
        with os.fdopen(opened, "rb") as file:
            if not stat.S_ISREG(status.st_mode):
                raise FileRefused(why="That is a device, a pipe or a socket, not a file.")
            stretch = _read_excerpt(file, status.st_size, arguments, given_up)
        lines = f", lines {stretch.first} to {stretch.last}" if stretch.first else ""
        return f"{title}{lines}", stretch, changed

    def _place(self, path: str) -> tuple[Path, tuple[str, ...]]:
        """Return the root, and the names below it after following all links. Raises ``FileRefused``."""
        first, _, rest = path.removeprefix("./").partition("/")
        # Below the root that the path names, else below any root.
        candidates = [(root, root / rest) for root in self._roots if first == root.name]
        for root, candidate in candidates + [(root, root / path) for root in self._roots]:
            with suppress(OSError, ValueError, RuntimeError):  # missing, a NUL in the name, links in a circle
                inside = candidate.resolve(strict=True).relative_to(root).parts
                if any(name.startswith(".") for name in inside):
                    raise FileRefused(why="Hidden files are not read.")
                return root, inside
        raise FileRefused(why=f"There is no such file inside {self._names}.")


def _open_below(root: Path, inside: Sequence[str]) -> int:
    """Open the path without following a link and return its descriptor. Raises ``FileRefused``."""
    try:
        at = os.open(root, _DIRECTORY)
        for number, name in enumerate(inside, 1):
            try:
                below = os.open(name, _FILE if number == len(inside) else _DIRECTORY, dir_fd=at)
            finally:
                os.close(at)
            at = below
    except OSError as error:
        raise FileRefused(why=f"It cannot be opened ({error.strerror or type(error).__name__}).") from error
    return at


def _list_folder(folder: int) -> FileExcerpt:
    with os.scandir(folder) as entries:
        names = sorted(entry.name + "/" * _is_folder(entry) for entry in entries if not entry.name.startswith("."))
    # Each name as one line of real characters.
    shown = (" ".join(name.encode("utf-8", "replace").decode().split()) for name in names[:MAX_LISTED])
    return FileExcerpt(text="\n".join(shown), cut=len(names) > MAX_LISTED)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle, or to a place that may not be read
        return False


def _read_excerpt(file: IO[bytes], size: int, arguments: Mapping[str, Any], given_up: Event) -> FileExcerpt:
    start = file.read(2)
    file.seek(0)
    if start in _UTF16:  # line ends of two bytes: lines are counted in the part that is read at once
        beginning = _decode(file.read(MAX_READ_BYTES), "utf-16").encode()
        found = _read_excerpt(BytesIO(beginning), len(beginning), arguments, given_up)
        return replace(found, cut=found.cut or size > MAX_READ_BYTES)
    if "tail" in arguments:
        return _read_tail(file, size, int(arguments["tail"]))
    first, last = int(arguments.get("start_line", 1)), int(arguments.get("end_line", 1 << 62))
    if last < first:
        raise FileRefused(why="'end_line' must not be before 'start_line'.")
    _skip_to_line(file, first, given_up)
    data = file.read(MAX_READ_BYTES)
    if not data and first > 1:
        raise FileRefused(why=f"It has fewer than {first} lines.")
    lines = data.split(b"\n")
    wanted = lines[: last - first + 1]
    text = _decode_utf8(b"\n".join(wanted), at_start=first == 1)
    kept = text[:MAX_TEXT_CHARS]
    unread = len(wanted) == len(lines) and len(data) == MAX_READ_BYTES
    ended = first + kept.removesuffix("\n").count("\n")
    return FileExcerpt(text=kept, first=first, last=ended, cut=unread or kept != text)


def _skip_to_line(file: IO[bytes], line: int, given_up: Event) -> None:
    """Move to the start of a line, counted from 1, a block at a time."""
    missing = line - 1
    while missing and not given_up.is_set():
        block = file.read(_BLOCK)
        if not block:
            raise FileRefused(why=f"It has fewer than {line} lines.")
        if file.tell() > MAX_SCANNED_BYTES:
            raise FileRefused(why="That line is too far into the file; use tail.")
        ends = min(missing, block.count(b"\n"))
        missing -= ends
        if not missing:
            file.seek(-len(block.split(b"\n", ends)[-1]), os.SEEK_CUR)


def _read_tail(file: IO[bytes], size: int, lines: int) -> FileExcerpt:
    """Read the last lines from the end, as many as fit."""
    at = max(0, size - MAX_READ_BYTES)
    file.seek(at)
    data = file.read(MAX_READ_BYTES)
    if at:  # the first line is not complete
        data = data.partition(b"\n")[2] or data
    kept = data.removesuffix(b"\n").split(b"\n")
    text = _decode_utf8(b"\n".join(kept[-lines:]), at_start=not at and len(kept) <= lines)
    return FileExcerpt(text=text[-MAX_TEXT_CHARS:], cut=(len(kept) < lines and at > 0) or len(text) > MAX_TEXT_CHARS)


def _decode_utf8(data: bytes, *, at_start: bool) -> str:
    if b"\0" in data:
        raise FileRefused(why="That is a binary file, despite its name.")
    encoding = "utf-8-sig" if at_start else "utf-8"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        if error.end >= len(data) - 3 and error.reason == "unexpected end of data":
            return data[: error.start].decode(encoding)  # cut inside a character
    return _decode(data, "cp1252")


def _decode(data: bytes, encoding: str) -> str:
    """Decode bytes that only suggest this encoding. Raises ``FileRefused`` if the result is not text."""
    try:
        text = data[: len(data) // 2 * 2].decode(encoding) if encoding == "utf-16" else data.decode(encoding)
    except UnicodeDecodeError:
        text = "\0"
    odd = sum(1 for character in text if character < " " and character not in "\n\r\t\f\x1b")
    if odd > len(text) // 100:
        raise FileRefused(why="That is not text in a known encoding (UTF-8, UTF-16, Windows-1252).")
    return text.replace("\r\n", "\n")
