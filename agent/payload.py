"""Reads untyped Slack JSON without raising: each reader gives the asked-for type or its empty value."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

_OBJECT: Final = (dict, Mapping)  # nearly all are a dict, which is a tenth of the time to check


def mapping(value: object, *path: str) -> Mapping[str, Any]:
    """The object at ``path`` below ``value``, or an empty one."""
    for key in path:
        value = value.get(key) if isinstance(value, _OBJECT) else None
    return value if isinstance(value, _OBJECT) else {}


def string(value: object, *path: str) -> str:
    """The text at ``path``, or an empty one. Half surrogate pairs, which no database takes, become ``?``."""
    found = mapping(value, *path[:-1]).get(path[-1]) if path else value
    if not isinstance(found, str):
        return ""
    return found if found.isascii() else found.encode("utf-8", "replace").decode()


def objects(value: object, *path: str) -> Sequence[Mapping[str, Any]]:
    """Return the objects of the list at ``path``. Other entries are left out."""
    found = mapping(value, *path[:-1]).get(path[-1]) if path else value
    return [item for item in found if isinstance(item, _OBJECT)] if isinstance(found, list) else []
