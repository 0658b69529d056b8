"""An answer shown block by block while the model writes it.

Blocks are shown in order, once they have passed the rules and the judge. While one block is judged, the next ones are
read. Nothing is shown after a failed block, or before the text cites a source.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, Protocol

import structlog

from agent.model.prompts import says_not_found
from agent.tasks import background_tasks
from verification.check import check
from verification.incremental import ShownBlocks, check_block, complete_blocks
from verification.judgement import only_unconfirmed
from verification.rules.references import citation_order, citations, link_named_sections, renumber
from verification.types import Draft, RuleName, Verdict

if TYPE_CHECKING:
    from agent.turn.judging import AttemptJudge  # it imports ``check_draft`` from this module

log = structlog.get_logger()

check_draft: Final = partial(check, on_crash=lambda rule, error: log.error("rule_crashed", rule=rule, exc_info=error))
MAX_EARLY_CHARS = 8_000  # maximum shown early: each block is checked together with everything before it

_PARAGRAPH_START: Final = re.compile(r"\n[ \t]*\n\s*\S")
_MAX_GAP_CHARS: Final = 200  # white space that is kept: a model may get stuck in an endless gap
_MAY_COME: Final[frozenset[RuleName]] = frozenset({"not_empty", "cites_sources"})
"""Rules that later text may still satisfy: the next sentence may cite a source for "Yes.", the text below for code."""

State = Literal["reading", "unshowable", "failed", "sent_whole", "withdrawn"]
Event = Literal["next_attempt", "block_failed", "block_unshowable", "showing_ended"]

SHOWS_BLOCKS: Final[frozenset[State]] = frozenset({"reading", "unshowable", "failed"})  # those that passed before
HAS_FAILED: Final[frozenset[State]] = frozenset({"failed", "withdrawn"})

TRANSITIONS: Final[Mapping[State, Mapping[Event, State]]] = {
    # Blocks of this attempt are read, judged and shown.
    "reading": {"block_failed": "failed", "block_unshowable": "unshowable", "showing_ended": "sent_whole"},
    # No further block of this attempt can be shown early. Those that passed before still are.
    "unshowable": {"next_attempt": "reading", "block_failed": "failed", "showing_ended": "sent_whole"},
    # A block of this attempt failed. The next attempt continues after the blocks that passed.
    "failed": {"next_attempt": "reading", "showing_ended": "withdrawn"},
    # Nothing more of this answer is shown early: it is read, judged and sent as a whole.
    "sent_whole": {},
    # A block failed and none may be shown any more. The next attempt is sent as a whole.
    "withdrawn": {"next_attempt": "sent_whole"},
}
"""An event that is not listed for a state changes nothing."""


class Stage(Protocol):
    """Shows an answer while it grows (``bot.delivery.stream.AnswerStream``)."""

    async def show(self, markdown: str, text: str) -> bool:
        """Show one more verified block; False if nothing can be shown here. ``text`` is the whole answer so far."""


@dataclass(slots=True, kw_only=True)
class _LiveAttempt:
    """Progress of one attempt."""

    draft: Draft
    before: str = ""  # blocks that earlier attempts showed
    so_far: str = ""  # the answer with the blocks of this attempt
    latest: ShownBlocks | None = None
    earlier: frozenset[str] = frozenset()
    to_end: bool = False  # the model is not stopped at a failure
    position: int = 0
    failed: str = ""  # the answer up to the end of the block that failed
    held: list[str] = field(default_factory=list)  # blocks that wait for more text
    # Each block that passed, as it was drafted, and the answer up to its end.
    passed: asyncio.Queue[tuple[tuple[str, ...], ShownBlocks] | None] = field(default_factory=asyncio.Queue)

    def repeats(self, block: str) -> bool:
        """Return True for a block that an earlier attempt showed: some models write all of it again, in any order."""
        return block.strip() in self.earlier


@dataclass(slots=True, kw_only=True)
class LiveAnswer:
    """One answer on its way to the stage. ``shown`` is what people see and may keep, over all attempts."""

    stage: Stage | None = None  # None: the answer is sent as a whole
    shown: ShownBlocks | None = None
    state: State = "reading"
    _shown_blocks: list[str] = field(default_factory=list)
    _attempt: _LiveAttempt = field(default_factory=lambda: _LiveAttempt(draft=Draft(text="")))
    _space: str = ""  # the end of the text so far
    _paragraph_began: bool = False

    @property
    def shown_draft(self) -> str:
        """Draft text of the part that was shown."""
        return self.shown.draft if self.shown else ""

    @property
    def is_cut_short(self) -> bool:
        """True if this attempt failed and the model is stopped early."""
        return self.state in HAS_FAILED and not self._attempt.to_end

    def _on(self, event: Event) -> None:
        self.state = TRANSITIONS[self.state].get(event, self.state)

    @asynccontextmanager
    async def attempt(self, draft: Draft, judge: AttemptJudge, *, last: bool) -> AsyncIterator[None]:
        """Continue with another attempt after the shown part. On leaving, wait until its blocks are judged and shown.

        The ``last`` attempt is read to its end even after a failure. An exception of the stage is raised unchanged.
        """
        self._on("next_attempt")
        before = f"{self.shown_draft.rstrip()}\n\n" if self.shown else ""
        earlier = frozenset(self._shown_blocks)
        self._attempt = _LiveAttempt(
            draft=draft, before=before, so_far=before, latest=self.shown, earlier=earlier, to_end=last
        )
        try:
            async with background_tasks() as group:
                live = group.create_task(self._show_passed(judge), name="live-answer")
                try:
                    yield
                    if latest := self._attempt.latest:  # judging the rest need not wait for the running call
                        group.create_task(judge.examine(latest.verdict), name="live-answer-end")
                except asyncio.CancelledError:
                    live.cancel()
                    raise
                finally:
                    self._attempt.passed.put_nowait(None)  # marks the end: blocks that passed are still shown
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _show_passed(self, judge: AttemptJudge) -> None:
        """Show the blocks that passed, in order. Blocks that arrive during one judge call share the next call."""
        passed, is_over = self._attempt.passed, False
        while not is_over:
            entries = [await passed.get()]
            while not passed.empty():
                entries.append(passed.get_nowait())
            is_over = None in entries
            if blocks := [*filter(None, entries)]:
                await judge.examine(blocks[-1][1].verdict)
            for texts, shown in blocks:
                if not await self._show(texts, replace(shown, verdict=await judge.examine(shown.verdict))):
                    return

    async def _show(self, texts: tuple[str, ...], shown: ShownBlocks) -> bool:
        verdict = shown.verdict
        if not verdict.passed:
            # The draft is not to blame for an unconfirmed claim: read it to the end, then cut the claim.
            if self.state in SHOWS_BLOCKS and not only_unconfirmed(verdict):
                self._attempt.failed = shown.draft
                self._on("block_failed")
                return False
            self._on("showing_ended")
        if self.stage and shown.markdown and self.state in SHOWS_BLOCKS:
            sources, before = self._attempt.draft.sources, len(self.shown.verdict.text) if self.shown else 0
            own = [claim for claim in verdict.claims if claim.end > before]
            order, markdown = citation_order(verdict.text, sources), link_named_sections(shown.markdown, sources, own)
            if not await self.stage.show(renumber(markdown, order), renumber(verdict.text, order)):
                self._on("showing_ended")
        if self.state not in SHOWS_BLOCKS:
            return False
        self.shown = shown
        self._shown_blocks += texts
        return True

    def is_due(self, piece: str) -> bool:
        """Return True if a block may be complete now that ``piece`` arrived, and may still be shown."""
        if self.state != "reading":
            return False
        text = self._space + piece
        self._space = text[len(text.rstrip()) :][-_MAX_GAP_CHARS:]
        begins = bool(_PARAGRAPH_START.search(text))
        due, self._paragraph_began = begins or self._paragraph_began, begins  # "1" may become "1." or "10 days"
        return due

    def full_text(self, text: str) -> str:
        """Return the answer to judge: the part shown before this attempt, then the new blocks of ``text``."""
        if self.is_cut_short:
            return self._attempt.failed
        blocks = complete_blocks(text, ended=True)
        return self._attempt.before + "".join(itertools.filterfalse(self._attempt.repeats, blocks))

    async def grow(self, text: str, *, ended: bool = False) -> None:
        """Take the new complete blocks of this attempt's ``text``."""
        attempt = self._attempt
        if self.state != "reading" or says_not_found(text):
            return
        for block in complete_blocks(text[attempt.position :], ended=ended):
            attempt.position += len(block)
            if self.state == "reading" and not attempt.repeats(block):
                await self._take(block)
        attempt.to_end = attempt.to_end or (ended and self.state not in HAS_FAILED)  # nothing is left to cut short
        if len(text) - attempt.position > MAX_EARLY_CHARS:  # do not cut an endless block again for each of its lines
            self._on("block_unshowable")

    async def _take(self, block: str) -> None:
        attempt, blocks = self._attempt, [*self._attempt.held, block]
        piece = "".join(blocks)
        if len(attempt.so_far) + len(piece) > MAX_EARLY_CHARS:
            self._on("block_unshowable")
            return
        shown, verdict = await asyncio.to_thread(check_block, attempt.draft, attempt.so_far, piece, check_draft)
        if not verdict.passed:
            self._hold(blocks, verdict)
        elif attempt.draft.has_judge and not citations(verdict.text):
            attempt.held = blocks  # it may turn out to say that the sources lack the answer
        # The longer answer must begin with the text shown: a later definition may change it.
        elif shown is None or not verdict.text.startswith(_text(attempt.latest)):
            self._on("block_unshowable")
            log.info("block_not_shown_early", length=len(piece))
        else:
            attempt.latest, attempt.so_far, attempt.held = shown, shown.draft, []
            attempt.passed.put_nowait((tuple(each.strip() for each in blocks), shown))

    def _hold(self, blocks: list[str], verdict: Verdict) -> None:
        """Keep blocks that only lack something later text may add; fail the attempt on any other error."""
        attempt = self._attempt
        attempt.held = blocks
        if all(each.rule in _MAY_COME for each in verdict.errors):
            return
        attempt.failed = attempt.so_far + "".join(blocks)
        self._on("block_failed")
        start = min(each.start for each in verdict.errors)
        if start < len(_text(attempt.latest)):
            # The fault began in an earlier block, for example an order spread over several: that block must not stay.
            self._on("showing_ended")
        if start < len(_text(self.shown)):
            self.shown, self._shown_blocks = None, []


def _text(shown: ShownBlocks | None) -> str:
    return shown.verdict.text.rstrip() if shown else ""
