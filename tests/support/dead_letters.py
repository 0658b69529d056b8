"""The dead letters of a mailbox."""

from bot.queue.dead_letters import DeadLetter, DeadLetters
from bot.queue.queue import Mailbox


async def dead_letters(mailbox: Mailbox, limit: int = 100) -> list[DeadLetter]:
    """The newest first."""
    return await DeadLetters(mailbox._redis, prefix=mailbox._prefix, shards=mailbox._shards).newest(limit)
