"""What all who handle a letter remember over one Redis: the letters, the threads, and what was taken back.

Promises: the parts of one memory share a Redis and a prefix, so that whoever takes a letter over finds what was left.
Must never hold anything of one workspace alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from redis.asyncio import Redis

from agent.thread_store import ThreadStore
from bot.action_tokens import ActionTokens
from bot.mailbox import Mailbox
from bot.standing import Standings
from bot.withdrawals import Withdrawals


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """``mailbox``: what waits; ``threads``: what was said; ``standings``: where Orion stands in each thread."""

    mailbox: Mailbox
    threads: ThreadStore
    standings: Standings
    withdrawals: Withdrawals
    tokens: ActionTokens


def memory_over(redis: Redis, mailbox: Mailbox, *, prefix: str = "orion") -> Memory:
    """The memory round this mailbox."""
    return Memory(
        mailbox=mailbox,
        threads=ThreadStore(redis, prefix=prefix),
        standings=Standings(redis, prefix=prefix),
        withdrawals=Withdrawals(redis, prefix=prefix),
        tokens=ActionTokens(redis, prefix=prefix),
    )
