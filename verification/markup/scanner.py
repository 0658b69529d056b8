"""Scans a text from left to right for fences, inline code, ``<…>`` tokens and other text, and applies edits.

Repair, rules, chunks and claims all use this scanner to find code. Inline code never crosses a line ending, as in
Slack. A fence is what Markdown or Slack would show as one: opened by a line of three or more backticks or tildes (after
white space, quote marks or a list marker), or by three backticks in the middle of a line that a later line closes.

An edit that overlaps an earlier one is skipped. The next pass over the text makes up for it.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

SCHEMES = "https?|mailto|tel"
"""The schemes of links that may be clicked, for repair, chunks and the citation rule."""
ANY_SCHEME = r"[a-z][a-z0-9+.-]{1,31}"  # RFC 3986, 3.1
# Slack's own tokens: people (U, W), bots (B), channels (C, D, G), calls, groups, dates, and links.
TOKEN = re.compile(
    r"<(?:(?-i:@[UWB][A-Z0-9]+|#[CDG][A-Z0-9]+)|!(?:here|channel|everyone|group)\b|!subteam\^[A-Z0-9]+|!date\^[^<>|\n]+"
    rf"|(?:{SCHEMES}):[^<>|\s]+)(?:\|[^<>\n]*)?>",
    re.IGNORECASE,
)
QUOTE = re.compile(r"[ \t]*(?=>)(?:>[ \t]?)+")
_RUN = re.compile(r"`{3,}|~{3,}")  # CommonMark: three or more of either character
# CommonMark: at most nine digits begin an item, because more overflow in some browsers.
_PREFIX = re.compile(r"[ \t]*+((?:>[ \t]?+)*+)[ \t]*+((?:[-*+•]|\d{1,9}[.)])[ \t]++)?+")
_CLOSER = re.compile(r"(`{3,}|~{3,})[ \t\r]*$", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z][\w+#.-]{0,20}")
_MAX_CLOSERS = 4  # an unclosed fence looks ahead in bounded steps
_MAX_DISTANCE = 2000  # maximum characters between ticks in mid-line: farther apart they are separate
_TICKS_OR_NEWLINE = re.compile(r"`+|\n")
_CODE_OR_ANGLE = re.compile(r"\\?`+|<")


class Segment(NamedTuple):
    """A half-open range of text of one kind."""

    kind: Literal["fence", "code", "token", "text"]
    start: int
    end: int


class Fence(NamedTuple):
    """A fenced block. ``start`` is its first tick, or its line's start if only quote marks and white space precede.

    ``body`` and ``body_end`` are the bounds of the code between the two fence lines. ``inline`` marks Slack's own
    style: the code begins right after the ticks or ends right before them. ``indent`` counts the characters before the
    opening ticks.
    """

    start: int
    end: int
    ticks: str
    info: str
    body: int
    body_end: int
    closed: bool
    quoted: bool
    inline: bool
    indent: int


def code_spans(text: str, start: int, end: int) -> dict[int, int]:
    """Return the end of the inline code that each run of ticks opens: the next run of its length on its line."""
    ends: dict[int, int] = {}
    openings: dict[int, int] = {}  # on this line: the last run of each length
    for match in _TICKS_OR_NEWLINE.finditer(text, start, end):
        size = match.end() - match.start()
        if match[0] == "\n":
            openings = {}
            continue
        if size in openings:
            ends[openings[size]] = match.end()
        openings[size] = match.start()
    return ends


def fences(text: str) -> list[Fence]:
    """Return all fenced blocks, in order."""
    result: list[Fence] = []
    position = line_start = 0
    fresh = True
    while match := _RUN.search(text, position):
        newline = text.rfind("\n", position, match.start())
        if newline >= 0:
            line_start, fresh = newline + 1, True
        fence = _at_line_start(text, match, line_start) if fresh else None
        fence = fence or _in_mid_line(text, match)
        fresh = False
        position = fence.end if fence else match.end()
        if fence:
            result.append(fence)
    return result


def _at_line_start(text: str, match: re.Match[str], line_start: int) -> Fence | None:
    """The fence that a line of Markdown opens, if this line does."""
    prefix = _PREFIX.fullmatch(text, line_start, match.start())
    eol = _line_end(text, match.end())
    info = text[match.end() : eol].strip()
    # CommonMark: an info string after back-ticks has no back-tick, else they are inline code.
    if not prefix or (match[0][0] == "`" and "`" in info):
        return None
    ticks, quoted = match[0], bool(prefix[1])
    body = min(eol + 1, len(text))
    limit = body if quoted else len(text)  # the end of the quoted lines, or of the one that closes the fence
    while limit < len(text) and QUOTE.match(text, limit):
        end = _line_end(text, limit)
        is_closing = _find_closing(text, ticks, (limit, end), quoted=quoted, bare=not info)[1] >= 0
        if is_closing and not text[limit:end].strip(f"{ticks[0]}> \t\r"):
            limit = end
            break
        limit = min(end + 1, len(text))
    body_end, end, inline = _find_closing(text, ticks, (body, limit), quoted=quoted, bare=not info)
    closed = end >= 0
    if not closed:
        end = body_end = limit - 1 if limit < len(text) else limit
        body = min(body, end)
    start = match.start() if prefix[2] else line_start
    indent = 0 if quoted else match.start() - line_start
    return Fence(start, end, ticks, info, body, max(body, body_end), closed, quoted, inline, indent)


def _find_closing(
    text: str, ticks: str, span: tuple[int, int], *, quoted: bool = False, bare: bool = True
) -> tuple[int, int, bool]:
    """Return the end of the code, the end of the closing line (-1: none), and whether it closes in Slack's style.

    A bare opening line needs a separate closing line. Ticks after code close it only if there is no such line nearby.
    """
    body, limit = span
    position = before = body
    seen = 0  # lines that may close it in Slack's style
    fallback = (limit, -1, False)
    while (match := _CLOSER.search(text, position, limit)) and seen < _MAX_CLOSERS:
        line = max(text.rfind("\n", before, match.start()) + 1, before)
        before, position = line, match.end()
        # CommonMark: at least as many of the same character close a fence.
        if match[1][0] != ticks[0] or len(match[1]) < len(ticks):
            continue
        if not text[line : match.start()].strip(" \t>" if quoted else " \t"):
            return max(body, line - 1), match.end(), False
        if ticks == match[1] == "```":
            fallback = fallback if seen else (match.start(), match.end(), True)
            seen += 1 if bare else _MAX_CLOSERS
    return fallback


def _in_mid_line(text: str, match: re.Match[str]) -> Fence | None:
    """Find three ticks in the middle of a line that a later line closes."""
    if match[0] != "```":
        return None
    eol = _line_end(text, match.end())
    info = text[match.end() : eol].strip()
    if not info or _WORD.fullmatch(info):
        body = min(eol + 1, len(text))
        body_end, end, inline = _find_closing(text, "```", (body, min(len(text), body + _MAX_DISTANCE)))
        if end >= 0:
            return Fence(match.start(), end, "```", info, body, max(body, body_end), True, False, inline, 0)
    end = text.find("```", match.end())
    newline = text.rfind("\n", match.end(), end) if end >= 0 else -1
    if newline < 0 or not text[newline:end].strip(" \t\n>") or text.startswith("````", end):
        return None
    return Fence(match.start(), end + 3, "```", "", match.end(), end, True, False, True, 0)


def _line_end(text: str, position: int) -> int:
    newline = text.find("\n", position)
    return len(text) if newline < 0 else newline


@lru_cache(maxsize=16)  # several steps ask for the same text
def segments(text: str) -> tuple[Segment, ...]:
    """Split the whole text into fences, inline code, ``<…>`` tokens and the text between them."""
    result: list[Segment] = []
    position = 0
    for fence in fences(text):
        result.extend(_inline(text, position, fence.start))
        result.append(Segment("fence", fence.start, fence.end))
        position = fence.end
    result.extend(_inline(text, position, len(text)))
    return tuple(result)


def _inline(text: str, start: int, end: int) -> Iterator[Segment]:
    """Yield inline code and tokens of a stretch without fences. The one that begins first wins."""
    codes = code_spans(text, start, end)
    position = done = start
    while match := _CODE_OR_ANGLE.search(text, position, end):
        token = TOKEN.match(text, match.start(), end) if match[0] == "<" else None
        close = token.end() if token else codes.get(match.start(), 0)
        position = close or match.end()
        if close:
            if match.start() > done:
                yield Segment("text", done, match.start())
            yield Segment("token" if token else "code", match.start(), close)
            done = close
    if done < end:
        yield Segment("text", done, end)


@lru_cache(maxsize=16)  # several steps ask for the same text
def prose(text: str) -> str:
    """The text with spaces in place of fences and inline code: the same length and line endings."""
    pieces = ((kind in {"fence", "code"}, text[start:end]) for kind, start, end in segments(text))
    return "".join(re.sub(r"[^\n]", " ", part) if is_code else part for is_code, part in pieces)


ZERO_WIDTH = "\u200b"
# Slack's documentation asks to escape these three. Other escapes would be shown literally.
ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
UNESCAPED = re.compile(r"[<>]|&(?!(?:amp|lt|gt);)")
_TAG_NAME = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)")


class Edit(NamedTuple):
    """Replace ``[start, end)`` with ``text``."""

    start: int
    end: int
    text: str


class FormFault(NamedTuple):
    """A formatting fault, or formatting that Slack could show better, with its kind and position."""

    kind: str
    start: int
    end: int


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text after all edits."""
    pieces: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start >= position:
            pieces += (text[position : edit.start], edit.text)
            position = edit.end
    return "".join([*pieces, text[position:]])


def blank_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with spaces in place of these spans, so that offsets stay valid."""
    return apply_edits(text, [Edit(start, end, " " * (end - start)) for start, end in spans])


@dataclass  # no slots, because of the cached properties
class MarkupPage:
    """The text and the definitions of a pass, and the edits and faults it collected."""

    text: str
    is_mrkdwn: bool = True  # else the page stays standard Markdown
    references: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    footnotes: set[str] = field(default_factory=set)
    edits: list[Edit] = field(default_factory=list)
    faults: list[FormFault] = field(default_factory=list)

    def edit(self, start: int, end: int, text: str) -> None:
        """Note one replacement."""
        self.edits.append(Edit(start, end, text))

    def fault(self, kind: str, start: int, end: int) -> None:
        """Note one fault."""
        self.faults.append(FormFault(kind, start, end))

    def replace(self, kind: str, start: int, end: int, text: str) -> None:
        """Record a fault that a single replacement repairs."""
        self.fault(kind, start, end)
        self.edit(start, end, text)

    @cached_property
    def tags(self) -> frozenset[tuple[bool, str]]:
        """The names of all tags on the page, each with True if it is a closing tag."""
        return frozenset((match[1] == "/", match[2].lower()) for match in _TAG_NAME.finditer(self.text))
