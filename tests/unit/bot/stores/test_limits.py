"""Daily budgets of tokens, the pause, and listening channels."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from structlog.testing import capture_logs

from agent.json_data import parse_json
from agent.thread.conversation import ThreadKey
from bot.slack.message import Incoming
from bot.stores.limits import (
    MAX_REASON_LENGTH,
    RESERVATION_TTL_S,
    Budgets,
    Holder,
    Limits,
    Pause,
    Pausing,
    duration_text,
)
from tests.support.waiting import wait_until

NOON = datetime(2026, 11, 22, 12, 0, tzinfo=UTC).timestamp()


def incoming(user: str = "U1", channel: str = "C1", team: str = "T1") -> Incoming:
    place = ThreadKey(team=team, channel=channel, thread_ts="1.0")
    return Incoming(kind="question", thread=place, user=user, ts="1.0", addressed="mention")


def budgets(redis: Redis, limits: Limits, now: float = NOON) -> Budgets:
    return Budgets(redis, limits, clock=lambda: now)


async def used_up(redis: Redis, purse: Budgets, of: Incoming) -> Holder | None:
    """The holder whose budget is used up for this message."""
    async with redis.pipeline(transaction=False) as pipe:
        return purse.find_exhausted(of, (await pipe.execute())[0] if purse.queue_read(pipe, of) else ())


async def spend(purse: Budgets, tokens: int, of: Incoming) -> None:
    async with purse.count_turn(of) as counter:
        counter.add(tokens)


@pytest.mark.parametrize(
    ("limits", "holder"),
    [
        (Limits(user=100), "user"),
        (Limits(channel=100), "channel"),
        (Limits(workspace=100), "workspace"),
        (Limits(user=100, channel=100, workspace=100), "user"),
        (Limits(user=101, channel=101, workspace=101), None),
        (Limits(user=100, admins=frozenset({"U1"})), None),
        (Limits(user=100, channel=100, admins=frozenset({"U1"})), "channel"),
        (Limits(), None),
    ],
)
async def test_a_used_up_budget_is_named(
    redis_client: Redis, no_leaked_keys: list[str], limits: Limits, holder: Holder | None
) -> None:
    purse = budgets(redis_client, limits)
    assert await used_up(redis_client, purse, incoming()) is None
    await spend(purse, 100, incoming())
    assert await used_up(redis_client, purse, incoming()) == holder


async def test_other_people_and_other_days_have_their_own_budget(redis_client: Redis) -> None:
    limits = Limits(user=10, channel=10)
    purse = budgets(redis_client, limits)
    await spend(purse, 10, incoming())
    assert await used_up(redis_client, purse, incoming(user="U2")) == "channel"
    assert await used_up(redis_client, purse, incoming(channel="C2")) == "user"
    assert await used_up(redis_client, purse, incoming(user="U2", channel="C2")) is None
    assert await used_up(redis_client, purse, incoming(team="T2")) is None
    assert purse.seconds_until_reset == 12 * 3600
    for seconds, holder in ((purse.seconds_until_reset - 1, "user"), (purse.seconds_until_reset, None)):
        later = budgets(redis_client, limits, NOON + seconds)
        assert await used_up(redis_client, later, incoming()) == holder


async def test_tokens_of_a_killed_worker_are_already_counted(redis_client: Redis) -> None:
    """Each call is written down when it ends, not when the turn does: nothing but the turn itself is lost."""
    purse = budgets(redis_client, Limits(user=1_000))
    async with purse.count_turn(incoming()) as tokens:
        for total in (300, 600):
            tokens.add(300)

            async def is_written(total: int = total) -> bool:
                return await redis_client.hget(purse.key("T1"), "user:U1") == str(total)

            await wait_until(is_written, "the call is counted")
    counts: Any = redis_client.hmget(purse.key("T1"), ["user:U1", "channel:C1", "workspace"])
    assert await counts == ["600"] * 3


async def test_a_reservation_is_released_replaced_or_expires(redis_client: Redis) -> None:
    limits, killed = Limits(user=3_000), AsyncExitStack()
    purse = budgets(redis_client, limits)

    async def reserve(turn_id: str, purse: Budgets = purse, user: str = "U1") -> bool:
        return await killed.enter_async_context(purse.reserve(turn_id, incoming(user=user)))

    async with purse.reserve("t0", incoming()), purse.count_turn(incoming()):
        pass  # a turn without tokens makes no reservation smaller
    assert await reserve("t1")
    assert await reserve("t1"), "the next try of the same turn"
    assert await reserve("t2")
    assert not await reserve("t3")
    assert await reserve("t3", user="U2")
    async with purse.reserve("t1", incoming()), purse.count_turn(incoming()) as tokens:
        tokens.add(500)
    assert await reserve("t4"), "an average turn of today takes 500"
    assert await redis_client.ttl(purse.key("T1")) > 0
    later = budgets(redis_client, limits, NOON + RESERVATION_TTL_S)
    assert all([await reserve(turn, later) for turn in ("t5", "t6", "t7", "t8", "t9")])
    assert not await reserve("t10", later)
    await later.release("t5", incoming())  # a killed turn is taken over
    assert await reserve("t10", later)
    await killed.aclose()
    stored: Any = redis_client.hget(later.key("T1"), "reserved")
    assert parse_json(await stored) == {}


@pytest.mark.parametrize("end", [ValueError("a bug"), asyncio.CancelledError()])
async def test_a_turn_that_ends_badly_costs_what_it_used(redis_client: Redis, end: BaseException) -> None:
    purse = budgets(redis_client, Limits(user=50))

    async def turn() -> None:
        async with purse.count_turn(incoming()) as tokens:
            tokens.add(50)
            raise end

    with pytest.raises(type(end)):
        await turn()
    assert await used_up(redis_client, purse, incoming()) == "user"


class SlowPipeline(Pipeline):
    """Sends its commands once the event is set."""

    gate: asyncio.Event

    async def execute(self, raise_on_error: bool = True) -> list[Any]:  # noqa: FBT001, FBT002 (redis-py's)
        await self.gate.wait()
        return await super().execute(raise_on_error)


async def test_a_reservation_lasts_until_the_tokens_of_its_turn_are_counted(redis_client: Redis) -> None:
    class SlowRedis(Redis):
        def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:  # noqa: FBT001, FBT002
            return SlowPipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)

    SlowPipeline.gate = asyncio.Event()
    limits = Limits(user=50)
    slow = budgets(SlowRedis(connection_pool=redis_client.connection_pool), limits)
    purse = budgets(redis_client, limits)
    begun = asyncio.Event()

    async def turn() -> None:
        async with slow.reserve("t", incoming()), slow.count_turn(incoming()) as tokens:
            tokens.add(50)
            begun.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(turn())
        await begun.wait()
        for _ in range(20):
            async with purse.reserve("another", incoming()) as is_reserved:
                assert not is_reserved
        SlowPipeline.gate.set()
    assert await used_up(redis_client, purse, incoming()) == "user"


async def test_a_redis_outage_does_not_end_a_turn(tmp_path: Path) -> None:
    async with Redis.from_url(f"unix://{tmp_path}/nobody.sock") as nobody:
        purse = budgets(nobody, Limits(user=1))
        with capture_logs() as logs:
            await spend(purse, 5, incoming())
            await purse.release("t", incoming())
    assert {line["event"] for line in logs} == {"tokens_not_counted", "tokens_not_released"}


@given(st.integers(min_value=0, max_value=86_400))
def test_the_remaining_time_is_given_in_hours_and_minutes(seconds: int) -> None:
    words = duration_text(seconds)
    parts = [int(word) for word in words.split() if word.isdecimal()]
    minutes = parts[0] * 60 + parts[1] if len(parts) == 2 else parts[0]
    assert abs(minutes * 60 - seconds) <= 60
    assert minutes >= 1


async def test_pause_applies_to_everyone_until_it_is_ended(redis_client: Redis) -> None:
    here, there = Pausing(redis_client, clock=lambda: 100.0), Pausing(redis_client, clock=lambda: 200.0)
    assert await there.current() is None
    assert await here.pause("The index is being  rebuilt\n") == Pause(since=100.0, reason="The index is being rebuilt")
    assert await there.current() == Pause(since=100.0, reason="The index is being rebuilt")
    assert await redis_client.ttl(here.key("paused")) == -1
    assert await there.pause("Still") == Pause(since=100.0, reason="Still")
    assert await there.resume()
    assert not await here.resume()
    assert await here.current() is None
    assert await redis_client.get(here.key("resumed")) == "100.0"
    assert len((await here.pause("x" * 1_000)).reason) == MAX_REASON_LENGTH
    assert await Pausing(redis_client, prefix="another").current() is None


@pytest.mark.parametrize("stored", ["", "{}", "[]", '{"since": "soon"}', "no JSON"])
async def test_an_unreadable_pause_still_applies(redis_client: Redis, stored: str) -> None:
    pausing = Pausing(redis_client)
    await redis_client.set(pausing.key("paused"), stored)
    assert (await pausing.current() is not None) == bool(stored)
