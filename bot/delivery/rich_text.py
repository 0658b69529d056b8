"""Convert a verified chunk of mrkdwn to Slack's ``rich_text`` and ``table`` blocks. Pure.

Words, links and code stay the same. A citation that a whole list or paragraph repeats is shown once. Aligned lines
become a table or a list of short lines, because monospaced lines wrap in a narrow thread pane.
"""

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple

from agent.knowledge.slack_message import unescape_wire
from verification.markup.lines import drawn_rows, emphasised, is_drawn, strip_marks
from verification.markup.scanner import Segment, fences, segments

Block = dict[str, Any]
Row = Sequence[str]

_ITEM: Final = re.compile(r"( *)(?:[•◦▪-]|(\d{1,9})[.)]) +(?=\S|$)")
_QUOTE: Final = re.compile(r" *(?:>|&gt;) ?")
_CITATION: Final = re.compile(r"\[(\d{1,9})\]")
_STYLES: Final = {"*": "bold", "_": "italic", "~": "strike", "`": "code"}
_MARKED: Final = re.compile(r"([*_~`])([^\s*_~`](?:.*\S)?)\1")
_MAX_INDENT: Final = 8
MAX_ROWS: Final = 100
MAX_COLUMNS: Final = 20
MAX_CELLS_LENGTH: Final = 10_000  # maximum characters in all cells of a message's only table
MAX_LIST_ROWS: Final = 60  # a longer list is harder to read than aligned lines


def rich_text(chunk: str) -> Block:
    """Return the chunk as one ``rich_text`` block."""
    page = _Page()
    # Slack shows no language, so the first line of "```npm ci\nnpm test```" is code.
    starts = {fence: chunk.find(fence.info, fence.start) if fence.info else fence.body for fence in fences(chunk)}
    bodies = {fence.start: chunk[start : fence.body_end] for fence, start in starts.items()}
    for line in _split_lines(chunk):
        if line and line[0].kind == "fence":
            page.end_group()
            page.gap = False
            if code := unescape_wire(bodies[line[0].start].strip("\n")):
                page.elements.append({"type": "rich_text_preformatted", "elements": [_text(code)]})
        else:
            page.add_line(line, chunk)
    page.end_group()
    return {"type": "rich_text", "elements": page.elements}


@dataclass(slots=True)
class _Page:
    """The block's elements so far. ``group``: the words of each item in a list, or each line in a paragraph.

    A paragraph's words are put into its element at the end of the group. ``gap``: an empty line was read last.
    """

    elements: list[Block] = field(default_factory=list)
    group: list[list[Block]] = field(default_factory=list)
    gap: bool = False
    indents: list[int] = field(default_factory=list)

    def add_line(self, line: Sequence[Segment], chunk: str) -> None:
        """Add one line of a paragraph, a list or a quotation."""
        pieces = [(segment.kind, chunk[segment.start : segment.end]) for segment in line]
        first = pieces[0][1] if pieces and pieces[0][0] == "text" else ""
        if not "".join(text for _, text in pieces).strip():
            self.gap = True
            return
        item, quote = _ITEM.match(first), _QUOTE.match(first)
        if pieces[0][0] == "text" and (prefix := item or quote):
            pieces[0] = ("text", first[prefix.end() :])
        if item:
            self._add_item(len(item[1]), int(item[2] or 0), _inline(pieces))
        elif quote:
            self._add_paragraph("rich_text_quote", _inline(pieces))
        elif first.startswith("  ") and self._kind == "rich_text_list":
            pieces[0] = ("text", first.lstrip())
            _extend(self.group[-1], [_text("\n"), *_inline(pieces)])
        else:
            self._add_paragraph("rich_text_section", _inline(pieces))
        self.gap = False

    @property
    def _kind(self) -> str:
        return str(self.elements[-1]["type"]) if self.elements else ""

    def _add_item(self, indent: int, number: int, words: list[Block]) -> None:
        style = "ordered" if number else "bullet"
        last = self.elements[-1] if self._kind == "rich_text_list" else {}
        if not last or (self.gap and not indent and last["style"] != style):
            self.end_group()
        while self.indents and self.indents[-1] > indent:
            self.indents.pop()
        if not self.indents or self.indents[-1] < indent:
            self.indents.append(indent)
        level = min(len(self.indents) - 1, _MAX_INDENT)
        item = {"type": "rich_text_section", "elements": words}
        self.group.append(words)
        follows = not number or number in {1, last.get("offset", 0) + len(last.get("elements", ())) + 1}
        if (last.get("style"), last.get("indent")) == (style, level) and follows:
            last["elements"].append(item)
            return
        start = {"offset": number - 1} if number > 1 else {}
        self.elements.append({"type": "rich_text_list", "style": style, "indent": level, **start, "elements": [item]})

    def _add_paragraph(self, kind: Literal["rich_text_section", "rich_text_quote"], words: list[Block]) -> None:
        """Continue the last paragraph of this kind, or begin one. Slack's composer joins sections by line breaks."""
        if self._kind != kind or (self.gap and kind == "rich_text_section"):
            self.end_group()
        if self._kind == kind:
            words = [_text("\n\n" if self.gap else "\n"), *words]
        else:
            after_list = self.gap and self.elements and kind == "rich_text_section"
            words = [_text("\n"), *words] if after_list else words
            self.elements.append({"type": kind, "elements": []})
        self.group.append(words)

    def end_group(self) -> None:
        """Show a repeated citation once, and put the lines of a paragraph together."""
        _cite_once(self.group)
        if self._kind != "rich_text_list":
            for words in self.group:
                _extend(self.elements[-1]["elements"], words)
        self.group, self.indents = [], []


