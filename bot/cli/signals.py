"""SIGTERM and SIGINT: the first one stops the start or drains, the second one exits at once."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class EndedAtOnce(Exception):  # noqa: N818 - it names what happened
    """A second signal came during an orderly shutdown."""


@dataclass(slots=True, kw_only=True)
class Stopping:
    """State of a shutdown by signal. The first signal sets ``asked``; work that must drain sets ``running``."""

    whole: asyncio.Task[Any]
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    running: bool = False
    tell: Callable[[], None] = lambda: None

    def on_signal(self) -> None:
        """Handle one signal."""
        # Before the start there is nothing to drain, and a second signal means not to wait: exit at once.
        if self.asked.is_set() or not self.running:
            self.whole.cancel()
        else:
            self.tell()
        self.asked.set()


@contextmanager
def handle_signals() -> Iterator[Stopping]:
    """Handle signals during the block, which is the whole task. Raises ``EndedAtOnce`` after a second signal."""
    whole = cast("asyncio.Task[Any]", asyncio.current_task())
    stopping = Stopping(whole=whole)
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, stopping.on_signal)
    try:
        yield stopping
    except asyncio.CancelledError:
        if not stopping.asked.is_set():
            raise
        # We cancelled the task ourselves, so callers that wait for it must not see a cancellation.
        whole.uncancel()
        if stopping.running:
            raise EndedAtOnce from None
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
