"""Where Orion stands in a thread: addressed, muted, neither, or forgotten with an earlier Redis."""

from __future__ import annotations

from redis.asyncio import Redis

from agent.thread.conversation import ThreadKey
from bot.stores.thread_mode import STRANGER_S, Standings

BEGAN = 1_795_000_000.0
OLD = ThreadKey(team="T1", channel="C1", thread_ts="1794999999.000100")
NEW = ThreadKey(team="T1", channel="C1", thread_ts="1795000001.000100")
DIRECT = ThreadKey(team="T1", channel="D1", thread_ts="D1")


def standings_of(redis: Redis) -> Standings:
    return Standings(redis, clock=lambda: BEGAN)


async def test_a1_standing_changes_and_expires(redis_client: Redis, no_leaked_keys: list[str]) -> None:
    standings = standings_of(redis_client)
    no_leaked_keys.append(standings.since_key())
    assert await standings.of(NEW) == "unknown"
    await standings.engage(NEW)
    assert await standings.of(NEW) == "engaged"
    await standings.mute(NEW)
    assert await standings.of(NEW) == "muted"
    assert await redis_client.ttl(standings.key(NEW)) > 0


async def test_a2_a_thread_older_than_the_memory_may_be_lost_until_somebody_looked(redis_client: Redis) -> None:
    standings = standings_of(redis_client)
    assert [await standings.of(thread) for thread in (OLD, NEW, DIRECT)] == ["lost", "unknown", "unknown"]
    await standings.pass_by(OLD)
    assert await standings.of(OLD) == "unknown"
    assert 0 < await redis_client.ttl(standings.stranger_key(OLD)) <= STRANGER_S
    await standings.engage(OLD)
    assert await standings.of(OLD) == "engaged"


async def test_a2_the_memory_begins_once(redis_client: Redis) -> None:
    await standings_of(redis_client).of(NEW)
    later = Standings(redis_client, clock=lambda: BEGAN + 3_600)
    assert await later.of(NEW) == "unknown"
    assert await later.of(OLD) == "lost"
