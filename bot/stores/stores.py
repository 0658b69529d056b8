"""What all who handle a message remember over one Redis: the messages, the threads, and what was taken back.

Promises: the parts of one memory share a Redis and a prefix, so that whoever takes a message over finds what was left.
Must never hold anything of one workspace alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from redis.asyncio import Redis

from agent.thread.conversation import ThreadKey
from agent.thread.state import StateNotSaved, ThreadState
from agent.thread.store import StateFenced, ThreadStore
from bot.queue.lease import LeaseLost
from bot.queue.queue import Claimed, Mailbox
from bot.stores.cancellations import Cancellations
from bot.stores.search_tokens import ActionTokens
from bot.stores.thread_mode import ThreadModes

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """``mailbox``: what waits; ``threads``: what was said; ``thread_modes``: where Orion stands in each thread."""

    mailbox: Mailbox
    threads: ThreadStore
    thread_modes: ThreadModes
    cancellations: Cancellations
    tokens: ActionTokens

    async def save(self, claimed: Claimed, thread: ThreadKey, state: ThreadState) -> None:
        """Saves what a message changed. A state that cannot be saved is logged, never a reason to answer again.

        Raises ``LeaseLost`` where another worker has the thread by now.
        """
        try:
            await self.threads.save(thread, state, fence=claimed.fence)
        except StateFenced:
            raise LeaseLost from None
        except StateNotSaved as error:
            log.warning("state_save_failed", thread=str(thread), reason=type(error).__name__)


def stores_over(redis: Redis, mailbox: Mailbox, *, prefix: str = "orion") -> Stores:
    """The memory round this mailbox."""
    return Stores(
        mailbox=mailbox,
        threads=ThreadStore(redis, prefix=prefix),
        thread_modes=ThreadModes(redis, prefix=prefix),
        cancellations=Cancellations(redis, prefix=prefix),
        tokens=ActionTokens(redis, prefix=prefix),
    )
