"""All stores over one Redis for the messages of all workspaces, under one prefix."""

import structlog
from redis.asyncio import Redis

from agent.thread.conversation import ThreadKey
from agent.thread.state import StateNotSaved, ThreadState
from agent.thread.store import StateFenced, ThreadStore
from bot.queue.lease import LeaseLost
from bot.queue.queue import Claimed, Mailbox
from bot.slack.message import Incoming
from bot.slack.users import CachedPeople
from bot.stores.budgets import Budgets, Limits
from bot.stores.cancellations import Cancellations
from bot.stores.listening import Listening
from bot.stores.pause import Pausing
from bot.stores.places import DirectChats, Served
from bot.stores.thread_mode import ThreadModes

log = structlog.get_logger()
NO_LIMITS = Limits()
TOKEN_TTL_S = 600  # Slack accepts a search token for a few minutes only


class Stores:
    """``mailbox``: waiting messages; ``threads``: their state; ``thread_modes``: engaged, muted or unknown."""

    def __init__(self, redis: Redis, mailbox: Mailbox, limits: Limits = NO_LIMITS, *, prefix: str = "orion") -> None:
        self.redis = redis
        self.prefix = prefix
        self.mailbox = mailbox
        self.threads = ThreadStore(redis, prefix=prefix)
        self.thread_modes = ThreadModes(redis, prefix=prefix)
        self.cancellations = Cancellations(redis, prefix=prefix)
        self.direct_chats = DirectChats(redis, prefix=prefix)
        self.served = Served(redis, prefix=prefix)
        self.listening = Listening(redis, prefix=prefix)
        self.pausing = Pausing(redis, prefix=prefix)
        self.budgets = Budgets(redis, limits, prefix=prefix)
        self.people = CachedPeople(redis, prefix=prefix)

    def token_key(self, incoming: Incoming) -> str:
        """Redis key of the token with which Orion may search Slack for this version of a message."""
        return f"{self.prefix}:action_token:{incoming.thread}:{incoming.ts}:{incoming.edited_ts}"

    async def save_token(self, incoming: Incoming) -> None:
        """Save the search token of an event, if it has one. Raises ``RedisError``."""
        if incoming.action_token:
            await self.redis.set(self.token_key(incoming), incoming.action_token, ex=TOKEN_TTL_S)

    async def save(self, claimed: Claimed, thread: ThreadKey, state: ThreadState) -> None:
        """Save the thread's state. A failure is logged and never a reason to answer again.

        Raises ``LeaseLost`` if another worker has the thread.
        """
        try:
            await self.threads.save(thread, state, fence=claimed.fence)
        except StateFenced:
            raise LeaseLost from None
        except StateNotSaved as error:
            log.warning("state_save_failed", thread=str(thread), reason=type(error).__name__)
