"""A source's text as units that can be quoted: sentences, list items, steps, table rows, code blocks, in order."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from typing import Final, Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from verification.evidence.passages import sentence_spans
from verification.text.language import detect_language
from verification.types import Source

Kind = Literal["sentence", "field", "item", "step", "row", "code"]
"""A field is a line such as ``Owner: the platform team``."""

_PARSER: Final = MarkdownIt("commonmark").enable("table")
_LISTS: Final[dict[str, Kind]] = {"bullet_list_open": "item", "ordered_list_open": "step"}
_FIELD: Final = re.compile(r"[*_]{0,2}[^\W\d][\w ./-]{1,30}:[*_]{0,2} \S.{0,80}")
_ENDS: Final = re.compile(r"[.!?:;,。！？：；，…][\"'”’»)*_`\]]*$")
_LABEL_CHARS: Final = 60
_LABEL_SHARE: Final = 0.6
_CJK_EDGE: Final = re.compile(r"(?<=[\u3040-\u30ff\u3400-\u9fff。、，])\n(?=[\u3040-\u30ff\u3400-\u9fff])")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotableUnit:
    """One quotable piece.

    ``block`` numbers its paragraph, list or table. ``context`` are the headings above it from the top, joined by " › ".
    ``marker`` is the beginning of a list item (``-``, ``3.``), ``depth`` its nesting.
    """

    source: Source
    text: str
    kind: Kind
    block: int
    context: str = ""
    marker: str = ""
    depth: int = 0


@lru_cache(maxsize=256)
def units_of(source: Source) -> tuple[QuotableUnit, ...]:
    """Return all units of a source, in order."""
    reader = _Reader(source=source, language=detect_language(source.text[:4_000]))
    for token in _PARSER.parse(source.text):
        reader.take(token)
    return tuple(reader.units)


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Walks the tokens of a text and remembers where it is.

    ``label`` is a line that serves as a heading without the markup of one, ``head`` the first row of the table.
    """

    source: Source
    language: str | None
    units: list[QuotableUnit] = field(default_factory=list)
    block: int = 0
    headings: dict[int, str] = field(default_factory=dict)
    label: str = ""
    heading_level: int = 0
    lists: list[Kind] = field(default_factory=list)
    marker: str = ""
    head: list[str] = field(default_factory=list)
    cells: list[str] | None = None

    def take(self, token: Token) -> None:
        if token.level == 0 and token.nesting >= 0:
            self.block += 1
        if token.type == "inline":
            self._inline(token.content)
        elif token.type in {"fence", "code_block"}:
            self._add(token.content.strip("\n"), "code")
        elif token.type in {"heading_open", "heading_close"}:
            self.heading_level = int(token.tag[1]) if token.nesting > 0 else 0
        elif token.tag in {"ul", "ol"}:
            self.lists = [*self.lists, _LISTS[token.type]] if token.nesting > 0 else self.lists[:-1]
        elif token.type == "list_item_open":
            self.marker = f"{token.info}." if token.info else "-"
        else:
            self._table(token.type)

    def _inline(self, content: str) -> None:
        text = _one_line(content)
        if self.heading_level:
            above = {level: title for level, title in self.headings.items() if level < self.heading_level}
            self.headings, self.label = {**above, self.heading_level: " ".join(content.split())}, ""
        elif self.cells is not None:
            self.cells.append(text)
        elif not self.lists:
            self._paragraph(content)
        else:
            if not self.marker and self.units and self.units[-1].block == self.block:  # goes on in the same item
                last = self.units.pop()
                text, self.marker = f"{last.text} {text}", last.marker
            self._add(text, self.lists[-1])
            self.marker = ""

    def _table(self, event: str) -> None:
        """Read rows under the names of their columns, which the first row gives."""
        if event == "table_open":
            self.head = []
        elif event == "tr_open":
            self.cells = []
        elif event == "tr_close" and self.cells is not None:
            if self.head:
                named = zip_longest(self.head[: len(self.cells)], self.cells, fillvalue="")
                self._add("; ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell), "row")
            self.head, self.cells = self.head or self.cells, None

    def _paragraph(self, content: str) -> None:
        lines = content.split("\n")
        longest = max(map(len, lines))
        held: list[str] = []
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            is_field = _FIELD.fullmatch(line.strip()) is not None
            if not is_field and not _is_label(line, following, longest):
                held.append(line)
                continue
            self._sentences(held)
            held = []
            self.block += 1
            if is_field:
                self._add(line.strip(), "field")
                self.block += 1
            else:
                self.label = line.strip()
        self._sentences(held)

    def _sentences(self, lines: Sequence[str]) -> None:
        text = _one_line("\n".join(lines))
        begin: int | None = None
        for start, end in sentence_spans(text, self.language):
            begin = start if begin is None else begin
            if text.count("`", begin, end) % 2 == 0 or end == len(text):  # no sentence ends inside code
                self._add(text[begin:end], "sentence")
                begin = None

    def _add(self, text: str, kind: Kind) -> None:
        if text.strip():
            unit = QuotableUnit(
                source=self.source,
                text=text,
                kind=kind,
                block=self.block,
                context=" › ".join(part for part in (*self.headings.values(), self.label) if part),
                marker=self.marker if kind in {"item", "step"} else "",
                depth=max(0, len(self.lists) - 1),
            )
            self.units.append(unit)


def _one_line(text: str) -> str:
    return " ".join(_CJK_EDGE.sub("", text).split())  # no space between lines of a script without spaces


def _is_label(line: str, following: str, longest: int) -> bool:
    """Return True for a heading without markup: a short line above longer ones, not the beginning of a sentence."""
    text = line.strip()
    short = len(text) <= min(_LABEL_CHARS, _LABEL_SHARE * longest)
    begins = following.strip()[:1]
    return bool(text) and short and not _ENDS.search(text) and (begins.isupper() or begins.isdigit())
