"""A question counts as kept once a replica has it, where there is one. Real servers on loopback."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from bot.queue.queue import Mailbox
from bot.redis.replication import REPLICA_COUNT_TTL_S, NotReplicated, Replication
from bot.redis.url import client_of
from tests.support.redis_fleet import Node, follows, node
from tests.support.waiting import wait_until

SHARD = "orion:{0}"


@dataclass
class Pair:
    """A primary, its replica, and a clock that a test moves."""

    client: Redis
    replica: Node
    now: float = 0.0

    def replication(self) -> Replication:
        return Replication(self.client, within_s=0.2, clock=lambda: self.now)


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        primary, replica = [await stack.enter_async_context(node(tmp_path)) for _ in range(2)]
        client = await stack.enter_async_context(client_of(f"redis://{primary.address}"))
        await replica.ask("REPLICAOF", "127.0.0.1", primary.port)
        await wait_until(partial(follows, replica), "the replica follows", timeout=30)
        yield Pair(client, replica)


async def test_question_that_no_replica_has_is_not_acknowledged_yet_is_kept_and_known_when_it_comes_again(
    pair: Pair,
) -> None:
    mailbox = Mailbox(pair.client)
    pair.replica.process.send_signal(signal.SIGSTOP)
    with pytest.raises(NotReplicated):
        await mailbox.enqueue("T1:C1:1.0", "q", event_ids=["e"])
    pair.replica.process.send_signal(signal.SIGCONT)
    assert not await mailbox.enqueue("T1:C1:1.0", "q", event_ids=["e"])
    assert [claimed.body for claimed in await mailbox.claim("w", 2)] == ["q"]
    await mailbox.aclose()


async def test_what_a_replica_has_is_confirmed_and_one_that_is_gone_is_not_waited_for(pair: Pair) -> None:
    replication = pair.replication()
    await pair.client.set("a", "b")
    await replication.confirm(SHARD)
    assert await pair.replica.ask("GET", "a") == "b"
    pair.replica.kill()

    async def alone() -> bool:
        return bool((await pair.client.info("replication"))["connected_slaves"] == 0)

    await wait_until(alone, "the primary noticed")
    await replication.confirm(SHARD)  # known from before: asked, waited for, looked at again
    await replication.confirm(SHARD)


async def test_replica_that_comes_later_is_noticed(redis_client: Redis) -> None:
    asked: list[None] = []

    def clock() -> float:
        asked.append(None)
        return len(asked) * REPLICA_COUNT_TTL_S

    await Replication(redis_client, clock=clock).confirm(SHARD)
    assert asked
    assert await redis_client.exists(f"{SHARD}:replicated") == 0  # nobody to wait for: nothing is written


async def test_server_that_does_not_say_has_no_replicas(pair: Pair) -> None:
    await pair.client.acl_setuser("default", enabled=True, nopass=True, commands=["+@all", "-info"], keys=["*"])
    with pytest.raises(ResponseError):
        await pair.client.info("replication")
    await pair.replication().confirm(SHARD)
