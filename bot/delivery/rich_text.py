"""Convert a verified chunk of mrkdwn to Slack's ``rich_text`` block: real lists, code and paragraphs. Pure.

The words, links and code are those of the chunk. A citation that a whole list or paragraph repeats is shown once.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from agent.knowledge.slack_message import unescape_wire
from verification.markup.scanner import Segment, fences, segments

Block = dict[str, Any]

_ITEM: Final = re.compile(r"( *)(?:[•◦▪-]|(\d{1,9})[.)]) +(?=\S|$)")
_QUOTE: Final = re.compile(r" *(?:>|&gt;) ?")
_CITATION: Final = re.compile(r"\[\d{1,9}\]")
_STYLES: Final = {"*": "bold", "_": "italic", "~": "strike"}
_MARK: Final = re.compile(r"[*_~]")
_MAX_INDENT: Final = 8


class _Mark(NamedTuple):
    """An emphasis mark, and if its neighbours allow it to open or close a span."""

    sign: str
    opens: bool
    closes: bool


def rich_text(chunk: str) -> Block:
    """Return the chunk as one ``rich_text`` block."""
    page = _Page()
    bodies = {fence.start: chunk[fence.body : fence.body_end] for fence in fences(chunk)}
    for line in _split_lines(chunk):
        if line and line[0].kind == "fence":
            page.add_code(unescape_wire(bodies[line[0].start].strip("\n")))
        else:
            page.add_line(line, chunk)
    return {"type": "rich_text", "elements": page.finish()}


@dataclass(slots=True)
class _Page:
    """The block's elements so far. ``group`` are the sections of the present list or paragraph."""

    elements: list[Block] = field(default_factory=list)
    group: list[Block] = field(default_factory=list)
    gap: bool = False
    indents: list[int] = field(default_factory=list)

    def add_code(self, code: str) -> None:
        """Add a code block."""
        self._end_group()
        if code:
            self.elements.append({"type": "rich_text_preformatted", "elements": [{"type": "text", "text": code}]})
        self.gap = False

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
            _extend(self.group[-1]["elements"], [_text("\n"), *_inline(pieces)])
        else:
            self._add_paragraph("rich_text_section", _inline(pieces))
        self.gap = False

    def finish(self) -> list[Block]:
        """Return the elements."""
        self._end_group()
        return self.elements

    @property
    def _kind(self) -> str:
        return str(self.elements[-1]["type"]) if self.elements else ""

    def _add_item(self, indent: int, number: int, words: list[Block]) -> None:
        style = "ordered" if number else "bullet"
        last = self.elements[-1] if self._kind == "rich_text_list" else {}
        if not last or (self.gap and not indent and last["style"] != style):
            self._end_group()
        while self.indents and self.indents[-1] > indent:
            self.indents.pop()
        if not self.indents or self.indents[-1] < indent:
            self.indents.append(indent)
        level = min(len(self.indents) - 1, _MAX_INDENT)
        item = {"type": "rich_text_section", "elements": words}
        self.group.append(item)
        follows = not number or number in {1, last.get("offset", 0) + len(last.get("elements", ())) + 1}
        if (last.get("style"), last.get("indent")) == (style, level) and follows:
            last["elements"].append(item)
            return
        start = {"offset": number - 1} if number > 1 else {}
        self.elements.append({"type": "rich_text_list", "style": style, "indent": level, **start, "elements": [item]})

    def _add_paragraph(self, kind: Literal["rich_text_section", "rich_text_quote"], words: list[Block]) -> None:
        """Continue the last paragraph of this kind, or begin one. Slack's own composer joins sections by line ends."""
        if self._kind != kind or (self.gap and kind == "rich_text_section"):
            self._end_group()
        if self._kind == kind:
            words = [_text("\n\n" if self.gap else "\n"), *words]
        else:
            after_list = self.gap and self.elements and kind == "rich_text_section"
            words = [_text("\n"), *words] if after_list else words
            self.elements.append({"type": kind, "elements": []})
        part = {"elements": words}
        self.group.append(part)
        self.elements[-1].setdefault("parts", []).append(part)

    def _end_group(self) -> None:
        """Show a repeated citation once, and put the paragraph's parts together."""
        _cite_once([part["elements"] for part in self.group])
        for element in self.elements[-1:]:
            for part in element.pop("parts", ()):
                _extend(element["elements"], part["elements"])
        self.group, self.indents = [], []


