"""SIGTERM and SIGINT, heeded here alone: the first one ends the start or drains, the second ends at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class EndedAtOnce(Exception):  # noqa: N818 - it names what happened
    """A second signal came while Orion was ending in good order."""


@dataclass(slots=True, kw_only=True)
class Stopping:
    """``asked`` is set by the first signal. Who runs until then sets ``running`` and is told by ``tell``."""

    whole: asyncio.Task[Any]
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    running: bool = False
    tell: Callable[[], None] = lambda: None

    def heard(self) -> None:
        """One signal came."""
        # Before it runs there is nothing to drain, and who asks twice does not want to wait: both end at once.
        if self.asked.is_set() or not self.running:
            self.whole.cancel()
        else:
            self.tell()
        self.asked.set()


@contextmanager
def heeding_signals() -> Iterator[Stopping]:
    """Heed signals inside the block, the whole of this task's work. Raises ``EndedAtOnce`` after a second signal."""
    whole = asyncio.current_task()
    if whole is None:
        message = "signals are heeded inside a task"
        raise RuntimeError(message)
    stopping = Stopping(whole=whole)
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stopping.heard)
    try:
        yield stopping
    except asyncio.CancelledError:
        if not stopping.asked.is_set():
            raise
        # The cancelling was ours: whoever waits for this task must not take it for theirs.
        whole.uncancel()
        if stopping.running:
            raise EndedAtOnce from None
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
