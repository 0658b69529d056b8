"""Rules for names of files and folders: read, or skipped without being counted."""

from pathlib import PurePath
from typing import Final

from agent.knowledge.readers.formats import format_of
from agent.knowledge.sources.audience_file import FILE_NAME

_PACKAGES: Final = frozenset({"node_modules", "__pycache__", "site-packages", "venv"})
"""Folders of installed packages: thousands of files that people do not ask about."""


def is_left_out(name: str) -> bool:
    """Return whether a file or folder of this name is skipped."""
    return name.startswith(".") or name in _PACKAGES


def is_document(path: PurePath) -> bool:
    """Return whether a path is read, according to its name and the folders above it."""
    return format_of(path.name) is not None and not is_left_out_path(path)


def is_left_out_path(path: PurePath) -> bool:
    """Return whether a path belongs to Orion, is hidden, or lies in a folder that is skipped."""
    return path.name == FILE_NAME or any(map(is_left_out, path.parts))


def is_storable(name: str) -> bool:
    """Return whether a name is valid text: file systems allow any bytes."""
    return name.encode("utf-8", "replace").decode("utf-8") == name
