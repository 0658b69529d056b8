"""The mailbox over a real Valkey: what is stored is handled once, in order, by one holder at a time."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from bot.queue.claim import Claimed, Lease, LeaseLost, now
from bot.queue.queue import BELL_TTL_S, SEEN_TTL_S, Mailbox
from tests.support.waiting import wait_until

THREAD = "T1:C1:1700000000.000100"


@pytest.fixture
async def mailbox(redis_client: Redis) -> AsyncIterator[Mailbox]:
    box = Mailbox(redis_client)
    yield box
    await box.aclose()


async def enqueue(mailbox: Mailbox, body: str, thread: str = THREAD) -> None:
    assert await mailbox.enqueue(thread, body, event_ids=[f"E-{thread}-{body}"])


async def claim_one(mailbox: Mailbox, worker: str = "w1") -> Claimed:
    (claimed,) = await mailbox.claim(worker, 10)
    return claimed


async def let_lease_run_out(redis: Redis, mailbox: Mailbox, thread: str = THREAD) -> None:
    """The lease's end lies in the past from now on, as if its length had passed."""
    await redis.zadd(f"{mailbox.shard_of(thread)}:lease", {thread: 1}, xx=True)
    await redis.hset(mailbox.key(thread, "head", thread), "until", "1")


async def test_a_fuller_event_replaces_a_message_that_is_not_claimed(mailbox: Mailbox) -> None:
    assert await mailbox.enqueue(THREAD, "mention", event_ids=["E1", "M1"], hold_s=60)
    assert await mailbox.claim("w1", 1) == [], "it waits for its twin"
    assert not await mailbox.enqueue(THREAD, "mention again", event_ids=["E1", "M1"], hold_s=60)
    assert await mailbox.claim("w1", 1) == []
    assert not await mailbox.enqueue(THREAD, "message", event_ids=["E2", "M1"], fuller=True)
    claimed = await claim_one(mailbox)
    assert claimed.body == "message"
    assert not await mailbox.enqueue(THREAD, "too late", event_ids=["E3", "M1"], fuller=True)
    assert [one.body for one in await mailbox.list_messages(THREAD)] == ["message"]


async def test_a_fuller_event_does_not_shorten_the_wait_of_an_earlier_message(mailbox: Mailbox) -> None:
    await enqueue(mailbox, "first")
    assert await mailbox.finish(await claim_one(mailbox), "give_back", after_s=60)
    assert await mailbox.enqueue(THREAD, "mention", event_ids=["E1", "M1"], hold_s=60)
    assert not await mailbox.enqueue(THREAD, "message", event_ids=["E2", "M1"], fuller=True)
    assert [one.body for one in await mailbox.list_messages(THREAD)] == ["first", "message"]
    assert await mailbox.claim("w1", 1) == [], "the first one still rests"
    assert await mailbox.enqueue("T1:C1:alone", "mention", event_ids=["E3"], hold_s=0.05)
    await wait_until(lambda: mailbox.claim("w1", 1), "without its twin it is claimed a moment later")


async def test_a_mark_is_written_once_and_survives_its_worker(redis_client: Redis, mailbox: Mailbox) -> None:
    await enqueue(mailbox, "q")
    first = await claim_one(mailbox)
    assert await mailbox.mark(first, f"posted:{first.id}", "111.1") == "111.1"
    await let_lease_run_out(redis_client, mailbox)
    second = await claim_one(mailbox)
    assert await mailbox.mark(second, f"posted:{second.id}", "222.2") == "111.1"
    assert await mailbox.has_mark(THREAD, f"posted:{first.id}")
    assert 0 < await redis_client.ttl(mailbox.key(THREAD, "mark", THREAD, f"posted:{first.id}")) <= SEEN_TTL_S


