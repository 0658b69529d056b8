"""Messages that were given up. An operator lists them, retries one (once) or drops it. They expire after 30 days."""

import re
from dataclasses import dataclass
from typing import Any, Literal

from redis.asyncio import Redis

from agent.json_data import parse_number
from agent.thread.store import shard_tag, shards_of
from bot.queue.queue import Wakeup, load_script, split_entry

Fate = Literal["retry", "drop"]

_ENTRY_ID = re.compile(r"(?:(?P<shard>\d{1,4})/)?(?P<place>\d{1,20}-\d{1,20})")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message that was given up, with the reason. ``id`` is the message's id, ``entry_id`` that of its stream entry.

    ``died_at`` and ``enqueued_at`` are seconds since 1970 by Redis' clock.
    """

    entry_id: str
    thread: str
    id: str
    body: str
    reason: str
    tries: int
    enqueued_at: float
    died_at: float


class DeadLetters:
    """The dead letters of a mailbox. ``prefix`` and ``shards`` are the mailbox's. Methods raise ``RedisError``."""

    def __init__(self, redis: Redis, *, prefix: str = "orion", shards: int | None = None) -> None:
        self._redis = redis
        count = shards or shards_of(redis)
        self._tags = [shard_tag(number, prefix=prefix, shards=count) for number in range(count)]
        self._wakeup = Wakeup(redis, prefix=prefix, shards=count)
        self._decide = load_script(redis, "decide")

    async def newest(self, limit: int = 100) -> list[DeadLetter]:
        """List the dead letters, newest first."""
        letters: list[DeadLetter] = []
        for number, tag in enumerate(self._tags):
            rows: Any = await self._redis.xrevrange(f"{tag}:dead", count=limit)
            # Two shards can use the same entry id.
            shard = f"{number}/" if len(self._tags) > 1 else ""
            letters += [
                DeadLetter(
                    entry_id=f"{shard}{entry_id}", thread=fields.get("thread", ""), reason=fields.get("reason", ""),
                    tries=int(parse_number(fields.get("tries"))), died_at=int(entry_id.partition("-")[0]) / 1000,
                    **split_entry(fields.get("entry", ""))._asdict(),
                )
                for entry_id, fields in rows
            ]  # fmt: skip
        return sorted(letters, key=lambda letter: -letter.died_at)[:limit]

    async def decide(self, entry_id: str, fate: Fate) -> bool:
        """Retry this dead letter or drop it. Return False if no such entry exists."""
        found = _ENTRY_ID.fullmatch(entry_id)
        shard = int(found["shard"] or 0) if found else len(self._tags)
        if found is None or shard >= len(self._tags):
            return False
        arguments = [found["place"], fate, self._wakeup.ttl_in_scripts]
        return await self._wakeup.ring_if_asked(await self._decide(keys=[self._tags[shard]], args=arguments))
