"""Results of MCP servers: JSON as readable records, each with title, link and date, and failures sent as results."""

import ast
import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import chain, groupby
from typing import Any, Final

from agent.json_data import mapping, objects, string
from agent.knowledge.readers.document import ReadLimits
from agent.knowledge.readers.markdown import without_hidden
from agent.knowledge.readers.reading import FORMATS_BY_TYPE, date_of
from agent.knowledge.readers.text import replace_closed
from agent.knowledge.types import ReadError

MAX_DEPTH: Final = 12
_MAX_WRAPPERS: Final = 4  # levels of objects around a list of records
MAX_FAILURE_CHARS: Final = 1_000
_MAX_PHRASE_CHARS: Final = 300  # for a failure that is plain text
MAX_TITLE_CHARS: Final = 300
_MAX_PRINTED_CHARS: Final = 50_000  # Python takes 0.2 s to read this much
# Field names in the APIs of wikis, trackers and drives; the first one present counts.
_TITLES: Final = ("title", "name", "summary", "subject", "displayname")
_LINKS: Final = (
    *("url", "weburl", "htmlurl", "browseurl", "pageurl", "sourceurl", "permalink", "webviewlink", "link", "webui"),
    *("uri", "href", "source"),
)
_DATES: Final = (
    *("updated", "updatedat", "lastmodified", "lastmodifiedtime", "lasteditedtime", "modified", "modifiedtime"),
    *("modifiedat", "lastupdated", "when", "date", "created", "createdat", "createdtime"),
)
_KEYS: Final = ("id", "key", "pageid")
# What a list says of the call, and not of its records.
_CALL: Final = frozenset(
    {"ok", "success", "object", "type", "requestid", "startat", "offset", "maxresults", "limit", "pagesize", "perpage"}
)
# Parts of one record. Other nested objects are people, places and other documents: their names are not its title.
_PARTS: Final = frozenset(
    {
        *("metadata", "fields", "properties", "attributes", "content", "body", "source", "node", "data", "links"),
        *("result", "results", "item", "items", "page", "issue", "document", "record"),
        *("version", "history", "lastupdated"),
    }
)
_HIGHLIGHT: Final = re.compile(
    r"@@@(?:end)?hl@@@|</?(?:em|mark|strong|b|hl)>"
)  # marks around words that matched a search
_ADDRESS: Final = re.compile(r"https?://|/(?!/)")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?")
_EPOCH: Final = re.compile(r"(\d{10})(?:\d{3}|\.\d+)?")
_BLOB: Final = re.compile(r"(?:data:[\w/+.;=-]+,)?[A-Za-z0-9+/_=-]{500,}")
# JSON after one introductory line, bare or in a Markdown fence.
_WRAPPED_JSON: Final = re.compile(
    r"(?P<before>[^\n#{}\[\]`]{0,200}\n\s*)?(?:```\w*\s*\n)?(?P<json>[\[{].*[\]}])\s*(?:```\s*)?", re.DOTALL
)
_HTML: Final = re.compile(
    r"(?:<\?xml[^>]*>\s*)?<(?:!doctype html|(?:html|head|body|p|div|h[1-6]|ul|ol|table|span|br|ac:[\w-]+)\b)",
    re.IGNORECASE,
)
_HTML_TITLE: Final = re.compile(r"<(?:title|h1)[^<>]*>([^<]+)<", re.IGNORECASE)
_MAX_HTML_CHARS: Final = 500_000
_WORD: Final = re.compile(r"\w+")
# Confluence's own elements, which HTML does not know.
_CODE_DATA: Final = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_STORAGE: Final = (
    (re.compile(r'<ac:parameter ac:name="title">([^<]*)</ac:parameter>'), r" \1 "),
    (re.compile(r"<ac:(parameter|task-id)\b[^<>]*>[^<]*</ac:\1>"), ""),
    (re.compile(r"</ac:task-status>"), ": "),
    (re.compile(r'<ri:page\b[^<>]{0,300}?ri:content-title="([^"<>]*)"[^<>]{0,300}>'), r"\1"),
)
# The words of HTTP and of its libraries for a failure.
_CODE: Final = r"(?:\(|\b(?:http(?:/[\d.]+)?|status|code|error)[^\w\n]{0,3}(?:(?:code|error)[^\w\n]{0,3})?)"
_REFUSED: Final = re.compile(
    rf"{_CODE}40[13]\b|^40[13]$|\b40[13] client error|\b(?:unauthorized|forbidden|not (?:authori[sz]ed|logged in)"
    r"|(?:access|permission) (?:is |was )?denied|(?:you )?(?:do not|don't) have (?:permission|access)"
    r"|authentication (?:failed|(?:is )?required|credentials)|restricted_resource|login required"
    r"|(?:(?:invalid|expired) )(?:api |access )?(?:token|key|credentials)"
    r"|(?:\w+ )?(?:token|session|key|credentials) (?:is |are |has )?(?:invalid|expired))\b",
    re.IGNORECASE,
)
_AWAY: Final = re.compile(
    rf"{_CODE}(?:429|5\d\d)\b|^(?:429|5\d\d)$|\b5\d\d server error|\b(?:econn\w+|etimedout|enotfound"
    r"|max retries|(?:\w+ )?timed out|(?:gateway|request|read|connect) ?timeout"
    r"|rate.limit(?:ed)?(?: exceeded| reached)?|too many requests"
    r"|service unavailable|bad gateway|internal server error|connection (?:refused|reset|error|aborted)"
    r"|name resolution)\b",
    re.IGNORECASE,
)
_PHRASES: Final = "|".join(re.escape(each.phrase) for each in HTTPStatus if each >= HTTPStatus.BAD_REQUEST)
_PHRASE: Final = re.compile(
    rf"[45]\d\d\W+(?:{_PHRASES})|(?:[45]\d\d|timeout)$|(?:\w+ )?not found|(?:bad|too many) requests?|bad gateway"
    r"|an? (?:\w+ )?error (?:has )?occurred|something went wrong",
    re.IGNORECASE,
)
_PHRASE_ENDS: Final = re.compile(r"\s*(?:$|[.:!;,–—-]|\([45]|(?:to|for|while|when|by|in|at|were)\b)")
_ERROR: Final = re.compile(  # the beginnings that servers put before a failure
    r"(?:(?:api|mcp|http|server|internal|network|validation|tool) )?error"
    r"(?: -?\d+| (?:calling|executing|in|while|fetching|getting|searching|running)\b[^\n:]{0,100})?[:\]]"
    r"|(?:[a-z_]\w*\.)*[a-z]+(?:error|exception): |traceback \(most recent"
    r"|(?:(?:tool|request|search|query|call|fetch|api|connection|execution) ){0,2}failed: "
    r"|(?:\w+ )?failed\b[^\n]{0,200}\b(?:(?:status(?: code)?|http)\W{1,2}[45]\d\d|[45]\d\d (?:client|server) error)\b"
    r"|(?:http(?:/[\d.]+)?|status|error)(?: error| code)?\W{1,2}[45]\d\d\b|[45]\d\d (?:client|server) error\b"
    r"|(?:connect )?e(?:conn\w+|timedout|notfound)\b|https?connectionpool\(",
    re.IGNORECASE,
)
_HTTP_ERROR: Final = re.compile(r"[45]\d\d")
_ERRORS: Final = ("error", "errors", "errormessage", "errormessages", "exception", "fault")
_FILLED: Final = ("data", "content", "text", "body", "markdown")
_WRAPPERS: Final = frozenset({"result", "results", "data", "response", "output"})
_LOG_IN: Final = re.compile(r"(?:log|sign)[ -]?in\b", re.IGNORECASE)
_OPENING: Final = re.compile(r"[^\w#<]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One document of a result. ``keys`` are names by which a later call may ask for it."""

    text: str
    title: str = ""
    url: str = ""
    updated_at: str = ""
    keys: frozenset[str] = frozenset()


def read_results(texts: Sequence[str], structured: Any = None) -> list[Record]:
    """Return the records of a result's texts, and of its structured content if the texts omit something of it."""
    parts = [read_records(text) for text in texts]
    shown = {*_WORD.findall(" ".join(record.text for record in chain.from_iterable(parts)))}
    if {*_WORD.findall(" ".join(leaf for _, leaf in _leaves(structured)))} - shown:
        parts.append(read_records(json.dumps(structured)))
    records = [*chain.from_iterable(parts)]
    named = [record for record in records if record.title or record.url]
    if len(named) == 1 and all(len(part) == 1 for part in parts):  # a page whose text is in separate parts
        return [replace(named[0], text="\n".join(record.text for record in records))]
    joined: list[Record] = []
    for is_named, group in groupby(records, lambda record: bool(record.title or record.url)):
        first, *more = group  # adjacent records without a name are one text in several parts
        text = "\n".join(record.text for record in (first, *more))
        joined += [first, *more] if is_named else [replace(first, text=text)]
    return joined


def read_records(text: str) -> list[Record]:
    """Return the records of a text, or the text itself as one if it is not JSON."""
    before, value = _decode_result(text)
    if isinstance(value, str):
        title = _HTML_TITLE.search(value) if _HTML.match(value) else None
        return [Record(text=_readable(value), title=_to_title(title[1] if title else ""))]
    items, rest = _split(value)
    base = next(filter(_ADDRESS.match, _values(value, ("base", "baseurl"))), "")
    known = {"False", *map(str, range(len(items) + 1))}  # the rest of a list is a record only if it says more
    if not items or any(leaf not in known and _word(name) not in _CALL for name, leaf in _leaves(rest)):
        items = [rest, *items]
    head = [Record(text=before)] if before else []
    return [*head, *(_record(item, base) for item in items)]


def _decode_result(text: str) -> tuple[str, Any]:
    """Return the introductory line and the value of a text that is JSON in any wrapping, or else the text."""
    stripped = text.strip("\ufeff \t\r\n")
    value = _decode(stripped)
    if not isinstance(value, str):
        return "", value
    lines = [line for line in stripped.splitlines() if line.strip()]
    if lines and all(isinstance(_decode(line), dict | list) for line in lines):
        return "", [*map(_decode, lines)]
    if wrapped := _WRAPPED_JSON.fullmatch(stripped):
        inner = _decode(wrapped["json"])
        if not isinstance(inner, str):
            return (wrapped["before"] or "").strip(), inner
    return "", text if value == stripped else value


def _decode(text: Any) -> Any:
    """Decode JSON, including JSON inside JSON, and a printed Python object; anything else stays as it is."""
    if not isinstance(text, str) or text[:1] not in {"{", "[", '"'}:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
        if text[1:2] in {"'", "{", "["} and len(text) <= _MAX_PRINTED_CHARS:
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                value = ast.literal_eval(text)
    if isinstance(value, str) and value != text:
        return _decode(value)
    return value if isinstance(value, dict | list | str) else text


def _split(value: Any, depth: int = 0) -> tuple[list[Any], Any]:
    """Return the records that a result lists and what remains of it, which is the whole result if it lists none."""
    value = _decode(value)
    if isinstance(value, list):
        items = [item for item in map(_decode, value) if item is not None]
        return (items, None) if items and 2 * sum(map(_is_record, items)) >= len(items) else ([], value)
    if not isinstance(value, Mapping) or depth > _MAX_WRAPPERS:
        return [], value
    if len(value) > 1 and all(map(_is_record, value.values())):  # records under their ids
        return [*value.values()], None
    parts = {key: _split(item, depth + 1) for key, item in value.items()}
    lists = {key: items for key, (items, _) in parts.items() if items}
    linked = {key for key, items in lists.items() if any(map(_link, items))}
    is_record = any(_values(value, _TITLES, 0)) and (_link(value, max_depth=0) or not linked)
    if not lists or is_record:
        return [], value
    chosen = linked or {max(lists, key=lambda key: len(lists[key]))}
    rest = {key: parts[key][1] if key in chosen else item for key, item in value.items()}
    return [item for key in lists if key in chosen for item in lists[key]], rest


def _is_record(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(_field(value, _TITLES) or _link(value))


def _record(value: Any, base: str) -> Record:
    url = _link(value)
    keys = (*(_field(value, (key,)) for key in _KEYS), url)
    return Record(
        text=string("\n".join(_lines(value))),
        title=_to_title(_field(value, _TITLES)),
        url=f"{base}{url}" if url.startswith("/") else url,
        updated_at=next(filter(None, (_to_date(date) for name in _DATES for date in _values(value, (name,), 2))), ""),
        keys=frozenset(filter(None, keys)),
    )


def _link(value: Any, max_depth: int = 3) -> str:
    return next(filter(_ADDRESS.match, _values(value, _LINKS, max_depth)), "")


def _field(value: Any, names: Sequence[str]) -> str:
    return next(_values(value, names), "")


def _values(value: Any, names: Sequence[str], max_depth: int = 3) -> Iterator[str]:
    """Yield the texts of these fields: in the record itself, then in its parts."""
    level = [value]
    for _ in range(max_depth + 1):
        items = [(key, item) for holder in level if isinstance(holder, Mapping) for key, item in holder.items()]
        words = [(_word(key, item), item) for key, item in items]
        yield from (text for name in names for word, item in words if word == name and (text := _plain(item)))
        level = [item for word, item in words if word in _PARTS or len(words) == 1]


def _word(key: Any, item: Any = None) -> str:
    is_title = isinstance(item, Mapping) and item.get("type") == "title"  # Notion's, which can have any name
    return "title" if is_title else re.sub(r"[^a-z]", "", str(key).lower())


def _plain(value: Any) -> str:
    """Return a text, a number, or a text that is split into parts; for anything else an empty text."""
    if isinstance(value, str | int) and not isinstance(value, bool):
        return _readable(string(str(value)).strip())
    if isinstance(value, list) and value and all(isinstance(each, Mapping) and "plain_text" in each for each in value):
        return string("".join(str(each["plain_text"]) for each in value))
    if not isinstance(value, Mapping):
        return ""
    if value.get("type") == "doc":
        return string(_adf(value))
    inner = value.get("rendered", value.get("type") == "title" and value.get("title"))
    return _plain(inner) if inner else ""


def _adf(node: Mapping[str, Any]) -> str:
    """Return the text of a node of Atlassian's document format."""
    kind, attributes = string(node, "type"), mapping(node, "attrs")
    if kind == "date":
        return _to_date(str(attributes.get("timestamp")))[:10]
    parts = [_adf(each) for each in objects(node, "content")]
    joint = {"paragraph": "", "heading": "", "codeBlock": "", "tableRow": " | "}.get(kind, "\n")
    own = string(node, "text") or string(attributes, "text") or string(attributes, "url")
    return "\n" if kind == "hardBreak" else "\n".join(filter(None, (own, joint.join(parts))))


def _readable(text: str) -> str:
    """Return a text without markup and data that only programs read."""
    if _BLOB.fullmatch(text):
        return "[data, not shown]"
    if not _HTML.match(text) or len(text) > _MAX_HTML_CHARS:
        return html.unescape(_HIGHLIGHT.sub("", without_hidden(text, may_be_code=True)))
    page = replace_closed(_CODE_DATA, lambda code: html.escape(code[1]), text, "]]>")
    for pattern, replacement in _STORAGE:
        page = pattern.sub(replacement, page)
    with suppress(ReadError):
        parts = FORMATS_BY_TYPE["text/html"].read(page.encode("utf-8", "replace"), ReadLimits()).parts
        return "\n".join(part.text for part in parts).strip()
    return text


def _to_title(text: str) -> str:
    return " ".join(text.split())[:MAX_TITLE_CHARS]


def _to_date(text: str) -> str:
    """Return an ISO 8601 date or time, or an empty text for anything else and for a future date."""
    if seconds := _EPOCH.fullmatch(text):
        text = f"{datetime.fromtimestamp(int(seconds[1]), UTC):%Y-%m-%dT%H:%M:%SZ}"
    written = _DATE.match(text)
    day = date_of({"updated": written[0][:10] if written else text}, "", committed=0, changed=0)
    return written[0].replace(" ", "T") if written and day else day


def _lines(value: Any) -> Iterator[str]:
    """Yield a JSON value as lines that a person can read: ``name: value``, and long texts as they are."""
    for name, text in _leaves(value):
        yield text if "\n" in text or not name else f"{name}: {text}"


def _is_part(key: Any, item: Any) -> bool:
    has_objects = isinstance(item, list) and any(isinstance(each, Mapping) for each in item) and not _plain(item)
    return _word(key) in _PARTS and (has_objects or isinstance(item, Mapping))


def _leaves(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield each text of a value with its name, which has the names of the objects around it."""
    value = _decode(value)
    text = str(value) if isinstance(value, float | bool) else _plain(value)
    if text:
        is_date = _word(name.rpartition(" ")[2]) in _DATES
        yield name, (is_date and _EPOCH.fullmatch(text) and _to_date(text)) or text
    elif depth >= MAX_DEPTH:
        return
    elif isinstance(value, Mapping):
        kind = value.get("type")
        is_property = isinstance(kind, str) and kind in value and "object" not in value  # Notion's
        given = {"": value[kind]} if is_property else value
        for key, item in zip(given, map(_decode, given.values()), strict=True):
            is_only = not depth and len(value) == 1 and isinstance(item, Mapping)
            label = "" if is_only or _is_part(key, item) else str(key).replace("_", " ")
            yield from _leaves(item, f"{name} {label}".strip(), depth + 1)
    elif isinstance(value, list):
        items = [*map(_decode, value)]
        texts = [*map(_plain, items)]
        for item in [", ".join(texts)] if all(texts) else items:
            yield from _leaves(item, name, depth + 1)


def failure_in(text: str) -> str:
    """Return the error message if the result is really a failure, otherwise an empty text."""
    _, value = _decode_result(text)
    while isinstance(value, list | dict) and len(value) == 1 and (isinstance(value, list) or {*value} <= _WRAPPERS):
        value = _decode(value[0] if isinstance(value, list) else next(iter(value.values())))
    if isinstance(value, str):
        return _failure_in_text(value)
    return "; ".join(_lines(value)) if isinstance(value, Mapping) and _has_failed(value) else ""


def refusal_in(failure: str) -> str:
    """Return the message if a failure concerns the whole server, or an empty text if it is about one call."""
    if _REFUSED.search(failure):
        return "does not let Orion in"
    return "cannot answer now" if _AWAY.search(failure) else ""


def _failure_in_text(text: str) -> str:
    if _HTML.match(text):  # the page of a proxy, or a login form
        is_form, text = 'type="password"' in text, _to_title("".join(_HTML_TITLE.findall(text)[:1]))
        if is_form or _LOG_IN.match(text):
            return f"Login required: {text}"
    elif len(text) > MAX_FAILURE_CHARS:
        return ""
    begin = _OPENING.match(text)
    start = begin.end() if begin else 0
    if _ERROR.match(text, start):
        return text
    phrases = (each.match(text, start) for each in (_PHRASE, _REFUSED, _AWAY)) if len(text) <= _MAX_PHRASE_CHARS else ()
    return text if any(found and _PHRASE_ENDS.match(text, found.end()) for found in phrases) else ""


def _has_failed(value: Mapping[str, Any]) -> bool:
    """Return whether an object reports a failure, in the style of HTTP, JSend, GraphQL or a vendor."""
    fields = {_word(key): item for key, item in value.items()}
    kind = {name: str(item).lower() for name, item in fields.items()}
    codes = [kind.get(name, "") for name in ("status", "statuscode", "httpstatus")]
    if any(map(_HTTP_ERROR.fullmatch, codes)) or kind.get("iserror") == "true" or kind.get("object") == "error":
        return True
    title = _field(value, _TITLES)
    if title or _link(value):
        return title.endswith("Error") and "message" in fields  # an exception of JavaScript
    is_filled = bool(_split(value)[0]) or any(any(_leaves(fields.get(name))) for name in _FILLED)
    return (
        "false" in {kind.get("success"), kind.get("ok")}
        or kind.get("type") == "error"
        or bool(_HTTP_ERROR.fullmatch(kind.get("code", "")))
        or (kind.get("status") in {"error", "fail", "failed", "failure"} and not _field(value, _KEYS))
        or (
            not is_filled
            and any(isinstance(fields.get(name), str | list | dict | bool) and fields[name] for name in _ERRORS)
        )
        or any(_failure_in_text(string(fields.get(name))) for name in ("message", "detail", "code"))
    )
