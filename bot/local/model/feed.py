"""Numbered updates of the workspace, for the page's sockets and for tests."""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from bot.local.model.roster import Json

Found = TypeVar("Found")


@dataclass(slots=True)
class UpdateFeed:
    """A numbered list of updates, and the queues of its watchers. A page from an earlier run has to reload."""

    run: str = field(default_factory=lambda: secrets.token_hex(6))
    seq: int = 0
    # A watcher that missed more than these has to reload.
    _kept: deque[Json] = field(default_factory=lambda: deque(maxlen=5_000))
    _watchers: set[asyncio.Queue[Json | None]] = field(default_factory=set)
    _wakers: set[asyncio.Event] = field(default_factory=set)

    def publish(self, kind: str, **facts: object) -> None:
        """Number an update, pass it to every watcher and wake those who wait for a state."""
        self.seq += 1
        update: Json = {"type": kind, "seq": self.seq, **facts}
        self._kept.append(update)
        for watcher in self._watchers:
            watcher.put_nowait(update)
        self.touch()

    def touch(self) -> None:
        """Wake those who wait for a state, without an update for the page."""
        for waker in self._wakers:
            waker.set()

    def since(self, run: str, seq: str) -> list[Json]:
        """The updates after number ``seq``, or an order to reload if some are no longer stored."""
        known = run == self.run and seq.isdecimal() and self.seq - len(self._kept) <= int(seq) <= self.seq
        return [update for update in self._kept if update["seq"] > int(seq)] if known else [{"type": "reset"}]

    @contextmanager
    def watching(self) -> Iterator[asyncio.Queue[Json | None]]:
        """Return a queue of all updates from now on; None means that the workspace ends."""
        queue: asyncio.Queue[Json | None] = asyncio.Queue()
        self._watchers.add(queue)
        try:
            yield queue
        finally:
            self._watchers.discard(queue)
            self.touch()

    def close(self) -> None:
        """End every watcher."""
        for watcher in self._watchers:
            watcher.put_nowait(None)

    async def wait_for(self, predicate: Callable[[], Found | None], timeout: float = 30.0) -> Found:  # noqa: ASYNC109 - part of the contract
        """Call ``predicate`` after each change until its value is truthy, and return that. Raises ``TimeoutError``."""
        waker = asyncio.Event()
        self._wakers.add(waker)
        try:
            async with asyncio.timeout(timeout):
                while not (found := predicate()):
                    await waker.wait()
                    waker.clear()
                return found
        finally:
            self._wakers.discard(waker)