def _split_lines(chunk: str) -> Iterator[list[Segment]]:
    """Yield the segments of each line; a fence is a separate line."""
    line: list[Segment] = []
    for segment in segments(chunk):
        if segment.kind == "fence":
            if line:
                yield line
            yield [segment]
            line = []
            continue
        start = segment.start
        while segment.kind == "text" and (end := chunk.find("\n", start, segment.end)) >= 0:
            yield [*line, *([Segment("text", start, end)] if end > start else [])]
            line, start = [], end + 1
        if start < segment.end:
            line.append(Segment(segment.kind, start, segment.end))
    yield line


def _inline(pieces: Sequence[tuple[str, str]]) -> list[Block]:
    """Return the elements of one line, with marks that pair up as styles."""
    line = "".join(text if kind == "text" else "\0" * len(text) for kind, text in pieces)
    around = [""] * len(line)  # the marks of each character
    marks: set[int] = set()
    for start, end in emphasised(line, 0, len(line)):
        marks |= {start - 1, end}
        around[start:end] = [signs + line[start - 1] for signs in around[start:end]]
    elements: list[Block] = []
    offset = 0
    for kind, text in pieces:
        shown = [(around[offset + at], char) for at, char in enumerate(text) if offset + at not in marks]
        for signs, group in groupby(shown, itemgetter(0)):
            element = _element(kind, "".join(char for _, char in group))
            style = {**element.get("style", {}), **{_STYLES[sign]: True for sign in signs}}
            styled = style and element["type"] in {"text", "link"}
            _extend(elements, [{**element, "style": style} if styled else element])
        offset += len(text)
    return elements


def _element(kind: str, text: str) -> Block:
    if kind == "token":
        return _token(text[1:-1])
    if kind == "code":
        ticks = len(text) - len(text.lstrip("`"))
        return _text(unescape_wire(text[ticks:-ticks] if len(text) > 2 * ticks else text), {"code": True})
    return _text(unescape_wire(text.replace("\u200b", "")))


def _token(inner: str) -> Block:
    target, _, label = inner.partition("|")
    if target[:1] == "@":
        return {"type": "user", "user_id": target[1:]}
    if target[:1] == "#":
        return {"type": "channel", "channel_id": target[1:]}
    if target[:1] == "!":
        return _text(unescape_wire(label or "@" + target[1:].partition("^")[0]))
    url = unescape_wire(target)
    styles: dict[str, bool] = {}
    while marked := _MARKED.fullmatch(label):
        label, styles[_STYLES[marked[1]]] = marked[2], True
    label = unescape_wire(strip_marks(label))  # a link has one style: marks inside its label are dropped
    link = {"type": "link", "url": url, "text": label or url.removeprefix("mailto:")}
    return {**link, "style": styles} if styles else link


