"""Cuts a verified text into the blocks and messages that Slack gets.

Cuts stand at block boundaries where they can, then at lines, sentences, words; a code fence that is cut is closed and
opened again, a table repeats its header. Citations of sources with an address become links, and code is escaped. No
word is added, dropped or changed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from verification.markup import links, tables
from verification.markup.link_targets import links as links_in
from verification.markup.scanner import Segment, fences, segments
from verification.types import Dialect, Source

_CITATION = re.compile(r"(?<!\\)\[(\d{1,9}(?:[ ]?,[ ]?\d{1,9})*)\](?!\()")
_MARKDOWN_LINK = re.compile(r"!?\[(?:[^\[\]\n\\]|\\.){0,600}+\]\([^\s()]*+(?:\([^\s()]*+\)[^\s()]*+)*+\)")
_UNESCAPED = re.compile(r"[<>]|&(?!(?:amp|lt|gt);)")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_ENTITY_OR_CHAR = re.compile(r"&(?:amp|lt|gt);|.", re.DOTALL)
_ATOM = re.compile(r"https?://[^\s<>|]+|&(?:amp|lt|gt);|\[\d[\d, ]{0,60}\]")
_PARAGRAPH = re.compile(r"\n[ \t]*(?:\n[ \t]*)*\n")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*[ \t]+|[。！？][」』）]*")
_RISKY_START = frozenset("#>|-*+=_~`[{&")
_BLOCKS_PER_MESSAGE = 45  # Slack takes 50; buttons and labels need some
_CHARACTERS_PER_MESSAGE = 12_000  # Slack answers msg_blocks_too_long from about 13,200 on


class ChunkUnit(NamedTuple):
    """A block of the text with the white space before it."""

    lead: str
    text: str
    fenced: bool


def split(
    text: str, sources: tuple[Source, ...] = (), dialect: Dialect = "mrkdwn", limit: int = 3000
) -> tuple[str, ...]:
    """The texts of the blocks Slack gets, each at most ``limit`` characters (at least 40), none of them blank."""
    limit = max(limit, 40)
    rendered = render(text, sources, dialect)
    chunks: list[str] = []
    current: list[ChunkUnit] = []
    size = 0
    for unit in _fitting(_units(rendered), limit):
        length = len(unit.text) + (len(unit.lead) if current else 0)
        if current and size + length > limit:
            current, carried = _carry(current, unit, limit)
            chunks.append(_joined(current))
            current = carried
            size = len(_joined(current))
            length = len(unit.text) + (len(unit.lead) if current else 0)
        current.append(unit)
        size += length
    chunks.append(_joined(current))
    return tuple(chunk for chunk in chunks if chunk.strip())


def messages(chunks: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Chunks grouped into messages: at most 45 blocks and 12,000 characters each (one longer chunk stands alone)."""
    groups: list[tuple[str, ...]] = []
    current: list[str] = []
    size = 0
    for chunk in chunks:
        if current and (len(current) == _BLOCKS_PER_MESSAGE or size + len(chunk) > _CHARACTERS_PER_MESSAGE):
            groups.append(tuple(current))
            current, size = [], 0
        current.append(chunk)
        size += len(chunk)
    if current:
        groups.append(tuple(current))
    return tuple(groups)


def render(text: str, sources: tuple[Source, ...], dialect: Dialect) -> str:
    """The text with its citations as links and, for mrkdwn, its URLs too and its code escaped.

    Rendering twice changes nothing.
    """
    urls = {source.id: source.url for source in reversed(sources) if links.is_absolute(source.url)}
    pieces = []
    for segment in segments(text):
        part = text[segment.start : segment.end]
        if segment.kind == "text":
            part = _cited(part, urls, dialect) if urls else part
            part = _linked(part) if dialect == "mrkdwn" else part
        elif segment.kind != "token" and dialect == "mrkdwn":
            part = _UNESCAPED.sub(lambda match: _ESCAPES[match[0]], part)
        pieces.append(part)
    return "".join(pieces)


def _linked(text: str) -> str:
    """One stretch of mrkdwn with its bare URLs as links. A host without ``https://`` stays a word."""
    pieces: list[str] = []
    position = 0
    for link in links_in(text):
        if text.startswith(("https://", "http://"), link.start):
            pieces += (text[position : link.start], f"<{link.target}>")
            position = link.end
    return "".join([*pieces, text[position:]])


