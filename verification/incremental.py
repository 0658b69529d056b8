"""Cuts an answer, while it grows, into blocks that nothing behind them can change, and checks each before it is shown.

Where the draft was cut while it arrived never shows. A block is let through only when the whole answer up to its end
passes every rule as a post would, and the block by itself is well formed in the dialect of streams. What belongs
together (a title or an introduction and what follows, a list, a table, code) is one block. Nothing behind a block that
failed is ever let through.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from verification.markup.lines import ITEM, ends_in_colon
from verification.types import Draft, Verdict

_GAP: Final = re.compile(r"\n[ \t]*(?:\n[ \t]*)*\n(?=[^\n])")
_TICKS: Final = re.compile(r"`{3,}|^[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(~{3,})", re.MULTILINE)
_MAYBE_ITEM: Final = re.compile(r"[-*+•◦▪▫‣▸☐☑]|\d{1,9}[.)]?")  # a marker whose blank has not arrived yet
_TITLE: Final = re.compile(r" {0,3}#{1,6}(?:\s.*)?|(?:\*{1,2}|__)[^*\n]{1,200}(?:\*{1,2}|__):?\s*")

_OF_THE_WHOLE: Final = frozenset({"cites_sources", "claim_supported"})
"""What is decided with all that stands before a block in sight: it may share its citation."""

Check = Callable[[Draft], Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What of an answer has been let through: its ``draft``, and that as ``verdict`` found it, both up to here."""

    draft: str
    verdict: Verdict
    markdown: str  # the last block as it is to be shown; empty where nothing of it can be seen


def complete(text: str, *, ended: bool = False) -> tuple[str, ...]:
    """The blocks of a growing text that are complete; joined they are its beginning, and all of it once it ended."""
    cuts = [0, *_cuts(text), *([len(text)] if ended else [])]
    return tuple(text[start:end] for start, end in itertools.pairwise(cuts) if text[start:end].strip())


def let_through(draft: Draft, before: str, block: str, check: Check) -> tuple[Shown | None, Verdict]:
    """The block that follows ``before``, if it may be shown, and the verdict on the answer up to its end.

    ``draft`` holds all that a judgement may depend on; its own text does not count. A verdict that passes without a
    block says that the answer is right, but that this piece of it cannot be shown by itself.
    """
    so_far = before + block
    verdict = check(replace(draft, text=so_far))
    if not verdict.passed:
        return None, verdict
    alone = check(replace(draft, text=block.strip("\n"), dialect="markdown"))
    if all(error.rule in _OF_THE_WHOLE for error in alone.errors):
        return Shown(draft=so_far, verdict=verdict, markdown="\n\n".join(alone.chunks)), verdict
    if not alone.text.strip():  # a rule, a link's definition: nothing of it is seen
        return Shown(draft=so_far, verdict=verdict, markdown=""), verdict
    return None, verdict


def _cuts(text: str) -> Iterator[int]:
    """Where a block ends and the next one begins for certain. Linear in the text: it is asked again with every line."""
    start = 0
    fence, is_list = "", False
    for gap in _GAP.finditer(text):
        piece, start = text[start : gap.start()], gap.end()
        fence = _open_fence(piece, fence)
        is_list = is_list or any(ITEM.match(line) for line in piece.split("\n"))
        line = text[start : text.find("\n", start) + 1 or len(text)]  # with its end, if that is known yet
        if piece.strip() and not fence and not _goes_on(piece, line, is_list=is_list):
            yield start
            is_list = False


def _goes_on(piece: str, line: str, *, is_list: bool) -> bool:
    """Whether the ``line`` after a gap belongs to the block that ends in ``piece``, or may yet turn out to."""
    last = piece.rstrip().rpartition("\n")[2]
    if line[0] in " \t" or ends_in_colon(last) or _TITLE.fullmatch(last):
        return True  # what is indented belongs to a list, or is code
    if last.lstrip().startswith("|"):
        return line.startswith("|")
    return is_list and bool(ITEM.match(line) or _MAYBE_ITEM.fullmatch(line))


def _open_fence(piece: str, fence: str) -> str:
    """The fence that is open at the end of a piece; ``fence`` was at its beginning."""
    for match in _TICKS.finditer(piece):
        ticks = match[1] or match[0]
        if not fence:
            fence = ticks
        elif ticks[0] == fence[0] and len(ticks) >= len(fence):  # CommonMark: closed by as many, or more
            fence = ""
    return fence
