"""States in a real Valkey: saved only over the loaded version, and only by the owner of the thread."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from agent.actions import Step
from agent.thread.conversation import ThreadKey, ThreadMessage
from agent.thread.state import PendingQuestion, Plan, StateNotSaved, ThreadState
from agent.thread.store import TTL_S, LeaseFence, StateFenced, ThreadStore, hash_tag
from bot.queue.claim import Claimed
from bot.queue.queue import Mailbox
from verification.types import Source

KEY = ThreadKey(team="T1", channel="C1", thread_ts="1700000000.000100")
FULL = ThreadState(
    mission="find out 🙂",
    todolist_id="plan-1",
    plan=Plan(id="plan-1", steps=(Step(description="search", status="done", result="found"),)),
    history=(ThreadMessage(role="user", text="wann?\nzeile", user="U1", ts="1.1"),),
    answers={"when": "tomorrow"},
    pending_question=PendingQuestion(key="k", text="Which?", user="U1"),
    sources=(Source(id=1, title="Runbook", text="…"),),
    preferences={"mute": "no"},
)


@pytest.fixture
def store(redis_client: Redis) -> ThreadStore:
    return ThreadStore(redis_client)


@pytest.fixture
async def take_lease(redis_client: Redis) -> AsyncIterator[tuple[Mailbox, Claimed]]:
    mailbox = Mailbox(redis_client)
    await mailbox.enqueue(str(KEY), "q", event_ids=["e"])
    (claimed,) = await mailbox.claim("w", 1)
    yield mailbox, claimed
    await mailbox.aclose()


async def test_saved_state_is_loaded_by_team_channel_and_thread(store: ThreadStore, no_leaked_keys: list[str]) -> None:
    saved = await store.save(KEY, FULL)
    assert saved == replace(FULL, version=1)
    assert await store.load(KEY) == saved
    assert await store.save(KEY, saved) == replace(FULL, version=2)
    for other in (replace(KEY, team="T2"), replace(KEY, channel="C2"), replace(KEY, thread_ts="2.2")):
        assert await store.load(other) == ThreadState()


async def test_using_a_key_refreshes_its_ttl(store: ThreadStore, redis_client: Redis) -> None:
    await store.save(KEY, FULL)
    assert TTL_S - 60 < await redis_client.ttl(store.key(KEY)) <= TTL_S
    await redis_client.expire(store.key(KEY), 100)
    await store.load(KEY)
    assert TTL_S - 60 < await redis_client.ttl(store.key(KEY)) <= TTL_S


async def test_one_of_two_simultaneous_saves_wins(store: ThreadStore, redis_client: Redis) -> None:
    loaded = await store.load(KEY)
    first = await store.save(KEY, replace(loaded, mission="first"))
    with pytest.raises(StateNotSaved, match="another writer"):
        await store.save(KEY, replace(loaded, mission="second"))
    assert (await store.load(KEY)).mission == "first"
    third = await store.save(KEY, replace(first, mission="third 🙂\ud83d"))
    assert (await store.load(KEY)).mission == "third 🙂?"
    assert await redis_client.delete(store.key(KEY))
    with pytest.raises(StateNotSaved, match="another writer"):
        await store.save(KEY, third)


async def test_only_the_owner_of_the_thread_saves(
    store: ThreadStore, redis_client: Redis, take_lease: tuple[Mailbox, Claimed]
) -> None:
    mailbox, claimed = take_lease
    saved = await store.save(KEY, FULL, fence=claimed.fence)
    assert saved.version == 1
    with pytest.raises(StateFenced):
        await store.save(KEY, saved, fence=replace(claimed.fence, token="0"))
    await redis_client.hset(mailbox.key(str(KEY), "head", str(KEY)), "until", "1")
    with pytest.raises(StateFenced):  # the lease ran out, though no other worker took over yet
        await store.save(KEY, saved, fence=claimed.fence)
    await mailbox.finish(claimed, "ok")
    with pytest.raises(StateFenced):
        await store.save(KEY, saved, fence=claimed.fence)
    assert await store.load(KEY) == saved


async def test_an_unreadable_state_loads_as_new_and_can_be_overwritten(store: ThreadStore, redis_client: Redis) -> None:
    await redis_client.hset(store.key(KEY), mapping={"version": 7, "state": "{ not json"})
    loaded = await store.load(KEY)
    assert loaded == ThreadState(version=7)
    assert (await store.save(KEY, loaded)).version == 8


async def test_if_redis_cannot_be_reached_the_state_is_not_saved(tmp_path: Path) -> None:
    async with Redis(unix_socket_path=str(tmp_path / "nobody.sock"), retry=Retry(NoBackoff(), 0)) as nobody:
        store = ThreadStore(nobody)
        with pytest.raises(StateNotSaved, match="ConnectionError"):
            await store.save(KEY, FULL)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(text=st.text(), answers=st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3))
def test_any_text_survives(redis_url: str, text: str, answers: dict[str, str]) -> None:
    state = ThreadState(mission=text, answers=answers, history=(ThreadMessage(role="user", text=text),))

    async def there_and_back() -> ThreadState:
        async with Redis.from_url(redis_url, decode_responses=True) as client:
            store = ThreadStore(client)
            await client.delete(store.key(KEY))
            await store.save(KEY, state)
            return await store.load(KEY)

    assert asyncio.run(there_and_back()) == replace(state, version=1)


def test_all_keys_of_a_thread_share_one_hash_tag(redis_client: Redis) -> None:
    mailbox, store = Mailbox(redis_client, shards=7), ThreadStore(redis_client, shards=7)
    tag = hash_tag(str(KEY), shards=7)
    assert tag.startswith("orion:{")
    assert store.key(KEY).startswith(f"{tag}:")
    assert mailbox.key(str(KEY), "head", str(KEY)).startswith(f"{tag}:")
    assert LeaseFence(key=mailbox.key(str(KEY), "head", str(KEY)), token="1").key == f"{tag}:head:{KEY}"
