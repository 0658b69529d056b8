"""The mailbox over a cluster and behind a Sentinel, with the primary killed under it. Real servers on loopback."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from agent.thread.conversation import ThreadKey
from agent.thread.state import ThreadState
from agent.thread.store import CLUSTER_SHARDS, StateFenced, ThreadStore
from bot.queue.claim import Cancellation, Claimed, Lease, now
from bot.queue.queue import Depth, Mailbox
from bot.redis.client import client_of
from bot.stores.stores import ThreadModes
from bot.stores.turn_records import TurnRecords
from observability.stats import Stats, TurnFigures, increments
from tests.support.redis_fleet import Fleet, cancellations_lost, cluster, sentinel
from tests.support.waiting import wait_until

TEAMS = [f"T{number}" for number in range(8)]


@pytest.fixture(params=[cluster, sentinel], ids=["cluster", "sentinel"])
async def fleet(request: pytest.FixtureRequest) -> AsyncIterator[Fleet]:
    opened: Callable[[], AbstractAsyncContextManager[Fleet]] = request.param
    async with opened() as fleet:
        yield fleet


def thread_of(team: str) -> str:
    return f"{team}:C1:1700000000.000100"


async def _check_cancellations(redis: Redis) -> None:
    """A cancellation reaches all listeners, even as the first command to the cluster."""
    mailbox, listening = Mailbox(redis), asyncio.Event()
    async with asyncio.TaskGroup() as group:

        async def listen() -> str:
            async for wish in mailbox.cancellations(listening.set):
                return wish.message_id
            return ""

        heard = group.create_task(listen())
        await listening.wait()
        await mailbox.cancel(Cancellation(thread=thread_of("T1"), reason="stopped", message_id="m"))
    assert heard.result() == "m"
    await mailbox.aclose()


async def test_every_acknowledged_question_survives_a_fail_over_and_is_handled_once(fleet: Fleet) -> None:
    async with client_of(fleet.url) as redis:
        await _check_cancellations(redis)
        mailbox = Mailbox(redis, lease_s=60)
        await _everything_else_works(redis, mailbox)
        for team in TEAMS:
            for body in ("first", "second"):
                assert await mailbox.enqueue(thread_of(team), body, event_ids=[f"{team}/{body}"])
        assert not await mailbox.enqueue(thread_of("T0"), "first", event_ids=["T0/first"])
        held = await mailbox.claim("w", 3)
        await fleet.fail_over(mailbox.shard_of(thread_of("T0")))
        await wait_until(lambda: _beats(mailbox, held), "the leases are prolonged on the new primary", timeout=20)
        done = [(claimed.thread, claimed.body) for claimed in held]
        assert all([await mailbox.finish(claimed, "ok") for claimed in held])
        while claimed := await mailbox.claim("w", 10):
            done += [(one.thread, one.body) for one in claimed]
            assert all([await mailbox.finish(one, "ok") for one in claimed])
        assert sorted(done) == sorted((thread_of(team), body) for team in TEAMS for body in ("first", "second"))
        assert await mailbox.depth() == Depth(messages=0, leased=0, dead=1)
        assert await cancellations_lost(redis) == 0
        await _a_letter_is_retried(redis, mailbox)
        await mailbox.aclose()


async def _beats(mailbox: Mailbox, held: list[Claimed]) -> bool:
    try:
        leases = [Lease(now()) for _ in held]
        await mailbox.renew_leases(zip(held, leases, strict=True))
        return all(lease.is_held() for lease in leases)
    except RedisError:
        return False


async def _everything_else_works(redis: Redis, mailbox: Mailbox) -> None:
    """Write several commands at once, and to several keys: none may cross slots."""
    thread = ThreadKey(team="TX", channel="C1", thread_ts="1.0")
    await mailbox.enqueue(str(thread), "dies", event_ids=["x"])
    (claimed,) = await mailbox.claim("w", 1)
    assert await mailbox.mark(claimed, "outbox:1", "said") == "said"
    states = ThreadStore(redis)
    saved = await states.save(thread, ThreadState(mission="m"), fence=claimed.fence)
    assert await states.load(thread) == saved
    assert await mailbox.finish(claimed, "dead", reason="r")
    with pytest.raises(StateFenced):
        await states.save(thread, saved, fence=claimed.fence)
    stats = Stats(redis)
    stats.count(increments(TurnFigures(outcome="answered", errors=(1, 0))), team="T1")
    await stats.write()
    for prefix in ("orion", "orion:T1"):
        assert (await Stats(redis, prefix=prefix).read(3)).answered == 1
    await ThreadModes(redis).set(thread, "engaged")
    assert await ThreadModes(redis).get(thread) == "engaged"
    await TurnRecords(redis).save_feedback("t1", "U1", good=True)


async def _a_letter_is_retried(redis: Redis, mailbox: Mailbox) -> None:
    (incoming,) = await mailbox.list_dead_letters()
    await redis.delete(mailbox.bell)
    assert await mailbox.end_dead_letter(incoming.entry_id, "retry")
    assert await redis.llen(mailbox.bell) == 1  # a waiting worker is woken for any shard
    await mailbox.wait(5)
    assert await redis.llen(mailbox.bell) == 0
    (claimed,) = await mailbox.claim("w", 1)
    assert claimed.body == "dies"
    assert await mailbox.finish(claimed, "ok")


async def test_a_cluster_has_several_shards_and_each_workspace_is_in_one() -> None:
    async with client_of("redis+cluster://127.0.0.1:9") as redis:
        mailbox = Mailbox(redis)
        assert len({mailbox.shard_of(thread_of(f"T{number}")) for number in range(500)}) == CLUSTER_SHARDS
        assert len({mailbox.shard_of(f"T1:C{number}:1.0") for number in range(50)}) == 1
        await mailbox.aclose()
