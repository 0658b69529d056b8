"""Deletes the answer to a deleted question, and what the thread's memory holds of both (A3)."""

from __future__ import annotations

from agent.thread.state import unsaid
from bot.delivery.delivery import Delivery
from bot.slack.web_api import DeliveryFailed
from bot.stores.stores import Stores
from bot.turn.job import Job


async def take_back(job: Job, delivery: Delivery, stores: Stores) -> None:
    """Do what the deletion in ``job`` asks. Raises ``DeliveryFailed`` and ``LeaseLost``."""
    state = await stores.threads.load(job.place)
    after = unsaid(state, job.incoming.ts)
    if after != state:
        await stores.save(job.claimed, job.place, after)
    try:
        posted = state.posted.get(job.incoming.ts, ())
        await delivery.withdraw(job.place, job.incoming.ts, job.lease.require, posted=posted)
    except DeliveryFailed as failure:
        if failure.reason != "thread_not_found":  # it would have opened the thread: nothing was answered yet
            raise
