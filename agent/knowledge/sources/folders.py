"""Finds the documents in folders: each file once, in a stable order. No link is followed out of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agent.knowledge.readers.reading import SUFFIXES, read_bytes
from agent.knowledge.sources.audience_file import FILE_NAME, Audiences
from agent.thread.audience import PUBLIC

LEFT_OUT: Final = frozenset({"node_modules", "__pycache__", "site-packages", "venv"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFile:
    """A file to be read. ``id`` is its path inside its root; ``key`` its absolute path; ``audience`` who may see it.

    ``source`` is the folder it came from. Its link is the configured prefix with the id, so ``url`` stays empty.
    """

    id: str
    path: Path
    audience: str = PUBLIC
    source: str = ""
    url: str = ""
    place: str = "anchor"

    @property
    def name(self) -> str:
        """The file's name, whose suffix says what form it has."""
        return self.path.name

    @property
    def key(self) -> str:
        """What tells this file from every other on this machine."""
        return str(self.path)

    def read(self) -> tuple[bytes, float]:
        """Its bytes and when it was changed (seconds since 1970). Raises ``ReadError``."""
        return read_bytes(self.path)


@dataclass(slots=True, kw_only=True)
class Walk:
    """The files found so far, with what could not be walked. ``missing`` are roots that are not there.

    ``known`` is what the index has of each key (digest, id, audience, link), ``notes`` what earlier runs noted, and
    ``noted`` what is to be noted for the next.
    """

    failed: list[tuple[str, str]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    known: Mapping[str, tuple[str, str, str, str]] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    noted: dict[str, str] = field(default_factory=dict)
    audiences: Audiences = field(default_factory=Audiences)
    _ids: set[str] = field(default_factory=set)
    _keys: set[str] = field(default_factory=set)
    _tops: list[Path] = field(default_factory=list)

    def unique(self, inside: str, prefix: str) -> str:
        """The path inside a source; where an earlier one has the same, with this one's name before it."""
        name = inside
        while name in self._ids:
            name = f"{prefix}/{name}"
        self._ids.add(name)
        return name

    def files(self, roots: Sequence[Path], among: Sequence[Path] = ()) -> Iterator[DocumentFile]:
        """Every document under ``roots``; ``among`` are all the folders of the run, where these are not all."""
        tops = (given.expanduser().resolve() for given in among or roots)
        self._tops = sorted(tops, key=lambda root: len(root.parts))
        for given in roots:
            root = given.expanduser().resolve()
            if root.is_file():
                yield from self._take(root.parent, root)
            elif root.is_dir():
                for path in self._below(root):
                    yield from self._take(root, path)
            else:
                self.missing.append(str(root))
                self.failed.append((str(given), "does not exist"))
        self.failed += self.audiences.failed
        self.audiences.failed.clear()

    def _below(self, root: Path) -> Iterator[Path]:
        for folder, names, files in os.walk(root, onerror=self._unwalkable):
            names[:] = sorted(n for n in names if not n.startswith(".") and n not in LEFT_OUT)
            for name in sorted(files):
                if not name.startswith(".") and name != FILE_NAME and Path(name).suffix.lower() in SUFFIXES:
                    yield Path(folder, name)

    def _unwalkable(self, error: OSError) -> None:
        self.failed.append((str(error.filename), f"cannot be opened ({error.strerror})"))

    def _take(self, root: Path, path: Path) -> Iterator[DocumentFile]:
        """The file under its real path, unless it leaves the root or was taken already."""
        shown = path.relative_to(root).as_posix()
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(root):
            self.failed.append((shown, "is a link that leads out of its folder"))
            return
        inside = real.relative_to(root).as_posix()
        if not storable(str(real)):
            self.failed.append((ascii(inside), "has a name that is not UTF-8"))
        elif str(real) not in self._keys:
            self._keys.add(str(real))
            shown = self.unique(inside, root.name or "root")
            yield DocumentFile(id=shown, path=real, audience=self._audience(real, root), source=str(root))

    def _audience(self, real: Path, root: Path) -> str:
        """By where the file really lies, up to the outermost of the roots above it."""
        top = next((top for top in self._tops if real.parent.is_relative_to(top)), root)
        return self.audiences.of(real.parent, top)


def storable(name: str) -> bool:
    """Whether a name is text at all: file systems allow any bytes."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
