"""Finds the documents in folders: each file once, in a stable order. No link is followed out of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from agent.knowledge.readers.reading import SUFFIXES, read_bytes
from agent.knowledge.sources.audience_file import FILE_NAME, Audiences
from agent.knowledge.types import Ground, Readable

# Other people's packages: thousands of files that no question is about.
LEFT_OUT: Final = frozenset({"node_modules", "__pycache__", "site-packages", "venv"})


class Folders:
    """Finds the documents of several folders, each once."""

    def __init__(self, folders: Sequence[Path], ground: Ground) -> None:
        self._ground = ground
        self._audiences = Audiences()
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
        self._ground.failed += self._audiences.failed
        self._audiences.failed.clear()

    def _walk(self, root: Path) -> Iterator[Path]:
        for folder, names, files in os.walk(root, onerror=self._unwalkable):
            names[:] = sorted(n for n in names if not n.startswith(".") and n not in LEFT_OUT)
            for name in sorted(files):
                if not name.startswith(".") and name != FILE_NAME and Path(name).suffix.lower() in SUFFIXES:
                    yield Path(folder, name)

    def _unwalkable(self, error: OSError) -> None:
        self._ground.failed.append((str(error.filename), f"cannot be opened ({error.strerror})"))

    def _take(self, root: Path, path: Path) -> Iterator[Readable]:
        """The file under its real path, unless it leaves the root or was taken already."""
        shown = path.relative_to(root).as_posix()
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(root):
            self._ground.failed.append((shown, "is a link that leads out of its folder"))
            return
        inside = real.relative_to(root).as_posix()
        if not storable(str(real)):
            self._ground.failed.append((ascii(inside), "has a name that is not UTF-8"))
        elif str(real) not in self._keys:
            self._keys.add(str(real))
            shown = self._ground.unique(inside, root.name or "root")
            yield Readable(
                id=shown,
                key=str(real),
                name=real.name,
                source=str(root),
                read=partial(read_bytes, real),
                audience=self._audience(real, root),
                place="anchor",
            )

    def _audience(self, real: Path, root: Path) -> str:
        """By where the file really lies, up to the outermost of the roots above it."""
        top = next((top for top in self._tops if real.parent.is_relative_to(top)), root)
        return self._audiences.of(real.parent, top)


def storable(name: str) -> bool:
    """Whether a name is text at all: file systems allow any bytes."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