def _cited(text: str, urls: dict[int, str], dialect: Dialect) -> str:
    """Citations of one stretch of text as links; in Markdown, links that stand there already are stepped over."""
    if dialect == "mrkdwn":
        return _CITATION.sub(lambda match: _links(match, urls, dialect), text)
    pieces, position = [], 0
    for link in _MARKDOWN_LINK.finditer(text):
        pieces.append(_CITATION.sub(lambda match: _links(match, urls, dialect), text[position : link.start()]))
        pieces.append(link[0])
        position = link.end()
    pieces.append(_CITATION.sub(lambda match: _links(match, urls, dialect), text[position:]))
    return "".join(pieces)


def _links(match: re.Match[str], urls: dict[int, str], dialect: Dialect) -> str:
    numbers = [number.strip() for number in match[1].split(",")]
    if not any(int(number) in urls for number in numbers):
        return match[0]
    return "".join(_link(number, urls.get(int(number), ""), dialect) for number in numbers)


def _link(number: str, url: str, dialect: Dialect) -> str:
    if not url:
        return f"[{number}]"
    if dialect == "mrkdwn":
        return f"<{links.safe(url)}|[{number}]>"
    return f"[\\[{number}\\]]({links.safe(url).replace('(', '%28').replace(')', '%29')})"


def _units(text: str) -> Iterator[ChunkUnit]:
    """Fences and paragraphs, each with the white space before it."""
    position = 0
    for fence in fences(text):
        yield from _paragraphs(text[position : fence.start])
        lead = text[position : fence.start]
        yield ChunkUnit(lead[len(lead.rstrip()) :], text[fence.start : fence.end], fenced=True)
        position = fence.end
    yield from _paragraphs(text[position:])


def _paragraphs(text: str) -> Iterator[ChunkUnit]:
    """Paragraphs of a stretch of prose. White space before a following fence is the fence's."""
    body = text.rstrip()
    position = len(body) - len(body.lstrip("\n"))
    lead = body[:position]
    for gap in _PARAGRAPH.finditer(body, position):
        # The gap may have eaten the next line's indentation: it belongs to the text.
        end = body.rfind("\n", gap.start(), gap.end()) + 1
        yield ChunkUnit(lead, body[position : gap.start()], fenced=False)
        lead, position = body[gap.start() : end], end
    if position < len(body):
        yield ChunkUnit(lead, body[position:], fenced=False)


def _fitting(units: Iterator[ChunkUnit], limit: int) -> Iterator[ChunkUnit]:
    """The same units, those too long for a chunk cut into parts."""
    for unit in units:
        if len(unit.text) <= limit:
            yield unit
            continue
        parts = _cut_fence(unit.text, limit) if unit.fenced else _cut_prose(unit.text, limit)
        lead = unit.lead
        for part in parts:
            yield ChunkUnit(lead, part, unit.fenced)
            lead = "\n"


def _carry(current: list[ChunkUnit], following: ChunkUnit, limit: int) -> tuple[list[ChunkUnit], list[ChunkUnit]]:
    """Leave a title or a list's introduction to the chunk of what it introduces, if there is room."""
    last = current[-1]
    introduces = not last.fenced and "\n" not in last.text and (last.text.endswith(":") or _is_title(last.text))
    if introduces and len(last.text) + len(following.lead) + len(following.text) <= limit:
        return current[:-1], [last]
    return current, []


def _is_title(text: str) -> bool:
    return text.startswith("#") or (len(text) > 2 and text[0] == text[-1] == "*" and "*" not in text[1:-1])  # noqa: PLR2004 - *x*


def _joined(units: list[ChunkUnit]) -> str:
    return "".join(unit.text if number == 0 else unit.lead + unit.text for number, unit in enumerate(units))


def _cut_fence(text: str, limit: int) -> Iterator[str]:
    """A fence as several, each opened and closed; a drawn table's header stands on each."""
    fence = fences(text)[0]
    ticks = fence.ticks if len(fence.ticks) <= limit // 8 else "```"
    head = f"{ticks}{'' if fence.inline else fence.info[: limit // 8]}\n"
    body = text[fence.body : fence.body_end]
    if fence.inline:
        body = text[len(fence.ticks) : fence.body_end].removeprefix("\n")
    if tables.is_drawn(body):
        header = "\n".join(body.split("\n", 2)[:2]) + "\n"
        if len(header) < limit // 2:
            head, body = head + header, body[len(header) :]
    room = limit - len(head) - len(ticks) - 1
    for part in _packed(_code_lines(body, room), room):
        yield f"{head}{part}\n{ticks}"


