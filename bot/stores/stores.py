"""Everything kept over one Redis for the messages of all workspaces, under one prefix."""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from redis.asyncio import Redis

from agent.thread.conversation import ThreadKey
from agent.thread.state import StateNotSaved, ThreadState
from agent.thread.store import StateFenced, ThreadStore
from bot.queue.lease import LeaseLost
from bot.queue.queue import Claimed, Mailbox
from bot.slack.users import KnownPeople
from bot.stores.budgets import Budgets, Limits
from bot.stores.cancellations import Cancellations
from bot.stores.direct_chats import DirectChats
from bot.stores.pause import Pausing
from bot.stores.search_tokens import ActionTokens
from bot.stores.thread_mode import ThreadModes

log = structlog.get_logger()
NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """``mailbox``: what waits; ``threads``: what was said; ``thread_modes``: where Orion stands in each thread."""

    redis: Redis
    mailbox: Mailbox
    threads: ThreadStore
    thread_modes: ThreadModes
    cancellations: Cancellations
    direct_chats: DirectChats
    tokens: ActionTokens
    pausing: Pausing
    budgets: Budgets
    people: KnownPeople

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


def stores_over(redis: Redis, mailbox: Mailbox, limits: Limits = NO_LIMITS, *, prefix: str = "orion") -> Stores:
    """The memory round this mailbox. ``limits`` are the budgets'."""
    return Stores(
        redis=redis,
        mailbox=mailbox,
        threads=ThreadStore(redis, prefix=prefix),
        thread_modes=ThreadModes(redis, prefix=prefix),
        cancellations=Cancellations(redis, prefix=prefix),
        direct_chats=DirectChats(redis, prefix=prefix),
        tokens=ActionTokens(redis, prefix=prefix),
        pausing=Pausing(redis, prefix=prefix),
        budgets=Budgets(redis, limits, prefix=prefix),
        people=KnownPeople(redis, prefix=prefix),
    )
