"""A message as it is read for its questions: without what only takes up room, and without what it quotes.

Promises: pure, in linear time; a message that is nothing but a quotation or code stays. Must run before anything else
reads a message: runs of blanks or of one mark would keep the expressions behind it busy for minutes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_FENCED: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_QUOTED_LINE: Final = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_BLANK: Final = re.compile(r"\s+")
_MARKS: Final = re.compile(r"[?？!！](?:\s?[?？!！])+")
_GAPS: Final = re.compile(r"[\s,.;:!…–—-]{4,}")
_WORD: Final = re.compile(r"\w")


@lru_cache(maxsize=64)
def normalised(text: str) -> str:
    """The message with single blanks and marks; without code blocks and quoted lines where a question is left."""
    own = _QUOTED_LINE.sub(" ", _FENCED.sub(" ", text))
    kept = own if _asks(own) else text
    kept = _BLANK.sub(lambda found: "\n" if "\n" in found[0] else " ", kept)
    kept = _MARKS.sub(lambda found: "?" if "?" in found[0] or "？" in found[0] else "!", kept)
    return _GAPS.sub(_gap, kept).strip()


def _asks(text: str) -> bool:
    """Whether a word stands before the last question mark."""
    mark = max(text.rfind("?"), text.rfind("？"))
    return mark > 0 and _WORD.search(text, 0, mark) is not None


def _gap(found: re.Match[str]) -> str:
    """One mark and a blank for a run of them."""
    marks = found[0].strip()
    return f"{marks[0]} " if marks and marks[0] not in "-–—" else " - " if marks else " "
