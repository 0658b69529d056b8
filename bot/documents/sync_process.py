"""The child process of the background sync: one run over all sources.

It ends when its parent is gone. Exit code 0: brought up to date; ``ELSEWHERE``: another process does it, or just did.
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
from bot.documents.corpus import Corpus, bring_up_to_date
from bot.errors import WrongUse
from observability.logging import configure

log = structlog.get_logger()

FAILED = 1
ELSEWHERE = 3
_NICE = 10


class Order(NamedTuple):
    """What to bring up to date, unless it was within the last ``every_s`` seconds; and how to log.

    The process reads it pickled from its standard input, which then stays open.
    """

    corpus: Corpus
    every_s: float
    json: bool
    debug: bool


def main() -> int:
    """Do what the starting process wrote, beside everything else this machine does. Returns the exit code."""
    order: Order = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one, over its own pipe
    configure(json=order.json, debug=order.debug)
    sys.excepthook = _told
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(_NICE)
    return carry_out(order)


def carry_out(order: Order) -> int:
    """The run itself. Returns the exit code."""
    try:
        report = bring_up_to_date(order.corpus, every_s=order.every_s)
    except (KnowledgeAwayError, WrongUse, OSError, sqlite3.Error) as error:
        log.warning("knowledge_sync_failed", cause=type(error).__name__)
        return FAILED
    return ELSEWHERE if report is None else 0


def _end_with_parent() -> None:  # standard input ends with the process that holds its other end
    # Past Python's own buffer, whose lock would be held to the end.
    os.read(sys.stdin.fileno(), 1)
    os._exit(FAILED)


def _told(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What nobody foresaw, without its text: that may quote a document."""
    log.error("knowledge_sync_crashed", exc_info=(kind, error, trace))


if __name__ == "__main__":
    sys.exit(main())