async def test_lease_runs_out_by_our_own_clock_unless_a_beat_renews_it(redis_client: Redis, mailbox: Mailbox) -> None:
    await enqueue(mailbox, "q")
    claimed = await claim_one(mailbox)
    lease = Lease(now() + 0.05)
    lease.require()
    await wait_until(lambda: not lease.is_held(), "the lease ran out")
    with pytest.raises(LeaseLost):
        lease.require()
    await let_lease_run_out(redis_client, mailbox)
    await mailbox.renew_leases([(claimed, lease)])
    lease.require()
    assert 14 < lease.until - now() <= 15
    assert await mailbox.claim("w2", 1) == []


async def test_the_wakeup_reaches_a_waiting_worker_and_never_piles_up(redis_client: Redis, mailbox: Mailbox) -> None:
    for number in range(200):
        await enqueue(mailbox, "x", f"thread {number}")
    wakeup = mailbox.bell
    assert await redis_client.llen(wakeup) == 64
    assert 0 < await redis_client.ttl(wakeup) <= BELL_TTL_S
    before = now()
    await mailbox.wait(30)
    assert now() - before < 10
    assert len(await mailbox.claim("w", 150)) == 150
    assert await redis_client.llen(wakeup) == 63, "the other workers have something to do"
    assert len(await mailbox.claim("w", 150)) == 50
    assert await redis_client.llen(wakeup) == 0, "after a burst nobody is woken for nothing"
    await mailbox.wait(0.01)  # nothing to hear: returns all the same


async def test_waiting_messages_are_listed_once_in_a_while_with_their_place(mailbox: Mailbox) -> None:
    for thread in ("T1:a", "T1:b", "T1:c", "T2:a"):
        await enqueue(mailbox, "q", thread)
    assert await mailbox.list_waiting(for_s=60, again_s=60, limit=10) == []
    told = await mailbox.list_waiting(for_s=0, again_s=60, limit=3)
    told += await mailbox.list_waiting(for_s=0, again_s=60, limit=3)
    assert [(w.thread, w.place) for w in told] == [("T1:a", 1), ("T1:b", 3), ("T1:c", 4), ("T2:a", 2)]
    assert await mailbox.list_waiting(for_s=0, again_s=60, limit=3) == []
    assert [one.id for one in await mailbox.list_messages("T1:a")] == [told[0].entry.id]


async def test_a_message_behind_a_running_turn_is_listed_as_waiting(mailbox: Mailbox) -> None:
    for body in ("runs", "waits", "waits too"):
        await enqueue(mailbox, body)
    (claimed,) = await mailbox.claim("w", 1)
    assert await mailbox.list_waiting(for_s=60, again_s=60, limit=3) == []
    (told,) = await mailbox.list_waiting(for_s=0, again_s=60, limit=3)
    assert (told.entry.body, told.place) == ("waits too", 0)
    assert await mailbox.list_waiting(for_s=0, again_s=60, limit=3) == []
    assert await mailbox.finish(claimed, "ok")
    assert [one.body for one in await mailbox.list_messages(THREAD)] == ["waits", "waits too"]


async def test_a_withdrawn_message_that_waits_for_a_retry_is_due_at_once(redis_client: Redis, mailbox: Mailbox) -> None:
    await enqueue(mailbox, "q")
    assert await mailbox.finish(await claim_one(mailbox), "give_back", after_s=60)
    await redis_client.delete(mailbox.bell)
    await mailbox.make_due_now("T1:C1:nothing waits here")
    assert await mailbox.claim("w", 1) == []
    await mailbox.make_due_now(THREAD)
    assert await redis_client.llen(mailbox.bell) == 1
    assert (await claim_one(mailbox)).body == "q"


