"""Which lines of a fence are code, and which are plain words."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE = re.compile(r"[^\n]+")
_CODE_SIGN = re.compile(r"[={}();$|<>\\&`\[\]#@]|(?<!\S)--?[A-Za-z]|://|/\w+/")
_WORD = re.compile(r"[^\W\d_]{2,}")
_PROSE_WORDS = 3  # "make test" is a command, "then restart the service" is not


def pieces(body: str, offset: int) -> Iterator[tuple[int, int, bool]]:
    """The runs of a fence's lines as spans: code lines together, each line of plain words by itself (False)."""
    begun: tuple[int, int] | None = None
    for line in _LINE.finditer(body):
        written = line[0].strip()
        if not written:
            continue
        start = offset + line.start() + len(line[0]) - len(line[0].lstrip())
        end = start + len(written)
        if is_code(written):
            begun = (begun[0] if begun else start, end)
            continue
        if begun:
            yield (*begun, True)
            begun = None
        yield start, end, False
    if begun:
        yield (*begun, True)


def is_code(line: str) -> bool:
    """Whether a line is more than plain words; Chinese and Japanese words are not parted."""
    if _CODE_SIGN.search(line):
        return True
    return len(_WORD.findall(line)) < _PROSE_WORDS and not re.search("[\u3040-\u30ff\u3400-\u9fff]{4}", line)
