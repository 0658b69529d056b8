"""Background sync: every ``ORION_SYNC_MINUTES`` a child process reads all sources.

The child ends with its parent. Its exit code is 0 after a sync, and ``ELSEWHERE`` if another process did it.
"""

import asyncio
import math
import os
import pickle
import random
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Literal, NamedTuple

import structlog

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.types import KnowledgeAwayError, due_at
from bot.documents.corpus import SYNC_WAIT_S, Corpus, sync_index
from bot.errors import WrongUse
from observability.logging import configure

log = structlog.get_logger()

FAILED = 1
ELSEWHERE = 3
_NICE = 10
Result = Literal["synced", "elsewhere", "failed"]
_JITTER_SHARE: Final = 0.1  # maximum share of the interval, so that machines started together do not sync together
_MAX_JITTER_S: Final = 3.0
_RETRY_S: Final = 60.0  # minimum time before a run that did nothing is repeated


class SyncOrder(NamedTuple):
    """Arguments of ``sync_index`` and of logging. The process reads them, pickled, from its standard input."""

    corpus: Corpus
    every_s: float
    json: bool
    debug: bool
    fetch: bool = True
    wait_s: float = 0.0


def main() -> int:
    """Read the order from standard input and run it at low priority. Return the exit code."""
    order: SyncOrder = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one, over its own pipe
    configure(json=order.json, debug=order.debug)
    sys.excepthook = _log_crash
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(_NICE)
    return run_order(order)


def run_order(order: SyncOrder) -> int:
    """Sync once. Return the exit code."""
    try:
        report = sync_index(order.corpus, every_s=order.every_s, fetch=order.fetch, wait_s=order.wait_s)
    except (KnowledgeAwayError, WrongUse, OSError, sqlite3.Error) as error:
        log.warning("knowledge_sync_failed", cause=type(error).__name__, reason=str(error))
        return FAILED
    return ELSEWHERE if report is None else 0


def _end_with_parent() -> None:  # the parent has the other end of standard input
    # Read the descriptor, because Python's buffer would keep a lock until the exit.
    os.read(sys.stdin.fileno(), 1)
    os._exit(FAILED)


def _log_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Log an unexpected error without its text, which may quote a document."""
    log.error("knowledge_sync_crashed", exc_info=(kind, error, trace))


@dataclass(frozen=True, slots=True, kw_only=True)
class Syncing:
    """Sync loop of one process. ``every_s`` is the interval of a source, infinite for none; ``count`` gets each result.

    ``at_start`` reads folders, repositories and exports at once; ``started`` is set once they are read.
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
        # Do not use a thread: parsing would slow down turns, and a thread cannot be ended (decision 13).
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bot.documents.sync"),
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


if __name__ == "__main__":
    sys.exit(main())
