"""Background sync: reads all sources every ``ORION_SYNC_MINUTES``, in one child process for each index."""

from __future__ import annotations

import asyncio
import math
import pickle
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

import structlog

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.types import KnowledgeAwayError, due_at
from bot.documents.corpus import SYNC_WAIT_S, Corpus
from bot.documents.sync_process import ELSEWHERE, SyncOrder

log = structlog.get_logger()

Result = Literal["synced", "elsewhere", "failed"]

_JITTER_SHARE: Final = 0.1  # of the interval at most, so that machines started together do not sync together
_MAX_JITTER_S: Final = 3.0
_RETRY_S: Final = 60.0  # a run that did nothing is not repeated sooner


@dataclass(frozen=True, slots=True, kw_only=True)
class Syncing:
    """Sync loop of one process. ``every_s`` is the interval of a source, infinite for none; ``count`` gets each result.

    ``at_start`` reads folders, repositories and exports at once; ``started`` is set when that has ended.
    """

    corpus: Corpus
    index: KnowledgeIndex
    every_s: float
    count: Callable[[Result], None] = lambda _: None
    retry_s: float = _RETRY_S
    json: bool = True
    debug: bool = False
    at_start: bool = False
    started: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Sync until cancelled; then kill a running sync."""
        try:
            if self.at_start:
                self.count(await self._run_process(every_s=0.0, fetch=False, wait_s=SYNC_WAIT_S))
        finally:
            self.started.set()
        while self.every_s < math.inf:
            await asyncio.sleep(await self._seconds_until_due())
            result = await self._run_process(every_s=self.every_s)
            self.count(result)
            if result != "synced":
                await asyncio.sleep(min(self.every_s, self.retry_s))

    async def _seconds_until_due(self) -> float:
        try:
            states = await asyncio.to_thread(self.index.states)
        except KnowledgeAwayError:
            return min(self.every_s, self.retry_s)
        due = min(due_at(states, self.corpus.names, self.every_s), time.time() + self.every_s)
        return max(0.0, due - time.time()) + random.uniform(0, min(_MAX_JITTER_S, _JITTER_SHARE * self.every_s))  # noqa: S311 - spreads load, guards nothing

    async def _run_process(self, *, every_s: float, fetch: bool = True, wait_s: float = 0.0) -> Result:
        began = time.monotonic()
        # No thread: parsing would take the turns' time, and a thread cannot be ended (decision 13).
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bot.documents.sync_process"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C at the terminal is for the process that decides
        )
        try:
            order = SyncOrder(self.corpus, every_s, self.json, self.debug, fetch, wait_s)
            if process.stdin is not None:  # a stop was requested
                process.stdin.write(pickle.dumps(order))
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        result: Result = "synced" if code == 0 else "elsewhere" if code == ELSEWHERE else "failed"
        tell = log.warning if result == "failed" else log.info
        tell("knowledge_sync_ended", how=result, exit_code=code, seconds=round(time.monotonic() - began, 1))
        return result