async def test_finding_waiting_messages_costs_little_in_500_workspaces(redis_client: Redis, mailbox: Mailbox) -> None:
    async with redis_client.pipeline(transaction=False) as pipe:
        for team in range(500):
            threads = [f"T{team}:C1:{number}.000000" for number in range(20)]
            pipe.zadd("orion:{0}:teams", {f"T{team}": team})
            pipe.zadd(f"orion:{{0}}:ready:T{team}", dict.fromkeys(threads, 1))
            for number, thread in enumerate(threads):
                pipe.rpush(f"orion:{{0}}:mb:{thread}", f"m{team}x{number} 1 body")
        await pipe.execute()
    await redis_client.config_resetstat()
    told = [one for _ in range(10) for one in await mailbox.list_waiting(for_s=1, again_s=600, limit=10)]
    calls = await redis_client.info("commandstats")
    assert sum(calls[f"cmdstat_{name}"]["calls"] for name in ("zcount", "zrangebyscore", "lindex", "set")) < 12_000
    assert len({one.entry.id for one in told}) == 100
    assert await mailbox.list_waiting(for_s=1, again_s=600, limit=10, each_s=60)
    assert await mailbox.list_waiting(for_s=1, again_s=600, limit=10, each_s=60) == [], "another process just looked"


async def test_a_clock_of_redis_that_was_set_back_an_hour_stops_no_message(
    redis_client: Redis, mailbox: Mailbox
) -> None:
    hour_ms = 3_600_000
    await enqueue(mailbox, "held")
    await claim_one(mailbox)
    await enqueue(mailbox, "waits", thread="T1:C1:2.0")
    await redis_client.zincrby("orion:{0}:lease", hour_ms, THREAD)
    await redis_client.zincrby("orion:{0}:ready:T1", hour_ms, "T1:C1:2.0")
    assert (await claim_one(mailbox)).body == "waits"
    ends = float(str(await redis_client.zscore("orion:{0}:lease", THREAD)))
    assert ends - (await redis_client.time())[0] * 1000 < hour_ms / 2, "the holder renews it, or it runs out soon"


async def test_a_direct_message_comes_before_a_burst_in_channels(mailbox: Mailbox) -> None:
    for thread in ("T1:C1:1.0", "T1:C1:2.0", "T1:D1:D1", "T1:C1:3.0"):
        await mailbox.enqueue(thread, "body", event_ids=[thread])
    assert [one.thread for one in await mailbox.claim("w", 9)][:2] == ["T1:D1:D1", "T1:C1:1.0"]


async def bury(mailbox: Mailbox, body: str, thread: str = THREAD) -> Claimed:
    assert await mailbox.enqueue(thread, body, event_ids=[f"{thread}/{body}"])
    (claimed,) = await mailbox.claim("w", 1)
    assert await mailbox.finish(claimed, "dead", reason="r")
    return claimed


async def test_a_retried_dead_letter_wakes_a_worker(redis_client: Redis, mailbox: Mailbox) -> None:
    await bury(mailbox, "cut \ud83d off")
    await redis_client.delete(mailbox.bell)
    (letter,) = await mailbox.list_dead_letters()
    assert await mailbox.end_dead_letter(letter.entry_id, "retry")
    assert await redis_client.llen(mailbox.bell) == 1
    assert (await claim_one(mailbox)).body == "cut ? off"


@pytest.mark.parametrize("entry_id", ["", "1", "1-1", "99/1-1", "- +", "1-1-1", "x/1-1"])
async def test_an_unknown_id_changes_no_dead_letter(redis_client: Redis, mailbox: Mailbox, entry_id: str) -> None:
    await bury(mailbox, "dead")
    assert not await mailbox.end_dead_letter(entry_id, "drop")
    assert len(await mailbox.list_dead_letters()) == 1


async def test_dead_letters_of_several_shards_are_distinguished(redis_client: Redis) -> None:
    mailbox = Mailbox(redis_client, shards=3)
    for team in "ABCDEF":
        await bury(mailbox, team, f"{team}:C:1")
        await asyncio.sleep(0.002)  # within one millisecond two shards have no order
    newest = await mailbox.list_dead_letters()
    assert [letter.body for letter in newest] == list("FEDCBA")
    assert len({letter.entry_id for letter in newest}) == 6
    assert await mailbox.end_dead_letter(newest[2].entry_id, "retry")
    assert [c.body for c in await mailbox.claim("w", 10)] == ["D"]
    await mailbox.aclose()
