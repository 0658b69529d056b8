"""An answer shown block by block while the model writes it (F10).

Promises: what is handed to the stage passed every rule, in the order of the answer, each block once; an answer that
needs its whole text before it may be shown (a judge, a label above it, quotations that are there at once) is not shown
so at all. Must never hand on a block behind one that failed, nor hold up an answer because it cannot be shown early.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

import structlog

from agent.model.prompts import NOT_FOUND
from agent.turn.crash_log import log_crash
from agent.turn.numbering import order_of, renumbered
from verification.check import check
from verification.incremental import Shown, complete, let_through
from verification.types import Draft, RuleName, Verdict

log = structlog.get_logger()

LONGEST = 8_000
"""Characters of a draft that may be shown early: every block is checked together with all that stands before it."""

_BEGINS: Final = re.compile(r"\n[ \t]*\n\s*\S")
_GAP: Final = 200
"""Characters of white space that are remembered: a model may get stuck in an endless gap."""
_MAY_COME: Final[frozenset[RuleName]] = frozenset({"not_empty", "cites_sources"})
"""Rules that what follows may still satisfy: "Yes." is cited by the sentence behind it, code by the words under it."""


class Stage(Protocol):
    """Where an answer can be seen while it grows."""

    async def show(self, markdown: str, text: str) -> bool:
        """Show one more verified block. ``text`` is the answer up to here as an ordinary answer has it.

        False means that nothing can be shown here, and that nothing was.
        """
        ...


@dataclass(slots=True, kw_only=True)
class LiveAnswer:
    """One answer on its way to the stage. ``shown`` is what stands there and may stay, over all attempts.

    ``failed`` is the answer up to the end of the block that failed the rules in this attempt; empty while none has.
    """

    stage: Stage
    shown: Shown | None = None
    failed: str = ""
    _closed: bool = False
    _last: bool = False
    _before: str = ""
    _so_far: str = ""
    _read: int = 0
    _held: list[str] = field(default_factory=list)
    _blocks: list[str] = field(default_factory=list)
    _earlier: frozenset[str] = frozenset()
    _space: str = ""
    _began: bool = False

    @property
    def kept(self) -> str:
        """The draft of what was shown."""
        return self.shown.draft if self.shown else ""

    @property
    def cut_short(self) -> bool:
        """Whether this attempt is lost, and is not read to its end."""
        return bool(self.failed) and not self._last

    def begin(self, *, last: bool) -> None:
        """Another attempt goes on after what was shown. The ``last`` one is read to its end whatever fails."""
        self.failed, self._last, self._read = "", last, 0
        self._before = self._so_far = f"{self.kept.rstrip()}\n\n" if self.shown else ""
        self._held, self._earlier = [], frozenset(self._blocks)

    def due(self, piece: str) -> bool:
        """Whether a block may be complete now that ``piece`` arrived: it is when another paragraph began."""
        if self._closed or self.failed:
            return False  # nothing of this attempt is shown any more: whoever asks need not gather its text
        text = self._space + piece
        self._space = text[len(text.rstrip()) :][-_GAP:]
        begins = bool(_BEGINS.search(text))
        due, self._began = begins or self._began, begins  # one piece more: "1" may become "1." or "10 days"
        return due

    def whole(self, text: str) -> str:
        """The answer to be judged: what was shown before this attempt, and its ``text`` as far as that counts.

        Some models write all of it again: what stands there already is left out.
        """
        if self.cut_short:
            return self.failed
        blocks = complete(text, ended=True)
        return self._before + "".join(itertools.filterfalse(self._stands, blocks))

    async def grow(self, draft: Draft, text: str, *, ended: bool = False) -> bool:
        """Show what of this attempt's ``text`` is complete by now; False as soon as the attempt is lost.

        ``draft`` holds all that a judgement may depend on.
        """
        if not (self._closed or self.failed or says_not_found(text)):
            for block in complete(text[self._read :], ended=ended):
                self._read += len(block)
                if not (self._stands(block) or self._closed or self.failed):
                    await self._take(draft, block)
            # What is too long already is not cut into blocks anew with each of its lines.
            self._closed = self._closed or len(text) - self._read > LONGEST
        return not self.cut_short

    def _stands(self, block: str) -> bool:
        """Whether an earlier attempt showed this block: some models write all of it again, in an order of their own."""
        return block.strip() in self._earlier

    async def _take(self, draft: Draft, block: str) -> None:
        """Show a block, with what was held back before it."""
        blocks = [*self._held, block]
        piece = "".join(blocks)
        if len(self._so_far) + len(piece) > LONGEST:
            self._closed = True
            return
        listening = partial(check, on_crash=log_crash)
        shown, verdict = await asyncio.to_thread(let_through, draft, self._so_far, piece, listening)
        if not verdict.passed:
            self._hold(blocks, verdict)
        elif shown is None or not self._goes_on(verdict):  # right as a part of the whole, and the whole will say so
            self._closed = True
            log.info("block_not_shown_early", length=len(piece))
        elif shown.markdown and not await self._show(shown, draft):
            self._closed = True
        else:
            self.shown, self._so_far, self._held = shown, shown.draft, []
            self._blocks += [each.strip() for each in blocks]

    async def _show(self, shown: Shown, draft: Draft) -> bool:
        order = order_of(shown.verdict.text, draft.sources)
        return await self.stage.show(renumbered(shown.markdown, order), renumbered(shown.verdict.text, order))

    def _hold(self, blocks: list[str], verdict: Verdict) -> None:
        """What only lacks what may still come waits for it; anything else is lost."""
        self._held = blocks
        if not all(each.rule in _MAY_COME for each in verdict.errors):
            self.failed = self._so_far + "".join(blocks)
            stands = len(self.shown.verdict.text.rstrip()) if self.shown else 0
            if any(each.start < stands for each in verdict.errors):
                # It began in what was shown, as an order of a source's that is told bit by bit: that must not stay.
                self.shown, self._closed, self._blocks = None, True, []

    def _goes_on(self, verdict: Verdict) -> bool:
        """Whether what stands there already stands so in the longer answer too: a definition may set it otherwise."""
        return self.shown is None or verdict.text.startswith(self.shown.verdict.text.rstrip())


def says_not_found(text: str) -> bool:
    """Whether the model says that the sources do not hold the answer."""
    return text.strip().strip("`*_.").startswith(NOT_FOUND)
