"""Readers of AsciiDoc, Org and reStructuredText. The text stays as it is, without its comments, and has headings."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from agent.knowledge.readers.document import Content, Form, ReadLimits, whole
from agent.knowledge.readers.text import decode

_ORG_LINES: Final = r"(?:.*\n){1,1000}?"  # a limit keeps many blocks without an end linear
# Comments, blocks of code, in which nothing is a comment or a heading, and headings.
_PATTERNS: Final[dict[Form, re.Pattern[str]]] = {
    "asciidoc": re.compile(
        r"^(?P<hidden>(?P<slashes>/{4,})[ \t]*\n[\s\S]*?^(?P=slashes)[ \t]*$|//(?!/).*$)"
        r"|^(?:(?P<block>-{4,}|\.{4,}|\+{4,})[ \t]*|(?P<fence>```)\w*)\n[\s\S]*?^(?:(?P=block)|(?P=fence))[ \t]*$"
        r"|^(?P<depth>={1,6}|#{1,6})[ \t]+(?P<title>\S.*?)[ \t]*$",
        re.MULTILINE,
    ),
    "org": re.compile(
        rf"^[ \t]*(?P<hidden>#\+begin_comment\b{_ORG_LINES}[ \t]*#\+end_comment[ \t]*$|#(?:[ \t].*)?$)"
        rf"|^[ \t]*#\+begin_(?P<block>\w+)\b{_ORG_LINES}[ \t]*#\+end_(?P=block)[ \t]*$"
        r"|^(?P<depth>\*{1,20})[ \t]+(?P<title>\S.*?)(?:[ \t]+:[\w@#%:]+:)?[ \t]*$",
        re.MULTILINE | re.IGNORECASE,
    ),
    "rst": re.compile(
        r"^(?P<hidden>\.\.(?:[ \t]+(?![_\[|]|[\w+.:-]+::)[^\n]*\n|[ \t]*\n(?=[ \t]+\S))"
        r"(?:[ \t]+\S[^\n]*(?:\n|\Z)|[ \t]*\n(?=[ \t]+\S))*)"
        r"|^(?P<depth>(?:(?P<over>[^\w\s])(?P=over){2,}[ \t]*\n(?=[^\n]+\n(?P=over){3}))?)"
        r"[ \t]*(?P<title>(?!\.\. |[^\w\s]{3,}[ \t]*\n)\S[^\n]*?)[ \t]*\n(?P<under>[^\w\s])(?P=under){2,}[ \t]*$",
        re.MULTILINE,
    ),
}
_ORG_TITLE: Final = re.compile(r"^#\+title:[ \t]+(\S.*)$", re.IGNORECASE | re.MULTILINE)


class Heading(NamedTuple):
    """A heading from a line (from 0) to the one after its last. ``depth`` counts from 1."""

    line: int
    end: int
    depth: int
    title: str


def read_asciidoc(data: bytes, _: ReadLimits) -> Content:
    """Read AsciiDoc. Its title is the heading of level 0."""
    return _read(data, "asciidoc")


def read_org(data: bytes, _: ReadLimits) -> Content:
    """Read Org. Its title is a keyword."""
    content = _read(data, "org")
    titled = _ORG_TITLE.search(content.parts[0].text) if content.parts else None
    return Content(title=titled[1] if titled else "", parts=content.parts)


def read_rst(data: bytes, _: ReadLimits) -> Content:
    """Read reStructuredText. Its title is the first heading."""
    return _read(data, "rst")


def _read(data: bytes, form: Form) -> Content:
    text = _PATTERNS[form].sub(lambda found: "\n" * found[0].count("\n") if found["hidden"] else found[0], decode(data))
    return Content(
        title=next((each.title for each in headings_in(text, form) if each.depth == 1), ""), parts=whole(text)
    )


def headings_in(text: str, form: Form) -> Iterator[Heading]:
    """Yield the headings of a text in order. In reStructuredText, the first sign under a heading is that of depth 1."""
    line = at = 0
    signs: list[tuple[bool, str]] = []
    for found in _PATTERNS[form].finditer(text) if form in _PATTERNS else ():
        if not found["title"]:
            continue
        line, at = line + text.count("\n", at, found.start()), found.start()
        depth = len(found["depth"])
        if form == "rst":
            sign = (bool(found["over"]), found["under"])
            signs += [] if sign in signs else [sign]
            depth = signs.index(sign) + 1
        yield Heading(line, line + found[0].count("\n") + 1, depth, found["title"])