def _code_lines(body: str, room: int) -> Iterator[str]:
    """Lines of code, longer ones cut anywhere but inside an escape."""
    for line in body.split("\n"):
        if len(line) <= room:
            yield line
            continue
        piece: list[str] = []
        size = 0
        for match in _ENTITY_OR_CHAR.finditer(line):
            if size + len(match[0]) > room:
                yield "".join(piece)
                piece, size = [], 0
            piece.append(match[0])
            size += len(match[0])
        yield "".join(piece)


def _cut_prose(text: str, limit: int) -> Iterator[str]:
    """A paragraph, list or Markdown table as parts of whole lines; a long line as sentences or words."""
    lines = text.split("\n")
    header = ""
    if len(lines) > 2 and tables.is_delimiter(lines[1]) and len(lines[0]) + len(lines[1]) < limit // 2:  # noqa: PLR2004 - header, rule, rows
        header = f"{lines[0]}\n{lines[1]}\n"
        lines = lines[2:]
    room = limit - len(header)
    pieces = (piece for line in lines for piece in _cut_line(line, room))
    for part in _packed(pieces, room):
        yield header + part


def _packed(pieces: Iterator[str], room: int) -> Iterator[str]:
    """Lines joined as long as they fit."""
    current: list[str] = []
    size = 0
    for piece in pieces:
        if current and size + 1 + len(piece) > room:
            yield "\n".join(current)
            current, size = [], 0
        size += len(piece) + bool(current)
        current.append(piece)
    if current:
        yield "\n".join(current)


def _cut_line(line: str, room: int) -> Iterator[str]:
    """One long line as pieces of at most ``room`` characters."""
    if len(line) <= room:
        yield line
        return
    spans = _atoms(line)
    position, index = 0, 0
    while len(line) - position > room:
        while index < len(spans) and spans[index][1] <= position:
            index += 1
        cut = _cut(line, position, room, spans, index)
        yield line[position:cut].rstrip()
        position = cut
        while position < len(line) and line[position].isspace():
            position += 1
    if position < len(line):
        yield line[position:]


def _atoms(line: str) -> list[tuple[int, int]]:
    """What must stay whole: code, tokens, links, addresses, citations, escapes; in order, not overlapping."""
    found: list[tuple[int, int]] = []
    for segment in segments(line):
        if segment.kind != "text":
            found.append((segment.start, segment.end))
        else:
            found.extend(_text_atoms(line, segment))
    return found


def _text_atoms(line: str, segment: Segment) -> Iterator[tuple[int, int]]:
    # A link comes before what begins at the same place: the sort keeps their order.
    found = [match.span() for match in _MARKDOWN_LINK.finditer(line, segment.start, segment.end)]
    found += [match.span() for match in _ATOM.finditer(line, segment.start, segment.end)]
    end = segment.start
    for start, stop in sorted(found, key=lambda span: span[0]):
        if start >= end:
            yield start, stop
            end = stop


def _cut(line: str, start: int, room: int, spans: list[tuple[int, int]], first: int) -> int:
    """The best place to cut within ``room``: behind a sentence, else at white space, else anywhere that is whole."""
    end = start + room
    inside = spans[first : bisect_left(spans, (end, end), lo=first)]
    ends = [match.end() for match in _SENTENCE_END.finditer(line, start + room // 2, end)]
    blanks = [match.end() for match in re.finditer(r"\s+", line[start:end])]
    for places in (ends, [start + blank for blank in blanks]):
        for place in reversed(places):
            if place > start and _is_whole(line, place, inside):
                return place
    for place in range(end, max(start, end - 400), -1):
        if _is_whole(line, place, inside):
            return place
    return inside[-1][0] if inside and start < inside[-1][0] else end


def _is_whole(line: str, place: int, spans: list[tuple[int, int]]) -> bool:
    """Whether a cut here leaves every atom whole and starts no accidental markup."""
    if place < len(line) and line[place] in _RISKY_START:
        return False
    index = bisect_left(spans, (place, place)) - 1
    return index < 0 or spans[index][1] <= place
