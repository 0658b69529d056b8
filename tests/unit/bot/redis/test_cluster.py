"""A cluster's client fails with ``RedisError`` only, whatever redis-py makes of nodes that come and go."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisClusterException, RedisError, ResponseError

from bot.redis.cluster import Cluster, errors_as_outage
from tests.support.redis_fleet import Node, free_port, node
from tests.support.waiting import wait_until


@pytest.fixture
async def nobody() -> AsyncIterator[Cluster]:
    client = Cluster(nodes=[("127.0.0.1", 9)], decode_responses=True)
    yield client
    await client.aclose()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Node]:
    """A cluster of one."""
    async with node(tmp_path, "--cluster-enabled", "yes", "--cluster-port", str(free_port())) as only:
        await only.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16383)

        async def whole() -> bool:
            return "cluster_state:ok" in await only.ask("CLUSTER", "INFO")

        await wait_until(whole, "the cluster is complete")
        yield only


@pytest.mark.parametrize("error", [RedisClusterException("a"), AttributeError("writelines"), KeyError(1), OSError("x")])
def test_what_redis_py_trips_over_is_an_outage_without_a_text(error: Exception) -> None:
    with pytest.raises(RedisConnectionError, match=type(error).__name__) as raised, errors_as_outage():
        raise error
    assert "writelines" not in str(raised.value)


async def test_nobody_there_is_an_outage_for_every_way_of_asking(nobody: Cluster) -> None:
    pipe, pubsub = nobody.pipeline(transaction=False), nobody.pubsub()
    pipe.get("a")
    for ask in (
        nobody.get("a"),
        nobody.holder_of("a"),
        nobody.on_one_connection("a", ("PING",)),
        pipe.execute(),
        pubsub.subscribe("channel"),
    ):
        with pytest.raises(RedisError):
            await ask
    await pubsub.aclose()


async def test_answers_to_several_commands_come_over_one_connection(server: Node) -> None:
    client = Cluster(nodes=[("127.0.0.1", server.port)], decode_responses=True)
    try:
        assert (await client.on_one_connection("a", ("SET", "a", "1"), ("INCR", "a")))[-1] == 2
        with pytest.raises(ResponseError, match="WRONGTYPE"):
            await client.on_one_connection("a", ("LPUSH", "a", "1"), ("GET", "a"))
        async with client.pubsub() as pubsub:
            await pubsub.subscribe("channel")
            assert (await pubsub.get_message(timeout=5))["type"] == "subscribe"
        async with client.pipeline(transaction=True) as pipe:
            pipe.incr("a")
            pipe.get("a")
            assert await pipe.execute() == [3, "3"]
    finally:
        await client.aclose()
