"""Dead letters: told apart, tried again once at the end of their thread, dropped for good."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from bot.queue.dead_letters import DeadLetters
from bot.queue.lease import Claimed
from bot.queue.queue import Mailbox

THREAD = "T1:C1:1.0"


@pytest.fixture
async def mailbox(redis_client: Redis) -> AsyncIterator[Mailbox]:
    box = Mailbox(redis_client)
    yield box
    await box.aclose()


async def bury(mailbox: Mailbox, body: str, thread: str = THREAD) -> Claimed:
    assert await mailbox.enqueue(thread, body, event_ids=[f"{thread}/{body}"])
    (claimed,) = await mailbox.claim("w", 1)
    assert await mailbox.finish(claimed, "dead", reason="r")
    return claimed


async def test_retried_letter_goes_to_the_end_of_its_thread_once(
    redis_client: Redis, mailbox: Mailbox, no_leaked_keys: list[str]
) -> None:
    no_leaked_keys.append("*:fence")
    letters = DeadLetters(redis_client)
    first = await bury(mailbox, "first line\nsecond line")
    await mailbox.enqueue(THREAD, "asked since", event_ids=["b"])
    (letter,) = await letters.newest()
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(letters.decide(letter.entry_id, "retry")) for _ in range(4)]
    assert sorted(call.result() for call in calls) == [False, False, False, True]
    bodies: list[Claimed] = []
    while claimed := await mailbox.claim("w", 1):
        bodies += claimed
        assert await mailbox.finish(claimed[0], "ok")
    assert [c.body for c in bodies] == ["asked since", "first line\nsecond line"]
    assert (bodies[1].id, bodies[1].tries) == (first.id, 1)
    assert bodies[1].enqueued_at > first.enqueued_at  # its patience with far ends begins anew
    assert await letters.newest() == []


async def test_retried_letter_wakes_a_worker_and_waits_behind_a_running_turn(
    redis_client: Redis, mailbox: Mailbox
) -> None:
    letters = DeadLetters(redis_client)
    await bury(mailbox, "dead")
    await redis_client.delete(mailbox._wakeup.key)
    (letter,) = await letters.newest()
    assert await letters.decide(letter.entry_id, "retry")
    assert await redis_client.llen(mailbox._wakeup.key) == 1
    (running,) = await mailbox.claim("w", 1)
    await mailbox.enqueue(THREAD, "next", event_ids=["n"])
    assert await mailbox.finish(running, "dead", reason="again")
    (following,) = await mailbox.claim("w", 1)
    (letter,) = await letters.newest()
    assert await letters.decide(letter.entry_id, "retry")
    assert await mailbox.claim("w", 1) == []
    assert await mailbox.finish(following, "ok")
    assert [c.body for c in await mailbox.claim("w", 1)] == ["dead"]


@pytest.mark.parametrize("entry_id", ["", "1", "1-1", "99/1-1", "- +", "1-1-1", "x/1-1"])
async def test_what_names_no_letter_changes_none(redis_client: Redis, mailbox: Mailbox, entry_id: str) -> None:
    await bury(mailbox, "dead")
    assert not await DeadLetters(redis_client).decide(entry_id, "drop")
    assert len(await DeadLetters(redis_client).newest()) == 1


async def test_letters_of_several_shards_are_told_apart(redis_client: Redis) -> None:
    mailbox, letters = Mailbox(redis_client, shards=3), DeadLetters(redis_client, shards=3)
    for team in "ABCDEF":
        await bury(mailbox, team, f"{team}:C:1")
        await asyncio.sleep(0.002)  # within one millisecond two shards have no order
    newest = await letters.newest()
    assert [letter.body for letter in newest] == list("FEDCBA")
    assert len({letter.entry_id for letter in newest}) == 6
    assert await letters.decide(newest[2].entry_id, "retry")
    assert [c.body for c in await mailbox.claim("w", 10)] == ["D"]
    await mailbox.aclose()
