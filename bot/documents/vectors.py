"""Makes the vectors for search by meaning, in the background. Until a passage has one it is found by its words."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Final

import structlog

from agent.knowledge.index.index import Meaning
from agent.knowledge.types import KnowledgeAwayError
from agent.tasks import background_tasks

log = structlog.get_logger()

LOOK_AGAIN_S: Final = 30.0
_LEAST_URGENT: Final = 19


async def make_vectors(meaning: Meaning | None, progress: Callable[[int, int], None] | None = None) -> tuple[int, int]:
    """Make all that are missing now; how many passages then have one, of how many."""
    if meaning is None:
        return 0, 0
    await asyncio.to_thread(meaning.make, progress=progress)
    return await asyncio.to_thread(meaning.counts)


@asynccontextmanager
async def vectors_meanwhile(meaning: Meaning | None, *, again_s: float = LOOK_AGAIN_S) -> AsyncIterator[None]:
    """Make what is missing while the block runs, and look every ``again_s`` seconds whether more is."""
    if meaning is None:
        yield
        return
    stop, ended = threading.Event(), asyncio.Event()
    with ThreadPoolExecutor(1, "vectors", initializer=_not_urgent) as thread:
        async with background_tasks() as group:
            group.create_task(_keep_making(meaning, thread, stop, ended, again_s), name="vectors")
            try:
                yield
            finally:
                stop.set()
                ended.set()


async def _keep_making(
    meaning: Meaning, thread: ThreadPoolExecutor, stop: threading.Event, ended: asyncio.Event, again_s: float
) -> None:
    while not ended.is_set():
        try:
            await asyncio.get_running_loop().run_in_executor(thread, lambda: meaning.make(stop=stop))
        except (KnowledgeAwayError, sqlite3.Error, OSError) as error:
            log.warning("vectors_not_made", error_type=type(error).__name__)
        try:
            async with asyncio.timeout(again_s):
                await ended.wait()
        except TimeoutError:
            continue


def _not_urgent() -> None:
    if sys.platform == "linux":  # elsewhere urgency is the process's: answers would be slower too
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LEAST_URGENT)
