"""Pause and resume: one switch for every process over the same Redis, and it stays as it was left."""

import pytest
from redis.asyncio import Redis

from bot.stores.switches import MAX_REASON_LENGTH, Pause, Pausing


async def test_pause_holds_for_everybody_until_somebody_resumes(redis_client: Redis) -> None:
    here, there = Pausing(redis_client, clock=lambda: 100.0), Pausing(redis_client, clock=lambda: 200.0)
    assert await there.current() is None
    assert await here.pause("The index is being  rebuilt\n") == Pause(since=100.0, reason="The index is being rebuilt")
    assert await there.current() == Pause(since=100.0, reason="The index is being rebuilt")
    assert await redis_client.ttl(here.key()) == -1
    assert await there.pause("Still") == Pause(since=100.0, reason="Still")
    assert await there.resume()
    assert not await here.resume()
    assert await here.current() is None
    assert await redis_client.get(here.resumed_key()) == "100.0"


async def test_one_orions_pause_is_not_anothers(redis_client: Redis) -> None:
    await Pausing(redis_client, prefix="one").pause("x" * 1_000)
    assert await Pausing(redis_client, prefix="two").current() is None
    thread_mode = await Pausing(redis_client, prefix="one").current()
    assert thread_mode is not None
    assert len(thread_mode.reason) == MAX_REASON_LENGTH


@pytest.mark.parametrize("stored", ["", "{}", "[]", '{"since": "soon"}', "no JSON"])
async def test_pause_that_cannot_be_read_holds_all_the_same(redis_client: Redis, stored: str) -> None:
    pausing = Pausing(redis_client)
    await redis_client.set(pausing.key(), stored)
    assert (await pausing.current() is not None) == bool(stored)
