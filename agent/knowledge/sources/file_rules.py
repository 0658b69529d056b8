"""Rules for the files of folders and repositories: which are read, and who may see them (``orion-audience.toml``).

The nearest audience file counts, up to the configured folder. An invalid file hides its documents from everyone.
"""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Final

from agent.knowledge.readers.reading import format_of
from agent.knowledge.types import IndexRun
from agent.thread.conversation import NOBODY, PUBLIC, parse_audience

FILE_NAME: Final = "orion-audience.toml"
_MAX_BYTES: Final = 65_536
_WRONG: Final = (
    'cannot be used, so no one sees what it covers; it should say audience = "public" or audience = ["C0123ABCD", …] '
    "with ids of channels, people or workspaces"
)


@dataclass(slots=True, kw_only=True)
class Audiences:
    """Audiences by folder. ``failed`` pairs invalid files with the reason."""

    failed: list[tuple[str, str]] = field(default_factory=list)
    _known: dict[Path, str] = field(default_factory=dict)

    def of(self, folder: Path, top: Path) -> str:
        """Return the audience of ``folder``. Files above ``top`` do not count. Both are real paths."""
        if folder not in self._known:
            file, data, is_absent = folder / FILE_NAME, b"", False
            try:
                with file.open("rb") as stream:
                    data = stream.read(_MAX_BYTES)
            except OSError as error:  # a file that cannot be read, or a broken link, should restrict this folder
                is_absent = isinstance(error, FileNotFoundError) and not file.is_symlink()
            if not is_absent:
                self._known[folder] = self.parse(str(file), data)
            else:
                self._known[folder] = PUBLIC if folder == top else self.of(folder.parent, top)
        return self._known[folder]

    def parse(self, name: str, data: bytes) -> str:
        """Return the audience in an audience file. An invalid file is reported, and no one sees its documents."""
        try:
            fields = tomllib.loads(data[:_MAX_BYTES].decode("utf-8-sig"))
        except ValueError:  # tomllib's error is a ValueError, and so is text that is not UTF-8
            fields = {}
        audience = parse_audience(fields.get("audience")) if set(fields) == {"audience"} else None
        if audience is None:
            self.failed.append((name, _WRONG))
            return NOBODY
        return audience


_MAX_SUFFIX_CHARS: Final = 20  # a longer one is part of a name
# Folders of installed packages: thousands of files that people do not ask about.
_PACKAGES: Final = frozenset({"node_modules", "__pycache__", "site-packages", "venv"})


def is_left_out(name: str) -> bool:
    """Return whether a file or folder of this name is skipped."""
    return name.startswith(".") or name in _PACKAGES


def is_document(path: PurePath, source: str, run: IndexRun) -> bool:
    """Return whether a path is read, judged by its name and the folders above it. Count files of other formats."""
    if path.name == FILE_NAME or any(map(is_left_out, path.parts)):
        return False
    if format_of(path.name) is None:
        run.skipped[source][path.suffix.lower()[:_MAX_SUFFIX_CHARS]] += 1
        return False
    return True


def is_storable(name: str) -> bool:
    """Return whether a name is valid text for a database: file systems allow any bytes, and feeds a NUL."""
    return "\0" not in name and name.encode("utf-8", "replace").decode("utf-8") == name
