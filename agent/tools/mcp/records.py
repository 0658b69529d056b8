"""Reads results that are JSON: one readable record each, with its title, link and date."""

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

MAX_DEPTH: Final = 12
MAX_TITLE_CHARS: Final = 300
# Field names in the APIs of wikis, trackers and drives; the first one present counts.
_TITLES: Final = ("title", "name", "summary", "subject", "displayname")
_LINKS: Final = ("url", "weburl", "htmlurl", "browseurl", "pageurl", "permalink", "webviewlink", "link", "webui")
_DATES: Final = (
    *("updated", "updatedat", "lastmodified", "lastmodifiedtime", "lasteditedtime", "modified", "modifiedtime"),
    *("modifiedat", "lastupdated", "date", "created", "createdat", "createdtime"),
)
_KEYS: Final = ("id", "key", "pageid")
_DEEP_FIELDS: Final = frozenset({"title", "summary", "url"})  # other nested fields name a person or a place
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?")
_FAILURE: Final = re.compile(  # forms in which servers report a failure as a result
    r"\s*(?:error(?: (?:calling|executing|in|while|fetching|running)\b[^\n:]{0,100})?:\s|traceback \(most recent"
    r"|(?:http(?: error)?|status(?: code)?:?) [45]\d\d\b|[45]\d\d (?:client|server) error\b)",
    re.IGNORECASE,
)
MAX_FAILURE_CHARS: Final = 1_000
REFUSALS: Final = re.compile(
    r"(?:status(?: code)?\W{1,3}|http(?: error)?\W{1,2}|\()40[13]\b|\b40[13] client error"
    r"|\b(?:unauthorized|forbidden)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One document of a result. ``keys`` are the names under which a later call may ask for it."""

    text: str
    title: str = ""
    url: str = ""
    updated_at: str = ""
    keys: frozenset[str] = frozenset()


def read_records(text: str) -> list[Record]:
    """Return the records of a result, or the text itself as one if it is not JSON."""
    value = _decode(text)
    if isinstance(value, str):
        return [Record(text=text)]
    return [_record(item) for item in _items_of(value)]


def failure_in(text: str) -> str:
    """Return the message if the result is really a failure, otherwise an empty text."""
    value = _decode(text)
    if isinstance(value, str):
        return value if len(value) <= MAX_FAILURE_CHARS and _FAILURE.match(value) else ""
    if not isinstance(value, Mapping):
        return ""
    status = value.get("status", value.get("statusCode"))
    has_failed = (
        value.get("object") == "error"
        or value.get("success") is False
        or value.get("ok") is False
        or (isinstance(status, int) and status >= 400)  # noqa: PLR2004 - HTTP's errors begin there
        or bool(value.get("errors") and not value.get("data"))
        or bool(value.get("error") and len(value) <= 3)  # noqa: PLR2004 - else it is a field of a record
    )
    return "; ".join(_lines(value)) if has_failed else ""


def without_surrogates(text: str) -> str:
    """Return the text in encodable form: half a character in a result must not end a turn."""
    return text.encode("utf-8", "replace").decode()


def _decode(text: Any) -> Any:
    """Decode JSON, including JSON inside JSON; anything else stays as it is."""
    if not isinstance(text, str) or text.lstrip()[:1] not in {"{", "["}:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict | list) else text


def _items_of(value: Any) -> Sequence[Any]:
    """Return the entries of the list that a result is or contains, if they are records; otherwise the whole result."""
    lists = [value] if isinstance(value, list) else [each for each in value.values() if each and isinstance(each, list)]
    items: list[Any] = max(lists, key=len, default=[])
    if isinstance(value, dict) and (_field(value, _TITLES) or len(lists) > 1):
        return [value]
    are_records = all(isinstance(each, dict) and (_field(each, _TITLES) or _field(each, _LINKS)) for each in items)
    return items if items and are_records else [value]


def _record(value: Any) -> Record:
    date = _DATE.match(_field(value, _DATES))
    return Record(
        text=without_surrogates("\n".join(_lines(value))),
        title=" ".join(_field(value, _TITLES).split())[:MAX_TITLE_CHARS],
        url=_field(value, _LINKS),
        updated_at=date[0].replace(" ", "T") if date else "",
        keys=frozenset(filter(None, (*(_field(value, (key,)) for key in _KEYS), _field(value, _LINKS)))),
    )


def _field(value: Any, names: Sequence[str]) -> str:
    """Return the first of these fields that contains a text: in the record itself, otherwise nested."""
    return _inside(value, names, 0) or next(filter(None, (_inside(value, (name,), _depth(name)) for name in names)), "")


def _depth(name: str) -> int:
    return 3 if name in _DEEP_FIELDS else 1


def _inside(value: Any, names: Sequence[str], max_depth: int) -> str:
    for name in names:
        level = deque([(value, 0)])
        while level:
            holder, depth = level.popleft()
            if not isinstance(holder, Mapping):
                continue
            for key, item in holder.items():
                if re.sub(r"[^a-z]", "", str(key).lower()) == name and (text := _plain(item)):
                    return text
            if depth < max_depth:
                level.extend((item, depth + 1) for item in holder.values())
    return ""


def _plain(value: Any) -> str:
    """Return a text, a number or a text that is split into parts; nothing for anything else."""
    if isinstance(value, str | int) and not isinstance(value, bool):
        return without_surrogates(str(value)).strip()
    if isinstance(value, list) and value and all(isinstance(each, Mapping) and "plain_text" in each for each in value):
        return without_surrogates("".join(str(each["plain_text"]) for each in value))
    return ""


def _lines(value: Any, name: str = "", depth: int = 0) -> Iterator[str]:
    """Yield a JSON value as lines that a person can read: ``name: value``, and long texts as they are."""
    value = _decode(value)
    text = str(value) if isinstance(value, float | bool) else _plain(value)
    if text:
        label = name.replace("_", " ")
        yield text if "\n" in text or not label else f"{label}: {text}"
    elif depth >= MAX_DEPTH:
        return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _lines(item, str(key), depth + 1)
    elif isinstance(value, list):
        texts = [_plain(item) for item in value]
        for item in [", ".join(texts)] if all(texts) else value:
            yield from _lines(item, name, depth + 1)
