"""``file_read``: lines of a text file, or the names in a folder, inside configured folders.

Every step of a path is opened without following links, so swapping a folder for a link in between achieves nothing.
"""

import asyncio
import codecs
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from agent.knowledge.readers.text import decode
from agent.knowledge.types import ReadError
from agent.tools.tool import ToolFailed, ToolResult, spec_of
from verification.types import Source

FILE_READ: Final = "file_read"
MAX_TEXT_CHARS: Final = 14_000  # maximum given to the model at once
MAX_READ_BYTES: Final = MAX_TEXT_CHARS * 4
MAX_LISTED: Final = 200
MAX_SCANNED_BYTES: Final = 1 << 30  # bytes skipped on the way to a line
_BLOCK: Final = 1 << 20
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking: a pipe without a writer would block the thread for ever.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileRefused(ToolFailed):
    """The file is not allowed or not readable."""

    hints = ("Name a folder to see what is in it.",)


class FileExcerpt(NamedTuple):
    """A part of a file. ``lines`` says which lines, if they were counted. ``is_cut``: there is more."""

    text: str
    is_cut: bool
    lines: str = ""


class FileReadTool:
    """Reads below its roots, which are known by their folders' names."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = tuple(root.resolve() for root in roots)
        self._names = ", ".join(root.name for root in self._roots)
        self.spec = spec_of(FILE_READ, names=self._names)

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Read the file, and return one source with its exact text."""
        title, excerpt, changed = await asyncio.to_thread(self._read, arguments)
        note = " There is more of it: ask for other lines." if excerpt.is_cut else ""
        content = f"{title}: {len(excerpt.text)} characters.{note}" if excerpt.text else f"{title} is empty."
        source = Source(id=0, title=title, text=excerpt.text, origin=f"tool:{FILE_READ}", updated_at=changed)
        return ToolResult(content=content, sources=(source,))

    def _read(self, arguments: Mapping[str, Any]) -> tuple[str, FileExcerpt, str]:
        """Return title, text and time of the last change (ISO 8601)."""
        root, inside = self._place(str(arguments["path"]))
        opened = _open_below(root, inside)
        status = os.fstat(opened)
        changed = datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds")
        title = "/".join((root.name, *inside))
        if stat.S_ISDIR(status.st_mode):
            return title, _list_folder(opened), changed
        with os.fdopen(opened, "rb") as file:
            if not stat.S_ISREG(status.st_mode):
                raise FileRefused(why="That is a device, a pipe or a socket, not a file.")
            excerpt = _read_excerpt(file, status.st_size, arguments)
        return title + excerpt.lines, excerpt, changed

    def _place(self, path: str) -> tuple[Path, tuple[str, ...]]:
        """Return the root, and the names below it after following all links. Raises ``FileRefused``."""
        first, _, rest = path.removeprefix("./").partition("/")
        # Look below the root that the path names, else below any root.
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
    try:
        with os.scandir(folder) as entries:
            listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    finally:
        os.close(folder)
    names = sorted(name + "/" * is_folder for name, is_folder in listed if not name.startswith("."))
    # Show each name on one line, in real characters.
    shown = (" ".join(name.encode("utf-8", "replace").decode().split()) for name in names[:MAX_LISTED])
    return FileExcerpt("\n".join(shown), is_cut=len(names) > MAX_LISTED)


def _read_excerpt(file: IO[bytes], size: int, arguments: Mapping[str, Any]) -> FileExcerpt:
    if (mark := file.read(2)) in _UTF16:  # line endings have two bytes: count lines in the part that is read at once
        file.seek(max(2, (size - MAX_READ_BYTES) // 2 * 2 if "tail" in arguments else 0))
        data = _decode(mark + file.read(MAX_READ_BYTES)).encode()
        excerpt = _read_excerpt(BytesIO(data), len(data), arguments)
        return excerpt._replace(is_cut=excerpt.is_cut or size > MAX_READ_BYTES + 2)
    if "tail" in arguments:
        return _read_tail(file, size, int(arguments["tail"]))
    first, last = int(arguments.get("start_line", 1)), int(arguments.get("end_line", 1 << 62))
    if last < first:
        raise FileRefused(why="'end_line' must not be before 'start_line'.")
    file.seek(0)
    _skip_lines(file, first - 1)
    data = file.read(MAX_READ_BYTES)
    if not data and first > 1:
        raise FileRefused(why=f"It has fewer than {first} lines.")
    lines = data.split(b"\n")
    wanted = lines[: last - first + 1]
    whole = _decode(b"\n".join(wanted))
    text = whole[:MAX_TEXT_CHARS]
    is_cut = text != whole or (len(wanted) == len(lines) and len(data) == MAX_READ_BYTES)
    final = first + text.removesuffix("\n").count("\n")
    return FileExcerpt(text, is_cut, f", lines {first} to {final}")


def _skip_lines(file: IO[bytes], count: int) -> None:
    missing = count
    while missing:
        part = file.readline(_BLOCK)
        if not part:
            raise FileRefused(why=f"It has fewer than {count + 1} lines.")
        if file.tell() > MAX_SCANNED_BYTES:
            raise FileRefused(why="That line is too far into the file; use tail.")
        missing -= part.endswith(b"\n")


def _read_tail(file: IO[bytes], size: int, count: int) -> FileExcerpt:
    """Read the last lines from the end, as many as fit."""
    begin = max(0, size - MAX_READ_BYTES)
    file.seek(begin)
    data = file.read(MAX_READ_BYTES)
    if begin:  # the first line is not complete
        data = data.partition(b"\n")[2] or data
    lines = data.removesuffix(b"\n").split(b"\n")
    text = _decode(b"\n".join(lines[-count:]))
    return FileExcerpt(text[-MAX_TEXT_CHARS:], (len(lines) < count and begin > 0) or len(text) > MAX_TEXT_CHARS)


def _decode(data: bytes) -> str:
    """Decode text; a cut-off character at its end is left out. Raises ``FileRefused`` if it is not text."""
    with suppress(UnicodeDecodeError):
        if b"\0" not in data:
            return codecs.getincrementaldecoder("utf-8-sig")().decode(data)
    with suppress(ReadError):
        return decode(data)
    try:
        return decode(data, declared="cp1252")
    except ReadError as error:
        raise FileRefused(why=f"It {error.reason}.") from error
