"""Finds the documents in folders: each file once, in a stable order. No link is followed out of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Final

from agent.knowledge.readers.reading import SUFFIXES, read_bytes
from agent.knowledge.sources.audience_file import FILE_NAME, Audiences
from agent.knowledge.types import Ground, Readable

_OTHERS: Final = frozenset({"node_modules", "__pycache__", "site-packages", "venv"})
"""Other people's packages: thousands of files that no question is about."""


class Folders:
    """Finds the documents of several folders, each once."""

    def __init__(self, folders: Sequence[Path], ground: Ground) -> None:
        self._ground = ground
        self._audiences = Audiences(failed=ground.failed)
        self._keys: set[str] = set()
        # The outermost first: an audience file in it counts for the folders inside it as well.
        self._tops = sorted((given.expanduser().resolve() for given in folders), key=lambda root: len(root.parts))

    def below(self, folder: Path) -> Iterator[Readable]:
        """Every document of one of them, which may be a single file."""
        root = folder.expanduser().resolve()
        if root.is_file():
            yield from self._take(root.parent, root)
        elif root.is_dir():
            for path in self._walk(root):
                yield from self._take(root, path)
        else:
            self._ground.missing.append(str(root))
            self._ground.failed.append((str(folder), "does not exist"))

    def _walk(self, root: Path) -> Iterator[Path]:
        for folder, names, files in os.walk(root, onerror=self._unwalkable):
            names[:] = sorted(name for name in names if not is_left_out(name))
            yield from (Path(folder, name) for name in sorted(files) if is_document(PurePath(name)))

    def _unwalkable(self, error: OSError) -> None:
        self._ground.failed.append((str(error.filename), f"cannot be opened ({error.strerror})"))

    def _take(self, root: Path, path: Path) -> Iterator[Readable]:
        """The file under its real path, unless it leaves the root or was taken already."""
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(root):
            self._ground.failed.append((path.relative_to(root).as_posix(), "is a link that leads out of its folder"))
            return
        inside, key = real.relative_to(root).as_posix(), str(real)
        if not is_storable(key):
            self._ground.failed.append((ascii(inside), "has a name that is not UTF-8"))
        elif key not in self._keys:
            self._keys.add(key)
            # By where the file really lies, up to the outermost of the roots above it.
            top = next((top for top in self._tops if real.parent.is_relative_to(top)), root)
            yield Readable(
                id=self._ground.unique(inside, root.name or "root"),
                key=key,
                name=real.name,
                source=str(root),
                read=partial(read_bytes, real),
                audience=self._audiences.of(real.parent, top),
                place="anchor",
            )


def is_left_out(name: str) -> bool:
    """Whether a file or a folder of this name holds nothing that is read."""
    return name.startswith(".") or name in _OTHERS


def is_document(path: PurePath) -> bool:
    """Whether what lies here is read, by its name and those of the folders above it."""
    is_read = path.name != FILE_NAME and path.suffix.lower() in SUFFIXES
    return is_read and not any(map(is_left_out, path.parts))


def is_storable(name: str) -> bool:
    """Whether a name is text at all: file systems allow any bytes."""
    return name.encode("utf-8", "replace").decode("utf-8") == name
