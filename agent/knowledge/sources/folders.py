"""Documents in folders: each file once, in a stable order. Links out of a folder are not followed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Final

from agent.knowledge.readers.reading import SUFFIXES, read_bytes
from agent.knowledge.sources.audience_file import FILE_NAME, Audiences
from agent.knowledge.types import IndexRun, Readable

_OTHERS: Final = frozenset({"node_modules", "__pycache__", "site-packages", "venv"})
"""Folders of installed packages: thousands of files that no question is about."""


class Folders:
    """Finder of the documents in several folders."""

    def __init__(self, folders: Sequence[Path], run: IndexRun) -> None:
        self._run = run
        self._audiences = Audiences(failed=run.failed)
        self._keys: set[str] = set()
        # The outermost first: an audience file in it counts for the folders inside it as well.
        self._tops = sorted((given.expanduser().resolve() for given in folders), key=lambda root: len(root.parts))

    def documents_in(self, folder: Path) -> Iterator[Readable]:
        """Yield every document of one folder, which may be a single file."""
        root = folder.expanduser().resolve()
        if root.is_file():
            yield from self._take(root.parent, root)
        elif root.is_dir():
            for path in self._walk(root):
                yield from self._take(root, path)
        else:
            self._run.missing.append(str(root))
            self._run.failed.append((str(folder), "does not exist"))

    def _walk(self, root: Path) -> Iterator[Path]:
        for folder, names, files in os.walk(root, onerror=self._note_unreadable):
            names[:] = sorted(name for name in names if not is_left_out(name))
            yield from (Path(folder, name) for name in sorted(files) if is_document(PurePath(name)))

    def _note_unreadable(self, error: OSError) -> None:
        self._run.failed.append((str(error.filename), f"cannot be opened ({error.strerror})"))

    def _take(self, root: Path, path: Path) -> Iterator[Readable]:
        """Yield the file under its real path, unless that leaves the root or came before."""
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(root):
            self._run.failed.append((path.relative_to(root).as_posix(), "is a link that leads out of its folder"))
            return
        inside, key = real.relative_to(root).as_posix(), str(real)
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
                read=partial(read_bytes, real),
                audience=self._audiences.of(real.parent, top),
                place="anchor",
            )


def is_left_out(name: str) -> bool:
    """Return whether a file or folder of this name is skipped."""
    return name.startswith(".") or name in _OTHERS


def is_document(path: PurePath) -> bool:
    """Return whether a path is read, judged by its name and the folders above it."""
    is_read = path.name != FILE_NAME and path.suffix.lower() in SUFFIXES
    return is_read and not any(map(is_left_out, path.parts))


def is_storable(name: str) -> bool:
    """Return whether a name is valid text: file systems allow any bytes."""
    return name.encode("utf-8", "replace").decode("utf-8") == name