def _split_lines(chunk: str) -> Iterator[list[Segment]]:
    """Yield the segments of each line; a fence is a line of its own."""
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
    """Return the elements of one line."""
    elements: list[Block | _Mark] = []
    line = "".join(text if kind == "text" else "\0" * len(text) for kind, text in pieces)
    offset = 0
    for kind, text in pieces:
        if kind == "code":
            ticks = len(text) - len(text.lstrip("`"))
            inside = text[ticks:-ticks] if len(text) > 2 * ticks else text
            elements.append(_text(unescape_wire(inside), {"code": True}))
        elif kind == "token":
            elements.append(_token(text[1:-1]))
        else:
            elements += _split_marks(line, offset, offset + len(text))
        offset += len(text)
    return _apply_marks(elements)


def _split_marks(line: str, start: int, end: int) -> Iterator[Block | _Mark]:
    position = start
    for match in _MARK.finditer(line, start, end):
        if match.start() > position:
            yield _text(unescape_wire(line[position : match.start()].replace("\u200b", "")))
        before, after = line[match.start() - 1 : match.start()] or " ", line[match.end() : match.end() + 1] or " "
        yield _Mark(match[0], opens=not (before.isalnum() or after.isspace()), closes=not before.isspace())
        position = match.end()
    if end > position:
        yield _text(unescape_wire(line[position:end].replace("\u200b", "")))


def _pair_up(elements: Sequence[Block | _Mark]) -> dict[int, int]:
    """Return the index of the closing mark for each opening one."""
    ends: dict[int, int] = {}
    stack: list[tuple[int, str]] = []
    for index, one in enumerate(elements):
        if not isinstance(one, _Mark):
            continue
        opener = next((n for n, (_, sign) in enumerate(stack) if sign == one.sign), -1) if one.closes else -1
        if opener >= 0:
            ends[stack[opener][0]] = index
            del stack[opener:]
        elif one.opens:
            stack.append((index, one.sign))
    return ends


def _apply_marks(elements: Sequence[Block | _Mark]) -> list[Block]:
    """Turn marks that pair up into styles; others remain text."""
    ends = _pair_up(elements)
    styled: list[Block] = []
    open_until: dict[str, int] = {}
    for index, one in enumerate(elements):
        if not isinstance(one, _Mark):
            styled.append(_with_style(one, dict.fromkeys(open_until, True)))
        elif index in ends:
            open_until[_STYLES[one.sign]] = ends[index]
        elif index in open_until.values():
            open_until = {style: end for style, end in open_until.items() if end != index}
        else:
            styled.append(_with_style(_text(one.sign), dict.fromkeys(open_until, True)))
    joined: list[Block] = []
    _extend(joined, styled)
    return joined


def _with_style(element: Block, style: dict[str, bool]) -> Block:
    style = {**element.get("style", {}), **style}
    return {**element, "style": style} if style and element["type"] in {"text", "link"} else element


def _token(inner: str) -> Block:
    target, _, label = inner.partition("|")
    if target[:1] == "@":
        return {"type": "user", "user_id": target[1:]}
    if target[:1] == "#":
        return {"type": "channel", "channel_id": target[1:]}
    if target[:1] == "!":
        return _text(unescape_wire(label or "@" + target[1:].partition("^")[0]))
    url = unescape_wire(target)
    return {"type": "link", "url": url, "text": unescape_wire(label) or url.removeprefix("mailto:")}


def _cite_once(parts: Sequence[list[Block]]) -> None:
    """Keep only the last citation if every part cites, and all of them the same one."""
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
    """Add elements, texts of one style joined."""
    for one in more:
        last = elements[-1] if elements else {}
        if one["type"] == last.get("type") == "text" and one.get("style") == last.get("style"):
            elements[-1] = {**last, "text": last["text"] + one["text"]}
        elif one.get("text") != "":
            elements.append(one)


def _text(text: str, style: dict[str, bool] | None = None) -> Block:
    return {"type": "text", "text": text, **({"style": style} if style else {})}
