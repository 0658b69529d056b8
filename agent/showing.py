"""An answer shown block by block while the model writes it (F10).

Promises: what is handed to the stage passed every rule, in the order of the answer, each block once; an answer that
needs its whole text before it may be shown (a judge, a label above it, quotations that are there at once) is not shown
so at all. Must never hand on a block behind one that failed, nor hold up an answer because it cannot be shown early.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import structlog

from agent.crash_log import log_crash
from agent.prompts import NOT_FOUND
from verification.answer import Draft
from verification.growing import Shown, complete, let_through
from verification.rules import check

log = structlog.get_logger()

LONGEST = 8_000
"""Characters of a draft that may be shown early: every block is checked together with all that stands before it."""


class Stage(Protocol):
    """Where an answer can be seen while it grows."""

    async def show(self, markdown: str, text: str) -> bool:
        """Show one more verified block. ``text`` is the answer up to here as an ordinary answer has it.

        False means that nothing can be shown here, and that nothing was.
        """
        ...


@dataclass(slots=True, kw_only=True)
class Showing:
    """One answer on its way to the stage. ``shown`` is what stands there, over all attempts.

    ``failed`` is the answer up to the end of the block that failed the rules in this attempt; empty while none has.
    """

    stage: Stage
    shown: Shown | None = None
    failed: str = ""
    _closed: bool = False
    _last: bool = False
    _before: str = ""
    _so_far: str = ""
    _taken: int = 0
    _blocks: list[str] = field(default_factory=list)
    _earlier: tuple[str, ...] = ()
    _line_begins: bool = False

    @property
    def kept(self) -> str:
        """The draft of what was shown."""
        return self.shown.draft if self.shown else ""

    def begin(self, *, last: bool) -> None:
        """Another attempt goes on after what was shown. The ``last`` one is read to its end whatever fails."""
        self.failed, self._last, self._taken = "", last, 0
        self._before = self._so_far = f"{self.kept.rstrip()}\n\n" if self.shown else ""
        self._earlier = tuple(self._blocks)

    def due(self, piece: str) -> bool:
        """Whether a block may be complete now that ``piece`` arrived: it is when a line ended and another began."""
        ends = "\n" in piece
        due, self._line_begins = ends or self._line_begins, ends or (self._line_begins and piece.isspace())
        return due

    def whole(self, text: str) -> str:
        """The answer to be judged: what was shown before this attempt, and its ``text`` as far as that counts.

        Some models write all of it again: what stands there already is left out.
        """
        if self.failed and not self._last:
            return self.failed
        blocks = complete(text, ended=True)
        return self._before + "".join(blocks[_repeated(blocks, self._earlier) :])

    async def grow(self, draft: Draft, text: str, *, ended: bool = False) -> bool:
        """Show what of this attempt's ``text`` is complete by now; False as soon as the attempt is lost.

        ``draft`` holds all that a judgement may depend on.
        """
        if not says_not_found(text):
            blocks = complete(text, ended=ended)
            for block in blocks[max(_repeated(blocks, self._earlier), self._taken) :]:
                if self._closed or self.failed:
                    break
                await self._take(draft, block)
            self._taken = len(blocks)
        return self._last or not self.failed

    async def _take(self, draft: Draft, block: str) -> None:
        if len(self._so_far) + len(block) > LONGEST:
            self._closed = True
            return
        listening = partial(check, on_crash=log_crash)
        shown, verdict = await asyncio.to_thread(let_through, draft, self._so_far, block, listening)
        if shown is None:
            if verdict.passed:  # right as a part of the whole, and the whole will say so
                self._closed = True
                log.info("block_not_shown_early", length=len(block))
            else:
                self.failed = self._so_far + block
        elif shown.markdown and not await self.stage.show(shown.markdown, shown.verdict.text):
            self._closed = True
        else:
            self.shown, self._so_far = shown, shown.draft
            self._blocks.append(block.strip())


def says_not_found(text: str) -> bool:
    """Whether the model says that the sources do not hold the answer."""
    return text.strip().strip("`*_.").startswith(NOT_FOUND)


def _repeated(blocks: tuple[str, ...], earlier: tuple[str, ...]) -> int:
    """How many blocks at the beginning were shown by an earlier attempt."""
    count = 0
    for block, known in zip(blocks, earlier, strict=False):
        if block.strip() != known:
            break
        count += 1
    return count
