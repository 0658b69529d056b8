"""Child process of the background sync: one run over all sources.

It ends with its parent. Exit code 0: synced; ``ELSEWHERE``: another process does it, or just did.
"""

from __future__ import annotations

import os
import pickle
import sqlite3
import sys
import threading
from types import TracebackType
from typing import NamedTuple

import structlog

from agent.knowledge.types import KnowledgeAwayError
from bot.documents.corpus import Corpus, sync_index
from bot.errors import WrongUse
from observability.logging import configure

log = structlog.get_logger()

FAILED = 1
ELSEWHERE = 3
_NICE = 10


class SyncOrder(NamedTuple):
    """Corpus to sync, unless it was synced in the last ``every_s`` seconds, and how to log. See ``sync_index``.

    The process reads it, pickled, from its standard input, which then stays open.
    """

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


def _end_with_parent() -> None:  # the parent holds the other end of standard input
    # Read the descriptor: Python's own buffer would hold a lock until the exit.
    os.read(sys.stdin.fileno(), 1)
    os._exit(FAILED)


def _log_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Log an unexpected error without its text, which may quote a document."""
    log.error("knowledge_sync_crashed", exc_info=(kind, error, trace))


if __name__ == "__main__":
    sys.exit(main())