def _cite_once(parts: Sequence[list[Block]]) -> None:
    """If all parts have the same citation, keep only the last one."""
    cited = [[one for one in part if _is_citation(one)] for part in parts]
    links = [one for part in cited for one in part]
    if not all(cited) or len({(one["url"], one["text"]) for one in links}) != 1:
        return
    for part in parts:
        for index in reversed(range(len(part))):
            if not _is_citation(part[index]) or part[index] is links[-1]:
                continue
            del part[index]
            if index and part[index - 1]["type"] == "text":
                part[index - 1] = {**part[index - 1], "text": part[index - 1]["text"].rstrip(" ")}
        part[:] = [one for one in part if one.get("text") != ""]


def _is_citation(element: Block) -> bool:
    return element["type"] == "link" and _CITATION.fullmatch(element["text"]) is not None


def _extend(elements: list[Block], more: Iterable[Block]) -> None:
    """Add elements, and join texts of the same style."""
    for one in more:
        last = elements[-1] if elements else {}
        if one["type"] == last.get("type") == "text" and one.get("style") == last.get("style"):
            elements[-1] = {**last, "text": last["text"] + one["text"]}
        elif one.get("text") != "":
            elements.append(one)


def _text(text: str, style: dict[str, bool] | None = None) -> Block:
    return {"type": "text", "text": text, **({"style": style} if style else {})}


class Part(NamedTuple):
    """A part of a chunk. If it is a table, ``rows`` has its cells, header first."""

    text: str
    rows: Sequence[Row] = ()


def split_tables(chunk: str) -> list[Part]:
    """Split a chunk into mrkdwn and tables, in order. A table with rows of unequal length remains a fence."""
    parts: list[Part] = []
    position = 0
    for fence in fences(chunk):
        body = chunk[fence.body : fence.body_end].strip("\n")
        rows = drawn_rows(html.unescape(body)) if is_drawn(body) else []
        if len({len(row) for row in rows}) == 1 and len(rows[0]) <= MAX_COLUMNS:
            parts += [Part(chunk[position : fence.start]), Part(chunk[fence.start : fence.end], rows)]
            position = fence.end
    if not parts:
        return [Part(chunk)]
    parts.append(Part(chunk[position:]))
    return [part._replace(text=part.text.strip("\n")) for part in parts if part.text.strip()]


def is_native_table(rows: Sequence[Row]) -> bool:
    """Return whether Slack accepts these rows as the table of a message."""
    return len(rows) <= MAX_ROWS and sum(len(cell) for row in rows for cell in row) <= MAX_CELLS_LENGTH


def table_block(rows: Sequence[Row], urls: Mapping[str, str]) -> Block:
    """Return the rows as a ``table`` block with a bold header and wrapped columns. ``urls`` are of cited sources."""
    texts = [[_text_elements(cell, urls, bold=number == 0) for cell in row] for number, row in enumerate(rows)]
    sections = [[{"type": "rich_text_section", "elements": words} for words in row] for row in texts]
    cells = [[{"type": "rich_text", "elements": [section]} for section in row] for row in sections]
    return {"type": "table", "rows": cells, "column_settings": [{"is_wrapped": True} for _ in rows[0]]}


def list_block(rows: Sequence[Row], urls: Mapping[str, str]) -> Block:
    """Return the rows as a list: the first cell of each, and under it the other cells with their column names."""
    (_, *names), *body = rows
    elements: list[Block] = []
    for first, *rest in body:
        named = [
            [*_text_elements(f"{name}: ", urls), *_text_elements(cell, urls)]
            for name, cell in zip(names, rest, strict=True)
            if cell
        ]
        for indent, items in enumerate(([_text_elements(first, urls, bold=True)], named)):
            sections = [{"type": "rich_text_section", "elements": words} for words in items]
            one = {"type": "rich_text_list", "style": "bullet", "indent": indent, "elements": sections}
            elements += [one] if sections else []
    return {"type": "rich_text", "elements": elements}


def _text_elements(text: str, urls: Mapping[str, str], *, bold: bool = False) -> list[Block]:
    """Return text elements, and links for citations that have an address. Slack rejects an empty text."""
    style = {"style": {"bold": True}} if bold else {}
    words: list[Block] = []
    position = 0
    for citation in _CITATION.finditer(text):
        if url := urls.get(citation[1]):
            words += [{"type": "text", "text": text[position : citation.start()], **style}]
            words += [{"type": "link", "url": url, "text": citation[0]}]
            position = citation.end()
    words.append({"type": "text", "text": text[position:], **style})
    return [word for word in words if word["text"]] or [{"type": "text", "text": " "}]
