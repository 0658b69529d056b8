"""``file_read``: lines of a text file, or the names in a folder, inside configured folders (D3, I4).

Every step of a path is opened without following links, so that swapping a folder for a link in between leads nowhere.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import IO, Any, Final

from agent.tools.tool import Tool, ToolFailed, ToolResult, ToolSpec
from verification.types import Source

FILE_READ: Final = "file_read"
TEXT_MOST: Final = 14_000
"""Characters given to the model at once."""
BYTES_MOST: Final = TEXT_MOST * 4
LISTED_MOST: Final = 200
SCANNED_MOST: Final = 16 << 30
"""Bytes passed over on the way to a line, at most."""
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


def file_tools(roots: Sequence[Path]) -> tuple[Tool, ...]:
    """The tool over these folders; none where there is none."""
    return (FileReadTool(roots),) if roots else ()


class FileReadTool:
    """Reads below its roots, each known by its folder's name."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = tuple(root.resolve() for root in roots)

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""
        line = {"type": "integer", "minimum": 1}
        names = ", ".join(root.name for root in self._roots)
        return ToolSpec(
            name=FILE_READ,
            description=(
                f"Reads a text file, or lists a folder, below one of these folders: {names}. Name it as folder/path. "
                "Of a long file ask for lines, or for its last lines with tail."
            ),
            parameters={
                "type": "object",
                "properties": {
                    "path": {"type": "string", "minLength": 1, "maxLength": 4000},
                    "start_line": {**line, "description": "First line wanted, counted from 1."},
                    "end_line": {**line, "description": "Last line wanted."},
                    "tail": {**line, "maximum": 5000, "description": "Only so many lines at the end."},
                },
                "required": ["path"],
                "additionalProperties": False,
            },
        )

    async def run(self, call_id: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Read; one source with the exact text."""
        given_up = Event()
        try:
            title, stretch, changed = await asyncio.to_thread(self._read, dict(arguments), given_up)
        finally:
            given_up.set()  # nobody waits for the thread any more
        note = " There is more of it: ask for other lines." if stretch.cut else ""
        return ToolResult(
            call_id=call_id,
            tool=FILE_READ,
            ok=True,
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
                msg = "That is a device, a pipe or a socket, no file."
                raise FileRefused(msg)
            stretch = _stretch(file, found.st_size, arguments, given_up)
        lines = f", lines {stretch.first} to {stretch.last}" if stretch.first else ""
        return f"{title}{lines}", stretch, changed

    def _place(self, path: str) -> tuple[Path, tuple[str, ...]]:
        """The root, and the names below it once all links are followed. Raises ``FileRefused``."""
        for root, candidate in self._candidates(path):
            with suppress(OSError, ValueError, RuntimeError):  # not there, a NUL in the name, links in a circle
                resolved = candidate.resolve(strict=True)
                if not resolved.is_relative_to(root):
                    continue
                inside = resolved.relative_to(root).parts
                if any(name.startswith(".") for name in inside):
                    msg = "Hidden files are not read."
                    raise FileRefused(msg)
                return root, inside
        msg = f"There is no such file inside {', '.join(root.name for root in self._roots)}."
        raise FileRefused(msg)

    def _candidates(self, path: str) -> Iterator[tuple[Path, Path]]:
        """Where the path may mean: below the root it names, below any root, or as it stands."""
        first, _, rest = path.removeprefix("./").partition("/")
        for root in self._roots:
            if first == root.name:
                yield root, root / rest
        for root in self._roots:
            yield root, root / path


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
        msg = f"It cannot be opened ({error.strerror or type(error).__name__})."
        raise FileRefused(msg) from error
    return at


def _listing(folder: int) -> Stretch:
    with os.scandir(folder) as entries:
        names = sorted(entry.name + "/" * entry.is_dir() for entry in entries if not entry.name.startswith("."))
    return Stretch(text="\n".join(_shown(name) for name in names[:LISTED_MOST]), cut=len(names) > LISTED_MOST)


def _shown(name: str) -> str:
    """A file's name as one line of real characters."""
    return " ".join(name.encode("utf-8", "replace").decode().split())


def _stretch(file: IO[bytes], size: int, arguments: Mapping[str, Any], given_up: Event) -> Stretch:
    """The asked lines. Raises ``FileRefused``."""
    start = file.read(2)
    file.seek(0)
    if start in _UTF16:  # its line ends are two bytes long: counted after decoding, in as much as is given at once
        whole = _text(file.read(BYTES_MOST), at_start=True)
        lines = whole.splitlines(keepends=True)
        first, last = int(arguments.get("start_line", 1)), int(arguments.get("end_line", len(lines)))
        wanted = lines[-int(arguments["tail"]) :] if "tail" in arguments else lines[first - 1 : last]
        return _limited("".join(wanted), 0, cut=size > BYTES_MOST)
    if "tail" in arguments:
        return _tail(file, size, int(arguments["tail"]))
    first, last = int(arguments.get("start_line", 1)), int(arguments.get("end_line", 1 << 62))
    if last < first:
        msg = "'end_line' must not be before 'start_line'."
        raise FileRefused(msg)
    _go_to(file, first, given_up)
    return _from_here(file, first, last)


def _go_to(file: IO[bytes], line: int, given_up: Event) -> None:
    """Moves to the start of a line, counted from 1, a block at a time."""
    missing, passed = line - 1, 0
    while missing and not given_up.is_set():
        block = file.read(_BLOCK)
        passed += len(block)
        if not block or passed > SCANNED_MOST:
            msg = f"It has fewer than {line} lines." if not block else "That line lies too deep in it; use tail."
            raise FileRefused(msg)
        ends = block.count(b"\n")
        if ends < missing:
            missing -= ends
            continue
        at = -1
        for _ in range(missing):
            at = block.find(b"\n", at + 1)
        file.seek(at + 1 - len(block), os.SEEK_CUR)
        return


def _from_here(file: IO[bytes], first: int, last: int) -> Stretch:
    data = file.read(BYTES_MOST)
    if not data and first > 1:
        msg = f"It has fewer than {first} lines."
        raise FileRefused(msg)
    lines = data.split(b"\n")
    wanted = lines[: last - first + 1]
    whole_file = len(data) < BYTES_MOST
    text = _text(b"\n".join(wanted), at_start=first == 1)
    return _limited(text, first, cut=len(wanted) == len(lines) and not whole_file)


def _tail(file: IO[bytes], size: int, lines: int) -> Stretch:
    """The last lines, as many as are given at once, read from the end."""
    at = max(0, size - BYTES_MOST)
    file.seek(at)
    data = file.read(BYTES_MOST)
    if at:  # what the first line began with lies before
        data = data.partition(b"\n")[2] or data
    kept = data.removesuffix(b"\n").split(b"\n")
    text = _text(b"\n".join(kept[-lines:]), at_start=not at and len(kept) <= lines)
    cut = len(kept) < lines and at > 0
    return Stretch(text=text[-TEXT_MOST:], cut=cut or len(text) > TEXT_MOST)


def _limited(text: str, first: int, *, cut: bool) -> Stretch:
    kept = text[:TEXT_MOST]
    last = first + kept.removesuffix("\n").count("\n")
    return Stretch(text=kept, first=first, last=last if first else 0, cut=cut or len(text) > TEXT_MOST)


def _text(data: bytes, *, at_start: bool) -> str:
    """The bytes as text. Raises ``FileRefused`` for what is none."""
    if at_start and data[:2] in _UTF16:
        return _decoded(data[: len(data) // 2 * 2], "utf-16")
    if b"\0" in data:
        msg = "That is a binary file, whatever its name says."
        raise FileRefused(msg)
    try:
        return data.decode("utf-8-sig" if at_start else "utf-8")
    except UnicodeDecodeError as error:
        if error.end >= len(data) - 3 and error.reason == "unexpected end of data":
            return data[: error.start].decode("utf-8-sig" if at_start else "utf-8")  # cut within a character
    return _decoded(data, "cp1252")


def _decoded(data: bytes, encoding: str) -> str:
    """Text in an encoding that the bytes only suggest. Raises ``FileRefused`` where it makes no text."""
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        text = "\0"
    odd = sum(1 for character in text if character < " " and character not in "\n\r\t\f\x1b")
    if odd > len(text) // 100:
        msg = "That is no text in an encoding that can be told (UTF-8, UTF-16, Windows-1252)."
        raise FileRefused(msg)
    return text.replace("\r\n", "\n")
