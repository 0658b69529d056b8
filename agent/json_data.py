"""JSON from Slack, in storage and over the network: untyped fields, compact text, compressed records."""

import base64
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any, Final, TypeVar

import orjson
from pydantic import TypeAdapter

Record = TypeVar("Record")
_MARK: Final = "z1:"
_MIN_COMPRESSED_CHARS: Final = 400  # shorter texts hardly get shorter when compressed
# A dictionary of text that most records contain. If you change it, change the mark too.
_COMMON: Final = (
    b'"cached_tokens":0,"reasoning_tokens":0,"estimated":false,"tokens":"repairs":[],"violations":[],"objected":[]}]'
    b'"rule":","severity":"warning","start":0,"end":,"words":","detail":","remedy":""settled_by":"quotation","passage":"'
    b'","marks":[["source":,"claims":[{"usage":{"model_calls":2,"tool_calls":1,"prompt_tokens":,"completion_tokens":"'
    b'timings_ms":{"queued":,"search":,"decide":,"write":,"verify":,"total":"attempts":[{"attempt":1,"draft":","passed"'
    b':true,"ms":"model":","answer":","outcome":"answered","verified":true,"question":"{"turn_id":","thread":"T'
    b'"user":"U","ts":"17,"addressed":true},{"role":"assistant","text":","user":"","ts":"","addressed":true}],"sources"'
    b':[{"id":1,"title":","url":"https://"text":"#"origin":"document","updated_at":"202-","audience":"public"}],"posted"'
    b':{"{"schema":1,"version":1,"mission":"","todolist_id":","plan":{"id":","steps":[{"description":","tool":"","input"'
    b':"","acceptance":"","status":"done","result":""}]},"history":[{"role":"user","text":"'
)


def compact_json(value: object) -> str:
    """Return the value as JSON without blanks, dataclasses as objects. A lone surrogate becomes a question mark."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # a lone surrogate, or a number beyond 64 bits
        text = json.dumps(value, default=asdict, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace").decode()


def parse_json(text: str | bytes) -> Any:
    """Parse JSON. Raises ``ValueError``, even for JSON that is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        message = "JSON that is nested too deeply"
        raise ValueError(message) from None


def parse_record(kind: type[Record], text: str | bytes | None, *, complete: bool = False) -> Record | None:
    """Parse a dataclass with slots that was stored as JSON, without the fields of a newer version.

    Return None if it is malformed, has a value of another type, or lacks a field without a default (with ``complete``:
    any field).
    """
    try:
        fields = parse_json(text or "")
        names: tuple[str, ...] = kind.__slots__  # type: ignore[attr-defined]  # a dataclass with slots
        given = {name: fields[name] for name in names if complete or name in fields}
        record: Record = _adapter(kind).validate_python(given)  # type: ignore[arg-type]  # every class is hashable
    except (ValueError, KeyError, TypeError):
        return None
    return record


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def compress(text: str) -> str:
    """Compress a text if that makes it shorter."""
    if len(text) < _MIN_COMPRESSED_CHARS:
        return text
    # A lower level and a window of 8 kB take half the time for 2 % more bytes.
    press = zlib.compressobj(level=4, wbits=13, zdict=_COMMON)
    data = press.compress(text.encode("utf-8", "replace")) + press.flush()
    return _MARK + base64.b64encode(data).decode("ascii")


def decompress(stored: str) -> str:
    """Return the original text: the stored text itself if it was not compressed, or an empty text if it is damaged."""
    if not stored.startswith(_MARK):
        return stored
    try:
        data = base64.b64decode(stored.removeprefix(_MARK))
        return zlib.decompressobj(zdict=_COMMON).decompress(data).decode()
    except (ValueError, zlib.error):
        return ""


def parse_number(text: str | bytes | None) -> float:
    """Return a stored number, or 0 for anything else: one damaged entry must not stop a worker."""
    try:
        number = float(text or 0)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0


_OBJECT: Final = (dict, Mapping)  # nearly all are a dict, which takes a tenth of the time to check


def mapping(value: object, *path: str) -> Mapping[str, Any]:
    """The object at ``path`` below ``value``, or an empty one."""
    for key in path:
        value = value.get(key) if isinstance(value, _OBJECT) else None
    return value if isinstance(value, _OBJECT) else {}


def string(value: object, *path: str) -> str:
    """The text at ``path``, or an empty one. Half surrogate pairs, which databases refuse, become ``?``."""
    found = mapping(value, *path[:-1]).get(path[-1]) if path else value
    if not isinstance(found, str):
        return ""
    return found if found.isascii() else found.encode("utf-8", "replace").decode()


def objects(value: object, *path: str) -> Sequence[Mapping[str, Any]]:
    """Return the objects of the list at ``path``. Other entries are left out."""
    found = mapping(value, *path[:-1]).get(path[-1]) if path else value
    return [item for item in found if isinstance(item, _OBJECT)] if isinstance(found, list) else []
