"""An answer shown block by block while the model writes it.

A block is shown once it passed the rules and the judge, in the order of the answer; while one is judged, the next ones
are read. Nothing is shown behind a block that failed, and none of a text that cites nothing yet.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import structlog

from agent.model.prompts import NOT_FOUND
from agent.tasks import beside
from agent.turn.renumbering import order_of, renumbered
from agent.turn.rules import checked
from verification.incremental import Shown, complete, let_through
from verification.judgement import only_unconfirmed
from verification.rules.citations import citations
from verification.types import Draft, RuleName, Verdict

log = structlog.get_logger()

LONGEST = 8_000  # characters shown early: each block is checked together with all that stands before it

_BEGINS: Final = re.compile(r"\n[ \t]*\n\s*\S")
_GAP: Final = 200  # characters of white space that are remembered: a model may get stuck in an endless gap
_MAY_COME: Final[frozenset[RuleName]] = frozenset({"not_empty", "cites_sources"})
"""Rules that what follows may still satisfy: "Yes." is cited by the sentence behind it, code by the words under it."""


Examine = Callable[[Verdict], Coroutine[None, None, Verdict]]
"""The verdict of the rules on the answer so far, with what the judge says of it."""


class Stage(Protocol):
    """Where an answer can be seen while it grows."""

    async def show(self, markdown: str, text: str) -> bool:
        """Show one more verified block. ``text`` is the answer up to here as an ordinary answer has it.

        False means that nothing can be shown here, and that nothing was.
        """


_Passed = tuple[tuple[str, ...], Shown]  # a block that passed, as it was drafted, and the answer up to its end


@dataclass(slots=True, kw_only=True)
class LiveAnswer:
    """One answer on its way to the stage. ``shown`` is what stands there and may stay, over all attempts.

    ``failed`` is the answer up to the end of the block that failed in this attempt; empty while none has.
    """

    stage: Stage
    shown: Shown | None = None
    failed: str = ""
    _latest: Shown | None = None
    _passed: asyncio.Queue[_Passed | None] = field(default_factory=asyncio.Queue)
    _draft: Draft = field(default_factory=lambda: Draft(text=""))
    _closed: bool = False
    _stopped: bool = False
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

    @asynccontextmanager
    async def attempt(self, draft: Draft, examine: Examine, *, last: bool) -> AsyncIterator[None]:
        """Another attempt goes on after what was shown; leaving waits until its blocks are judged and shown.

        ``draft`` holds all that a judgement may depend on but the text. The ``last`` attempt is read to its end
        whatever fails. What the stage raises comes out as it was raised.
        """
        self.failed, self._last, self._read, self._draft = "", last, 0, draft
        self._before = self._so_far = f"{self.kept.rstrip()}\n\n" if self.shown else ""
        self._held, self._earlier = [], frozenset(self._blocks)
        self._latest, self._passed = self.shown, asyncio.Queue()
        try:
            async with beside() as group:
                leaving = group.create_task(self._leave(examine), name="live-answer")
                try:
                    yield
                    if self._latest:  # what is left to be judged need not wait for the call under way
                        group.create_task(examine(self._latest.verdict), name="live-answer-end")
                except asyncio.CancelledError:
                    leaving.cancel()
                    raise
                finally:
                    self._passed.put_nowait(None)  # the mark of the end: what passed before it still leaves
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _leave(self, examine: Examine) -> None:
        """Show the blocks that passed, in order: those that came while one call was under way take one call more."""
        ended = False
        while not ended:
            taken = [await self._passed.get()]
            while not self._passed.empty():
                taken.append(self._passed.get_nowait())
            ended = None in taken
            blocks = [*filter(None, taken)]
            if blocks:
                await examine(blocks[-1][1].verdict)
            for texts, shown in blocks:
                if not await self._leaves(texts, replace(shown, verdict=await examine(shown.verdict))):
                    return

    async def _leaves(self, texts: tuple[str, ...], shown: Shown) -> bool:
        verdict = shown.verdict
        if not (self._stopped or verdict.passed or only_unconfirmed(verdict)):
            self.failed = shown.draft
            return False
        # What nobody confirmed is no fault of the draft's: it is read to its end, and that is cut out then.
        self._stopped = self._stopped or not verdict.passed
        if shown.markdown and not self._stopped:
            order = order_of(verdict.text, self._draft.sources)
            self._stopped = not await self.stage.show(
                renumbered(shown.markdown, order), renumbered(verdict.text, order)
            )
        if not self._stopped:
            self.shown = shown
            self._blocks += texts
        return not self._stopped

    def due(self, piece: str) -> bool:
        """Whether a block may be complete now that ``piece`` arrived: it is when another paragraph began."""
        if self._is_over:
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

    async def grow(self, text: str, *, ended: bool = False) -> None:
        """Take what of this attempt's ``text`` is complete by now."""
        if self._is_over or says_not_found(text):
            return
        for block in complete(text[self._read :], ended=ended):
            self._read += len(block)
            if not (self._stands(block) or self._is_over):
                await self._take(block)
        self._last = self._last or (ended and not self.failed)  # nothing is left to be cut short
        # What is too long already is not cut into blocks anew with each of its lines.
        self._closed = self._closed or len(text) - self._read > LONGEST

    @property
    def _is_over(self) -> bool:
        return bool(self._closed or self._stopped or self.failed)

    def _stands(self, block: str) -> bool:
        """Whether an earlier attempt showed this block: some models write all of it again, in an order of their own."""
        return block.strip() in self._earlier

    async def _take(self, block: str) -> None:
        blocks = [*self._held, block]
        piece = "".join(blocks)
        if len(self._so_far) + len(piece) > LONGEST:
            self._closed = True
            return
        shown, verdict = await asyncio.to_thread(let_through, self._draft, self._so_far, piece, checked)
        if not verdict.passed:
            self._hold(blocks, verdict)
        elif self._draft.judged and not citations(verdict.text):  # so far it may say that there is no answer
            self._held = blocks
        # What stands there already must stand so in the longer answer too: a definition may set it otherwise.
        elif shown is None or not verdict.text.startswith(self._latest.verdict.text.rstrip() if self._latest else ""):
            self._closed = True
            log.info("block_not_shown_early", length=len(piece))
        else:
            self._latest, self._so_far, self._held = shown, shown.draft, []
            self._passed.put_nowait((tuple(each.strip() for each in blocks), shown))

    def _hold(self, blocks: list[str], verdict: Verdict) -> None:
        """What only lacks what may still come waits for it; anything else is lost."""
        self._held = blocks
        if all(each.rule in _MAY_COME for each in verdict.errors):
            return
        self.failed = self._so_far + "".join(blocks)
        begins = min(each.start for each in verdict.errors)
        if begins < _length(self._latest):
            # It began in an earlier block, as an order of a source's that is told bit by bit: that must not stay.
            self._stopped = True
        if begins < _length(self.shown):
            self.shown, self._blocks = None, []


def _length(shown: Shown | None) -> int:
    return len(shown.verdict.text.rstrip()) if shown else 0


def says_not_found(text: str) -> bool:
    """Whether the model says that the sources do not hold the answer."""
    return text.strip().strip("`*_.").startswith(NOT_FOUND)
