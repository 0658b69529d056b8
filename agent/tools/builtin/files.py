"""``file_read``: lines of a text file, or the names in a folder, inside configured folders.

Every step of a path is opened without following links, so that swapping a folder for a link in between leads nowhere.
"""

from __future__ import annotations

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
TEXT_MOST: Final = 14_000  # characters given to the model at once
BYTES_MOST: Final = TEXT_MOST * 4
LISTED_MOST: Final = 200
SCANNED_MOST: Final = 16 << 30  # bytes passed over on the way to a line, at most
_BLOCK: Final = 1 << 20
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without waiting: a pipe that nobody writes to would hold the thread for ever.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileRefused(ToolFailed):
    """The file is not read."""

    hints = ("Name a folder to see what is in it.",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What was read: lines ``first`` to ``last`` (0 where they were not counted); ``cut`` if there is more of it."""

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
        """Read; one source with the exact text."""
        given_up = Event()
        try:
            title, stretch, changed = await asyncio.to_thread(self._read, arguments, given_up)
        finally:
            given_up.set()  # nobody waits for the thread any more
        note = " There is more of it: ask for other lines." if stretch.cut else ""
        return ToolResult(
            content=f"{title}: {len(stretch.text)} characters.{note}" if stretch.text else f"{title} is empty.",
            sources=(Source(id=0, title=title, text=stretch.text, origin=f"tool:{FILE_READ}", updated_at=changed),),
        )

    def _read(self, arguments: Mapping[str, Any], given_up: Event) -> tuple[str, Stretch, str]:
        """Title, text, and when it changed (ISO 8601)."""
        root, inside = self._place(str(arguments["path"]))
        opened = _opened(root, inside)
        found = os.fstat(opened)
        changed = datetime.fromtimestamp(found.st_mtime, UTC).isoformat(timespec="seconds")
        title = "/".join((root.name, *inside))
        if stat.S_ISDIR(found.st_mode):
            try:
                return title, _listing(opened), changed
            finally:
                os.close(opened)
        with os.fdopen(opened, "rb") as file:
            if not stat.S_ISREG(found.st_mode):
                raise FileRefused(why="That is a device, a pipe or a socket, no file.")
            stretch = _stretch(file, found.st_size, arguments, given_up)
        lines = f", lines {stretch.first} to {stretch.last}" if stretch.first else ""
        return f"{title}{lines}", stretch, changed

    def _place(self, path: str) -> tuple[Path, tuple[str, ...]]:
        """The root, and the names below it once all links are followed. Raises ``FileRefused``."""
        first, _, rest = path.removeprefix("./").partition("/")
        # Below the root that the path names, below any root, or as it stands.
        candidates = [(root, root / rest) for root in self._roots if first == root.name]
        for root, candidate in candidates + [(root, root / path) for root in self._roots]:
            with suppress(OSError, ValueError, RuntimeError):  # not there, a NUL in the name, links in a circle
                inside = candidate.resolve(strict=True).relative_to(root).parts
                if any(name.startswith(".") for name in inside):
                    raise FileRefused(why="Hidden files are not read.")
                return root, inside
        raise FileRefused(why=f"There is no such file inside {self._names}.")


def _opened(root: Path, inside: Sequence[str]) -> int:
    """A descriptor of what lies there now, reached without following a link. Raises ``FileRefused``."""
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


def _listing(folder: int) -> Stretch:
    with os.scandir(folder) as entries:
        names = sorted(entry.name + "/" * entry.is_dir() for entry in entries if not entry.name.startswith("."))
    # Each name as one line of real characters.
    shown = (" ".join(name.encode("utf-8", "replace").decode().split()) for name in names[:LISTED_MOST])
    return Stretch(text="\n".join(shown), cut=len(names) > LISTED_MOST)


def _stretch(file: IO[bytes], size: int, arguments: Mapping[str, Any], given_up: Event) -> Stretch:
    start = file.read(2)
    file.seek(0)
    if start in _UTF16:  # its line ends are two bytes long: lines are counted in what of it is given at once
        beginning = _decoded(file.read(BYTES_MOST), "utf-16").encode()
        found = _stretch(BytesIO(beginning), len(beginning), arguments, given_up)
        return replace(found, cut=found.cut or size > BYTES_MOST)
    if "tail" in arguments:
        return _tail(file, size, int(arguments["tail"]))
    first, last = int(arguments.get("start_line", 1)), int(arguments.get("end_line", 1 << 62))
    if last < first:
        raise FileRefused(why="'end_line' must not be before 'start_line'.")
    _go_to(file, first, given_up)
    data = file.read(BYTES_MOST)
    if not data and first > 1:
        raise FileRefused(why=f"It has fewer than {first} lines.")
    lines = data.split(b"\n")
    wanted = lines[: last - first + 1]
    text = _text(b"\n".join(wanted), at_start=first == 1)
    kept = text[:TEXT_MOST]
    unread = len(wanted) == len(lines) and len(data) == BYTES_MOST
    ended = first + kept.removesuffix("\n").count("\n")
    return Stretch(text=kept, first=first, last=ended, cut=unread or kept != text)


def _go_to(file: IO[bytes], line: int, given_up: Event) -> None:
    """Moves to the start of a line, counted from 1, a block at a time."""
    missing = line - 1
    while missing and not given_up.is_set():
        block = file.read(_BLOCK)
        if not block:
            raise FileRefused(why=f"It has fewer than {line} lines.")
        if file.tell() > SCANNED_MOST:
            raise FileRefused(why="That line lies too deep in it; use tail.")
        ends = min(missing, block.count(b"\n"))
        missing -= ends
        if not missing:
            file.seek(-len(block.split(b"\n", ends)[-1]), os.SEEK_CUR)


def _tail(file: IO[bytes], size: int, lines: int) -> Stretch:
    """The last lines, as many as are given at once, read from the end."""
    at = max(0, size - BYTES_MOST)
    file.seek(at)
    data = file.read(BYTES_MOST)
    if at:  # what the first line began with lies before
        data = data.partition(b"\n")[2] or data
    kept = data.removesuffix(b"\n").split(b"\n")
    text = _text(b"\n".join(kept[-lines:]), at_start=not at and len(kept) <= lines)
    return Stretch(text=text[-TEXT_MOST:], cut=(len(kept) < lines and at > 0) or len(text) > TEXT_MOST)


def _text(data: bytes, *, at_start: bool) -> str:
    if b"\0" in data:
        raise FileRefused(why="That is a binary file, whatever its name says.")
    encoding = "utf-8-sig" if at_start else "utf-8"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        if error.end >= len(data) - 3 and error.reason == "unexpected end of data":
            return data[: error.start].decode(encoding)  # cut within a character
    return _decoded(data, "cp1252")


def _decoded(data: bytes, encoding: str) -> str:
    """Text in an encoding that the bytes only suggest. Raises ``FileRefused`` where it makes no text."""
    try:
        text = data[: len(data) // 2 * 2].decode(encoding) if encoding == "utf-16" else data.decode(encoding)
    except UnicodeDecodeError:
        text = "\0"
    odd = sum(1 for character in text if character < " " and character not in "\n\r\t\f\x1b")
    if odd > len(text) // 100:
        raise FileRefused(why="That is no text in an encoding that can be told (UTF-8, UTF-16, Windows-1252).")
    return text.replace("\r\n", "\n")
