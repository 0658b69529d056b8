"""Split a verified text into the blocks and messages that Slack gets.

Cuts are made at block boundaries if possible, then at lines, sentences, words. A fence that is cut is closed and
reopened, and a table repeats its header. Citations of sources with an address become links, and code is escaped. No
word is added, dropped or changed.
"""

import re
from collections.abc import Iterator
from operator import itemgetter
from typing import Final, NamedTuple

from verification.markup import links
from verification.markup.lines import is_delimiter, is_drawn
from verification.markup.links import links as links_in
from verification.markup.scanner import ESCAPES, UNESCAPED, Edit, apply_edits, fences, segments
from verification.types import Dialect, Source

_MARKDOWN_LINK = re.compile(r"!?\[(?:[^\[\]\n\\]|\\.){0,600}+\]\([^\s()]*+(?:\([^\s()]*+\)[^\s()]*+)*+\)")
_LINK_OR_CITATION = re.compile(rf"{_MARKDOWN_LINK.pattern}|(?<!\\)\[(\d{{1,9}}(?: ?, ?\d{{1,9}})*)\](?!\()")
_ESCAPE = re.compile(r"&(?:amp|lt|gt);")
_ATOM = re.compile(r"https?://[^\s<>|]+|&(?:amp|lt|gt);|\[\d[\d, ]{0,60}\]")
_PARAGRAPH = re.compile(r"\n[ \t]*(?:\n[ \t]*)*\n")
_TITLE = re.compile(r"#.*|.*:|\*[^*]+\*", re.DOTALL)
_BLANK = re.compile(r"\s+")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*[ \t]+|[。！？][」』）]*")
# At the start of a line these would begin a quote, a heading, a list, a table, code or an entity.
_RISKY_START = frozenset("#>|-*+=_~`[{&")
# Slack's documentation: 3,000 characters for a section block's text, 12,000 for all Markdown of one message.
CHUNK_LIMITS: Final = {"mrkdwn": 3000, "markdown": 12_000}
_MAX_BLOCKS = 45  # maximum blocks per message: Slack allows 50, and buttons and labels need some
_MAX_MESSAGE = CHUNK_LIMITS["markdown"]  # Slack answers msg_blocks_too_long from about 13,200 on


class ChunkUnit(NamedTuple):
    """A block of the text with the white space before it."""

    lead: str
    text: str
    fenced: bool


def split_chunks(
    text: str, sources: tuple[Source, ...] = (), dialect: Dialect = "mrkdwn", limit: int = CHUNK_LIMITS["mrkdwn"]
) -> tuple[str, ...]:
    """Return the texts for Slack's blocks, none of them blank, each with at most ``limit`` characters (at least 40)."""
    limit = max(limit, 40)
    groups: list[list[ChunkUnit]] = [[]]
    for unit in _fit_units(render_links(text, sources, dialect), limit):
        current = groups[-1]
        if current and len(_join_units([*current, unit])) > limit:
            # keep a title or a list's introduction with the text that it introduces, if there is room
            last = current[-1]
            introduces = not last.fenced and "\n" not in last.text and _TITLE.fullmatch(last.text)
            carries = introduces and len(_join_units([last, unit])) <= limit
            groups.append([current.pop()] if carries else [])
        groups[-1].append(unit)
    return tuple(chunk for chunk in map(_join_units, groups) if chunk.strip())


