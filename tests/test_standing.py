"""Where Orion stands in a thread: addressed, muted, or neither."""

from __future__ import annotations

from redis.asyncio import Redis

from bot.standing import Standings
from tests.fakes import THREAD


async def test_a1_standing_changes_and_expires(redis_client: Redis, no_leaked_keys: list[str]) -> None:
    standings = Standings(redis_client)
    assert await standings.of(THREAD) == "unknown"
    await standings.engage(THREAD)
    assert await standings.of(THREAD) == "engaged"
    await standings.mute(THREAD)
    assert await standings.of(THREAD) == "muted"
    assert await redis_client.ttl(standings.key(THREAD)) > 0
