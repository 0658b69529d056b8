"""Split a growing answer into final blocks, and check each block before it is shown.

It does not matter in which pieces the draft arrived. A block is shown only if the whole answer up to its end passes
every rule, and the block alone is well formed in the dialect of streams. A title or an introduction belongs to the
block that follows it. A list, a table or a piece of code is one block. After a failed block nothing more is shown.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from verification.markup.lines import ITEM, ends_in_colon
from verification.markup.serialised import begins_value
from verification.types import Draft, Verdict

_GAP: Final = re.compile(r"\n[ \t]*(?:\n[ \t]*)*\n(?=[^\n])")
_TICKS: Final = re.compile(r"`{3,}|^[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(~{3,})", re.MULTILINE)
_MAYBE_ITEM: Final = re.compile(r"[-*+•◦▪▫‣▸☐☑]|\d{1,9}[.)]?")  # a list marker whose blank has not arrived yet
_TITLE: Final = re.compile(r" {0,3}#{1,6}(?:\s.*)?|(?:\*{1,2}|__)[^*\n]{1,200}(?:\*{1,2}|__):?\s*")

_NEED_CONTEXT: Final = frozenset({"cites_sources", "claim_supported"})
"""Rules that also see the text before a block, because it may share a citation with it."""

Check = Callable[[Draft], Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBlocks:
    """The part of an answer that may be shown: its ``draft``, and the ``verdict`` on all of it."""

    draft: str
    verdict: Verdict
    markdown: str  # the last block to show; empty if it has no visible text


def complete_blocks(text: str, *, ended: bool = False) -> tuple[str, ...]:
    """Return the complete blocks at the beginning of a growing text, or all blocks if it ``ended``."""
    cuts = [0, *_cuts(text), *([len(text)] if ended else [])]
    return tuple(text[start:end] for start, end in itertools.pairwise(cuts) if text[start:end].strip())


def check_block(draft: Draft, before: str, block: str, check: Check) -> tuple[ShownBlocks | None, Verdict]:
    """Check the block after ``before``. Return it if it may be shown, and the verdict on the answer so far.

    ``draft`` supplies everything but the text. If the verdict passes but there is no block, the answer is fine, but
    this piece cannot be shown alone.
    """
    so_far = before + block
    verdict = check(replace(draft, text=so_far))
    if not verdict.passed:
        return None, verdict
    alone = check(replace(draft, text=block.strip("\n"), dialect="markdown"))
    fits = all(error.rule in _NEED_CONTEXT for error in alone.errors)
    if not fits and alone.text.strip():  # a rule or a link's definition is not visible
        return None, verdict
    return ShownBlocks(draft=so_far, verdict=verdict, markdown="\n\n".join(alone.chunks) if fits else ""), verdict


def _cuts(text: str) -> Iterator[int]:
    """Yield the positions where a block certainly ends. Linear in the text, since this runs for each new line."""
    start = 0
    first = _GAP.search(text)
    if first and begins_value(text[: first.start()]):
        return  # only the whole value can be unwrapped
    fence, is_list = "", False
    for gap in _GAP.finditer(text):
        piece, start = text[start : gap.start()], gap.end()
        for match in _TICKS.finditer(piece):
            ticks = match[1] or match[0]
            if not fence:
                fence = ticks
            elif ticks[0] == fence[0] and len(ticks) >= len(fence):  # CommonMark: closed by at least as many
                fence = ""
        is_list = is_list or any(ITEM.match(line) for line in piece.split("\n"))
        line = text[start : text.find("\n", start) + 1 or len(text)]  # with its line end, if it has arrived
        if piece.strip() and not fence and not _goes_on(piece, line, is_list=is_list):
            yield start
            is_list = False


def _goes_on(piece: str, line: str, *, is_list: bool) -> bool:
    """Return True if the ``line`` after a gap belongs, or may still belong, to the block that ends in ``piece``."""
    last = piece.rstrip().rpartition("\n")[2]
    if line[0] in " \t" or ends_in_colon(last) or _TITLE.fullmatch(last):
        return True  # indented text belongs to a list or is code
    if last.lstrip().startswith("|"):
        return line.startswith("|")
    return is_list and bool(ITEM.match(line) or _MAYBE_ITEM.fullmatch(line))