def group_messages(chunks: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Group chunks into messages of at most 45 blocks and 12,000 characters. A longer chunk is a message by itself."""
    groups: list[list[str]] = []
    for chunk in chunks:
        last = groups[-1] if groups else []
        if not last or len(last) == _MAX_BLOCKS or sum(map(len, last)) + len(chunk) > _MAX_MESSAGE:
            groups.append([])
        groups[-1].append(chunk)
    return tuple(map(tuple, groups))


def render_links(text: str, sources: tuple[Source, ...], dialect: Dialect) -> str:
    """Return the text with citations as links and, for mrkdwn, bare URLs as links and code escaped. Idempotent."""
    urls = {s.id: links.quote_url(s.url) for s in reversed(sources) if links.is_absolute(s.url)}
    if dialect == "mrkdwn":
        shown = {number: f"<{url}|[{number}]>" for number, url in urls.items()}
    else:  # the number's brackets would end the label, and a parenthesis the destination
        quoted = {number: url.replace("(", "%28").replace(")", "%29") for number, url in urls.items()}
        shown = {number: f"[\\[{number}\\]]({url})" for number, url in quoted.items()}

    def link_citation(match: re.Match[str]) -> str:
        numbers = [int(number) for number in match[1].split(",")] if match[1] else []
        if urls.keys().isdisjoint(numbers):
            return match[0]  # existing links stay
        return "".join(shown.get(number, f"[{number}]") for number in numbers)

    pieces = []
    for segment in segments(text):
        part = text[segment.start : segment.end]
        if segment.kind == "text":
            part = _LINK_OR_CITATION.sub(link_citation, part)
            # A host without "https://" stays a word.
            bare = (link for link in links_in(part) if part.startswith(("https://", "http://"), link.start))
            edits = [Edit(link.start, link.end, f"<{links.quote_url(link.target)}>") for link in bare]
            part = apply_edits(part, edits) if dialect == "mrkdwn" else part
        elif segment.kind != "token" and dialect == "mrkdwn":
            part = UNESCAPED.sub(lambda match: ESCAPES[match[0]], part)
        pieces.append(part)
    return "".join(pieces)


def _paragraphs(text: str) -> Iterator[ChunkUnit]:
    """Yield the paragraphs of a stretch of prose. White space before a following fence belongs to the fence."""
    body = text.rstrip()
    position = len(body) - len(body.lstrip("\n"))
    lead = body[:position]
    for gap in _PARAGRAPH.finditer(body, position):
        # The gap may include the next line's indentation, which belongs to the text.
        end = body.rfind("\n", gap.start(), gap.end()) + 1
        yield ChunkUnit(lead, body[position : gap.start()], fenced=False)
        lead, position = body[gap.start() : end], end
    if position < len(body):
        yield ChunkUnit(lead, body[position:], fenced=False)


def _fit_units(text: str, limit: int) -> Iterator[ChunkUnit]:
    """Yield fences and paragraphs, each with the white space before it. Those that are too long are split."""
    units: list[ChunkUnit] = []
    position = 0
    for fence in fences(text):
        before = text[position : fence.start]
        fenced = ChunkUnit(before[len(before.rstrip()) :], text[fence.start : fence.end], fenced=True)
        units += [*_paragraphs(before), fenced]
        position = fence.end
    for unit in (*units, *_paragraphs(text[position:])):
        fits = len(unit.text) <= limit
        parts = [unit.text] if fits else _cut_fence(unit.text, limit) if unit.fenced else _cut_prose(unit.text, limit)
        for number, part in enumerate(parts):
            yield ChunkUnit("\n" if number else unit.lead, part, unit.fenced)


def _join_units(units: list[ChunkUnit]) -> str:
    return "".join(unit.text if number == 0 else unit.lead + unit.text for number, unit in enumerate(units))


def _cut_fence(text: str, limit: int) -> Iterator[str]:
    """Split a fence into several, each opened and closed. Each repeats the header of a drawn table."""
    fence = fences(text)[0]
    ticks = fence.ticks if len(fence.ticks) <= limit // 8 else "```"
    head = f"{ticks}{'' if fence.inline else fence.info[: limit // 8]}\n"
    body = text[fence.body : fence.body_end]
    if fence.inline:
        body = text[len(fence.ticks) : fence.body_end].removeprefix("\n")
    header = "\n".join([*body.split("\n", 2)[:2], ""]) if is_drawn(body) else ""
    if len(header) < limit // 2:
        head, body = head + header, body[len(header) :]
    room = limit - len(head) - len(ticks) - 1
    for part in _pack_lines(_code_lines(body, room), room):
        yield f"{head}{part}\n{ticks}"


def _code_lines(body: str, room: int) -> Iterator[str]:
    """Yield lines of code. A longer line is cut anywhere except inside an escape."""
    for line in body.split("\n"):
        position = 0
        while position + room < len(line):
            cut = position + room
            # The longest escape, "&amp;", has five letters.
            inside = (escape for escape in _ESCAPE.finditer(line, max(position + 1, cut - 4), cut + 4))
            end = next((escape.start() for escape in inside if escape.start() < cut < escape.end()), cut)
            yield line[position:end]
            position = end
        yield line[position:]


def _cut_prose(text: str, limit: int) -> Iterator[str]:
    """Split a paragraph, list or Markdown table at line endings, and a long line at sentences or words."""
    lines = text.split("\n")
    is_table = len(lines) > 2 and is_delimiter(lines[1]) and len(lines[0]) + len(lines[1]) < limit // 2  # noqa: PLR2004 - header, rule, rows
    header = f"{lines[0]}\n{lines[1]}\n" if is_table else ""
    room = limit - len(header)
    pieces = (piece for line in lines[2 if is_table else 0 :] for piece in _cut_line(line, room))
    for part in _pack_lines(pieces, room):
        yield header + part


def _pack_lines(pieces: Iterator[str], room: int) -> Iterator[str]:
    """Join lines as long as they fit. There is at least one."""
    current = next(pieces)
    for piece in pieces:
        if len(current) + 1 + len(piece) > room:
            yield current
            current = piece
        else:
            current += "\n" + piece
    yield current


def _cut_line(line: str, room: int) -> Iterator[str]:
    held = _held_places(line) if len(line) > room else b""
    position = 0
    while len(line) - position > room:
        cut = _best_cut(line, position, position + room, held)
        yield line[position:cut].rstrip()
        blank = _BLANK.match(line, cut)
        position = blank.end() if blank else cut
    if position < len(line) or not line:
        yield line[position:]


def _held_places(line: str) -> bytes:
    """Return 1 for each position that must not be cut: in code, tokens, links, addresses, citations and escapes."""
    held = bytearray(len(line) + 1)
    done = 0
    for kind, start, end in segments(line):
        atoms = [(start, end)]
        if kind == "text":
            atoms = [match.span() for atom in (_MARKDOWN_LINK, _ATOM) for match in atom.finditer(line, start, end)]
        # The sort is stable: a link comes before another atom at the same place.
        for first, last in sorted(atoms, key=itemgetter(0)):
            if first >= done:
                held[first + 1 : last] = b"\1" * (last - first - 1)
                done = last
    return bytes(held)


def _best_cut(line: str, start: int, end: int, held: bytes) -> int:
    """Return the best place to cut: after a sentence, else at white space, else anywhere that may be cut."""
    ends = [match.end() for match in _SENTENCE_END.finditer(line, (start + end) // 2, end)]
    blanks = [match.end() for match in _BLANK.finditer(line, start, end)]
    places: tuple[int, ...] = (*reversed(ends), *reversed(blanks), *range(end, max(start, end - 400), -1))
    for place in places:
        if place > start and not held[place] and (place == len(line) or line[place] not in _RISKY_START):
            return place
    last = held.rfind(b"\1", start, end + 1)
    atom = held.rfind(b"\0", start + 1, max(0, last))  # the start of the last atom
    return atom if atom > start else end
