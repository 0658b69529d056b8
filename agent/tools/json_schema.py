"""Checks a tool's input against its JSON Schema, and says what is wrong so that a model can mend it. Pure.

Promises: the keywords our own tools use are checked in full (``type``, ``properties``, ``required``, ``enum``,
``items``, ``minimum``, ``maximum``, ``minLength``, ``maxLength``, ``additionalProperties: false``); others, which the
schema of an MCP server may hold, are left to that server. No input is quoted, only names, types and limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MAX_DEPTH = 32

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list, tuple),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
}


def faults(value: object, schema: Mapping[str, Any], *, path: str = "", depth: int = 0) -> Iterator[str]:
    """One sentence per fault, in the order of the schema; none when ``value`` fits."""
    where = f"{path!r}" if path else "the input"
    if depth > MAX_DEPTH:
        yield f"{where} is nested too deeply"
        return
    if not _is_of(value, schema.get("type")):
        yield f"{where} must be {_named(schema['type'])}, not {_kind(value)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} must be one of {', '.join(map(str, schema['enum']))}"
    yield from _limits(value, schema, where)
    if isinstance(value, Mapping):
        yield from _members(value, schema, path, depth)
    if isinstance(value, list | tuple) and isinstance(schema.get("items"), Mapping):
        for position, item in enumerate(value):
            yield from faults(item, schema["items"], path=f"{path}[{position}]", depth=depth + 1)


def _members(value: Mapping[str, Any], schema: Mapping[str, Any], path: str, depth: int) -> Iterator[str]:
    properties = schema.get("properties", {})
    prefix = f"{path}." if path else ""
    for name in schema.get("required", ()):
        if name not in value:
            yield f"'{prefix}{name}' is missing"
    if schema.get("additionalProperties") is False:
        for name in value:
            if name not in properties:
                yield f"'{prefix}{name}' is unknown; known are {', '.join(properties)}"
    for name, part in properties.items():
        if name in value and isinstance(part, Mapping):
            yield from faults(value[name], part, path=prefix + name, depth=depth + 1)


def _limits(value: object, schema: Mapping[str, Any], where: str) -> Iterator[str]:
    if isinstance(value, int | float):
        if "minimum" in schema and not value >= schema["minimum"]:  # not >= also refuses NaN
            yield f"{where} must be at least {schema['minimum']}"
        if "maximum" in schema and not value <= schema["maximum"]:
            yield f"{where} must be at most {schema['maximum']}"
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            yield f"{where} must not be shorter than {schema['minLength']} characters"
        if len(value) > schema.get("maxLength", len(value)):
            yield f"{where} must not be longer than {schema['maxLength']} characters"


def _is_of(value: object, kind: object) -> bool:
    kinds = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    known = [name for name in kinds if name in _TYPES]
    if not known:
        return True
    return any(isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool)) for name in known)


def _named(kind: object) -> str:
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def _kind(value: object) -> str:
    """JSON's name for what ``value`` is."""
    order = ("boolean", "null", "string", "integer", "number", "array", "object")
    return next((name for name in order if isinstance(value, _TYPES[name])), type(value).__name__)
