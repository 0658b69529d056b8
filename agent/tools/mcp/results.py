"""Sources from the results of one server, with its recent results and the titles of its records."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from agent.tools.mcp.config import McpServer
from agent.tools.mcp.records import Record
from agent.tools.mcp.sanitize import to_one_line
from agent.tools.tool import ToolFailed, ToolResult
from verification.types import Source

MAX_KNOWN: Final = 2_000  # records whose title and link are remembered
_UNKNOWN_RESULT: Final = ("There is no such result any more.", "Call the tool again that brought it.")
MAX_RESULTS: Final = 8  # long results that can be continued


@dataclass(slots=True)
class Pages:
    """The results of one server. ``links`` are resources named in its results."""

    server: McpServer
    links: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _known: OrderedDict[str, Record] = field(default_factory=OrderedDict)
    _results: OrderedDict[str, tuple[str, list[Record]]] = field(default_factory=OrderedDict)
    _count: int = 0

    def add(self, records: Sequence[Record], asked: Iterable[Any], *, title: str, origin: str) -> ToolResult:
        """Return the beginning of a result. A record without a title or link takes those of an earlier one.

        ``asked`` are the values in the call, such as the id of a page that an earlier search found.
        """
        if len(records) == 1:
            earlier = next((self._known[key] for key in map(_key, asked) if key in self._known), Record(text=""))
            said = records[0]
            named = replace(said, title=said.title or earlier.title, url=said.url or earlier.url)
            records = [replace(named, updated_at=said.updated_at or earlier.updated_at)]
        for record in records:
            if record.title:
                self._known |= dict.fromkeys(map(_key, record.keys), replace(record, text=""))
        while len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        self._count += 1
        name = f"r{self._count}"
        self._results[name] = (title, list(records))
        if len(self._results) > MAX_RESULTS:
            self._results.popitem(last=False)
        result = self.read_on(name, origin=origin)
        if not result.hints:  # it was shown completely
            del self._results[name]
        return result

    def read_on(self, name: str, *, origin: str, offset: int = 0, find: str = "") -> ToolResult:
        """Return a part of a result: from an offset, or from the passage with most of the words."""
        if name not in self._results:
            raise ToolFailed(*_UNKNOWN_RESULT)
        title, records = self._results[name]
        if find:
            offset = _passage(records, find)
        parts, end = _cut(records, offset, self.server.max_chars)
        total = sum(len(record.text) for record in records)
        note, hints = "", list[str]()
        if offset or end < total:
            note = f"\n[Characters {offset} to {end} of {total}.]"
        if end < total:
            more = f'{{"from": "{name}", "offset": {end}}}, or with words to "find" in it'
            hints.append(f"{self.server.name}_read reads on: {more}.")
        return ToolResult(
            content="\n".join(part.text for part in parts) + note,
            sources=tuple(self._source(part, title, origin) for part in parts if part.text.strip()),
            hints=tuple(hints),
        )

    def _source(self, record: Record, title: str, origin: str) -> Source:
        return Source(
            id=0,
            title=to_one_line(record.title) or f"{self.server.name}: {title}",
            url=record.url if self.server.links_to(record.url) else "",
            text=record.text,
            origin=origin,
            updated_at=record.updated_at,
            audience=self.server.audience,
        )


def values_in(arguments: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the individual values of a call's arguments."""
    for value in arguments.values():
        if isinstance(value, Mapping):
            yield from values_in(value)
        elif isinstance(value, str | int):
            yield value


def _key(value: Any) -> str:
    return str(value).replace("-", "").lower()  # ids are written with and without hyphens


def _passage(records: Sequence[Record], find: str) -> int:
    """Return the offset of the line after which most of the words occur."""
    words = set(find.casefold().split())
    lines = "".join(record.text for record in records).splitlines(keepends=True)
    near = ["".join(lines[number : number + 5]).casefold() for number in range(len(lines))]
    best = max(range(len(lines)), key=lambda number: sum(word in near[number] for word in words), default=0)
    return sum(map(len, lines[:best]))


def _cut(records: Sequence[Record], offset: int, room: int) -> tuple[list[Record], int]:
    """Return the parts of the records from an offset on that fit, and the offset of the rest."""
    parts, begin = [], 0
    for record in records:
        text = record.text[max(offset - begin, 0) :]
        if text and len(text) > room:
            end = max(text.rfind(mark, 0, room) for mark in "\n ") + 1
            text = text[: end if end > room // 2 else room]
        if text:
            parts.append(replace(record, text=text))
            offset, room = max(offset, begin) + len(text), room - len(text)
        begin += len(record.text)
        if offset < begin or room <= 0:
            break
    return parts, offset
