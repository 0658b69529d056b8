"""Documents in folders, each file once and in a stable order. Links out of a folder are not followed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePath
from typing import Final

from agent.knowledge.readers.reading import read_bytes
from agent.knowledge.sources.file_rules import Audiences, is_document, is_left_out, is_storable
from agent.knowledge.sources.git import GitSource
from agent.knowledge.types import IndexRun, Readable, ReadError

_LEADS_OUT: Final = "is a link that leads out of its folder"
_MIN_COPIED: Final = 2  # two files can easily change on the same day


class Folders:
    """Finds the documents in several folders."""

    def __init__(self, folders: Sequence[Path], run: IndexRun) -> None:
        self._run = run
        self._audiences = Audiences(failed=run.failed)
        self._keys: set[str] = set()
        # The outermost folder first: its audience file also applies to the folders inside it.
        self._tops = sorted((given.expanduser().resolve() for given in folders), key=lambda root: len(root.parts))

    def documents_in(self, folder: Path) -> Iterator[Readable]:
        """Yield every document of one folder, which may be a single file."""
        root = folder.expanduser().resolve()
        if not (root.is_file() or root.is_dir()):
            self._run.missing.append(str(root))
            self._run.failed.append((str(folder), "does not exist"))
            return
        top, paths = (root, [*self._walk(root)]) if root.is_dir() else (root.parent, [root])
        dates = _Dates(paths, top)
        for path in paths:
            yield from self._take(top, path, dates)

    def _walk(self, root: Path) -> Iterator[Path]:
        for folder, names, files in os.walk(root, onerror=self._note_unreadable):
            names[:] = sorted(name for name in names if not is_left_out(name))
            for link in (Path(folder, name) for name in names if Path(folder, name).is_symlink()):
                if not link.resolve().is_relative_to(root):
                    self._run.failed.append((link.relative_to(root).as_posix(), _LEADS_OUT))
            for name in sorted(files):
                if is_document(PurePath(name), str(root), self._run):
                    yield Path(folder, name)

    def _note_unreadable(self, error: OSError) -> None:
        self._run.failed.append((str(error.filename), f"cannot be opened ({error.strerror})"))

    def _take(self, root: Path, path: Path, dates: _Dates) -> Iterator[Readable]:
        """Yield the file under its real path, unless it is outside the root or was already yielded."""
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(root):
            self._run.failed.append((path.relative_to(root).as_posix(), _LEADS_OUT))
            return
        inside, key = (real if real.exists() else path).relative_to(root).as_posix(), str(real)  # or a broken link
        if not is_storable(key):
            self._run.failed.append((ascii(inside), "has a name that is not UTF-8"))
        elif key not in self._keys:
            self._keys.add(key)
            # The audience follows the real folder, up to the outermost root above it.
            top = next((top for top in self._tops if real.parent.is_relative_to(top)), root)
            yield Readable(
                id=self._run.unique_id(inside, root.name or "root"),
                key=key,
                name=real.name,
                source=str(root),
                read=partial(dates.read, real),
                audience=self._audiences.of(real.parent, top),
                place="anchor",
            )


class _Dates:
    """Dates of a folder's files: of the last commit if it is a Git work tree, else of the last change.

    If most of the files changed on one day, they were copied that day and have no date.
    """

    def __init__(self, paths: Sequence[Path], root: Path) -> None:
        tree = next((each for each in (root, *root.parents) if (each / ".git").exists()), None)
        self._committed: dict[str, float] = {}
        if tree:
            inside = {path.relative_to(tree).as_posix(): str(path) for path in paths if path.is_relative_to(tree)}
            with suppress(ReadError):  # Git is not installed
                times = GitSource(repository=tree, folder=root.relative_to(tree).as_posix()).commit_times(set(inside))
                self._committed = {inside[path]: seconds for path, seconds in times.items()}
        days = Counter(map(_day_of_change, paths))
        day, files = days.most_common(1)[0] if days else ("", 0)
        self._copied = day if files > max(_MIN_COPIED, len(paths) // 2) else ""

    def read(self, path: Path) -> tuple[bytes, float]:
        """Return the bytes of a file and its date in seconds since 1970, 0 if it has none."""
        data, changed = read_bytes(path)
        if os.path.realpath(path) != str(path):
            raise ReadError(reason="was replaced by a link while it was read", temporary=True)
        if committed := self._committed.get(str(path)):
            return data, committed
        return data, 0.0 if _day_of_change(path) == self._copied else changed


def _day_of_change(path: Path) -> str:
    with suppress(OSError):
        return datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
    return ""
