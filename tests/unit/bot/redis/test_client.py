"""The clients of every form of REDIS_URL: what each names, how each fails, and replicas. Real servers on loopback."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.asyncio.connection import Connection, SSLConnection
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.exceptions import (
    AuthenticationError,
    MovedError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from bot.queue.queue import Mailbox
from bot.redis.client import (
    REPLICA_COUNT_TTL_S,
    Cluster,
    NotReplicated,
    Replication,
    client_of,
    impatient,
    plain_cause,
    raising_outages,
    with_direct_writes,
)
from tests.support.redis_fleet import Node, cancellations_lost, follows, free_port, node
from tests.support.waiting import wait_until


async def test_a_server_that_reads_nothing_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        connection = with_direct_writes(Connection)(port=deaf.getsockname()[1], socket_timeout=0.1, protocol=2)
        connection._reader, connection._writer = await asyncio.open_connection(*deaf.getsockname())
        with pytest.raises(RedisTimeoutError):
            await connection.send_packed_command([b"x" * 50_000_000], check_health=False)
        assert (connection.socket_timeout, connection.is_connected) == (0.1, False)


async def test_no_cancellation_is_lost_in_a_command(redis_client: Redis) -> None:
    assert await cancellations_lost(redis_client) == 0


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
async def test_an_internal_error_of_redis_py_is_an_outage_without_its_text(error: Exception) -> None:
    async def fail() -> None:
        raise error

    with pytest.raises(RedisConnectionError, match=type(error).__name__) as raised:
        await raising_outages(fail)()
    assert "writelines" not in str(raised.value)


async def test_a_closed_port_is_an_outage_for_every_kind_of_call(nobody: Cluster) -> None:
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


async def test_a_transaction_that_a_cluster_refuses_raises_its_error(server: Node) -> None:
    async with Cluster(nodes=[("127.0.0.1", server.port)], decode_responses=True) as client:
        pipe = client.pipeline(transaction=True)
        pipe.set("a", "b")
        pipe.execute_command("SET", "a")
        with pytest.raises(ResponseError, match="wrong number of arguments"):
            await pipe.execute()


async def test_replies_to_several_commands_come_over_one_connection(server: Node) -> None:
    client = Cluster(nodes=[("127.0.0.1", server.port)], decode_responses=True)
    try:
        assert (await client.on_one_connection("a", ("SET", "a", "1"), ("INCR", "a")))[-1] == 2
        with pytest.raises(ResponseError, match="WRONGTYPE"):
            await client.on_one_connection("a", ("LPUSH", "a", "1"), ("GET", "a"))
        async with client.pubsub() as pubsub:
            await pubsub.subscribe("channel")
            assert (await pubsub.get_message(timeout=20))["type"] == "subscribe"
        async with client.pipeline(transaction=True) as pipe:
            pipe.incr("a")
            pipe.get("a")
            assert await pipe.execute() == [3, "3"]
        for asked in range(2):  # a key of another type is dropped
            await client.set("b", "x")
            async with client.pipeline(transaction=bool(asked)) as pipe:
                pipe.hgetall("b")
                pipe.get("b")
                assert await pipe.execute() == [{}, "x"]
            assert await client.hgetall("b") == {}
    finally:
        await client.aclose()


async def test_a_cluster_can_be_given_by_some_of_its_nodes() -> None:
    async with client_of("redis+cluster://me:p%40ss@10.0.0.1,[::1]:7001?health_check_interval=5") as client:
        assert isinstance(client, Cluster)
        assert client.made_of["nodes"] == [("10.0.0.1", 6379), ("::1", 7001)]
        kept = client.connection_kwargs
        assert (kept["username"], kept["password"], kept["health_check_interval"]) == ("me", "p@ss", 5)
        assert kept["decode_responses"]
        hasty = impatient(client, timeout_s=0.25)
        assert isinstance(hasty, Cluster)
        assert hasty.connection_kwargs["socket_timeout"] == 0.25
        assert (hasty.connection_kwargs["password"], hasty.retry.get_retries()) == ("p@ss", 0)
        await hasty.aclose()


async def test_a_cluster_and_a_sentinel_primary_can_be_reached_over_tls() -> None:
    async with client_of("rediss+cluster://10.0.0.1:7000") as client:
        assert isinstance(client, Cluster)
        assert issubclass(client.connection_kwargs["connection_class"], SSLConnection)
    async with client_of("rediss+sentinel://10.0.0.1/queue") as client:
        assert issubclass(client.connection_pool.connection_class, SSLConnection)


async def test_sentinels_name_the_service_and_the_database() -> None:
    url = "redis+sentinel://me:secret@10.0.0.1:5000,10.0.0.2/queue/3?sentinel_password=other"
    async with client_of(url) as client:
        pool = client.connection_pool
        assert isinstance(pool, SentinelConnectionPool)
        guards = [guard.connection_pool.connection_kwargs for guard in pool.sentinel_manager.sentinels]
        assert [(guard["host"], guard["port"], guard["password"]) for guard in guards] == [
            ("10.0.0.1", 5000, "other"),
            ("10.0.0.2", 26379, "other"),
        ]
        assert (pool.service_name, pool.connection_kwargs["db"]) == ("queue", 3)
        assert (pool.connection_kwargs["username"], pool.connection_kwargs["password"]) == ("me", "secret")
        hasty = impatient(client, timeout_s=0.25)
        assert isinstance(hasty.connection_pool, SentinelConnectionPool)
        assert hasty.connection_pool.service_name == "queue"
        assert hasty.connection_pool.connection_kwargs["socket_timeout"] == 0.25
        await hasty.aclose()


@pytest.mark.parametrize(
    "url",
    [
        "hello",
        "http://10.0.0.1",
        "unix+cluster:///a.sock",
        "redis+sentinel://10.0.0.1",
        "redis+cluster://:hunter2@",
        "redis+cluster://10.0.0.1:port",
        "redis+cluster://10.0.0.1,,10.0.0.2",
    ],
)
async def test_a_url_of_an_unknown_form_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        async with client_of(url):
            pass
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (AuthenticationError("invalid username-password pair for hunter2"), "refuses the user or password"),
        (ReadOnlyError("You can't write against a read only replica."), "read-only replica"),
        (ResponseError("MISCONF Errors writing to the AOF file: No space left on device"), "cannot write to its disk"),
        (OutOfMemoryError("command not allowed"), "maxmemory"),
        (MovedError("1 10.0.0.1:7000"), "redis+cluster://"),
        (RedisConnectionError("Error 111 connecting to hunter2"), "cannot be reached"),
        (RedisTimeoutError("Timeout reading from hunter2"), "does not answer in time"),
        (ResponseError("ERR of hunter2"), "ResponseError"),
    ],
)
def test_the_cause_of_an_error_is_in_plain_words_and_quotes_nothing(error: RedisError, words: str) -> None:
    assert words in plain_cause(error)
    assert "hunter2" not in plain_cause(error)


async def test_a_burst_of_events_finds_enough_connections(redis_url: str) -> None:
    """Each event and each turn holds one for a moment; beyond redis-py's own hundred it would be refused at once."""
    async with client_of(redis_url) as redis:

        async def holding() -> object:
            return await redis.brpop(["nothing"], timeout=0.1)

        async with asyncio.TaskGroup() as group:
            waiting = [group.create_task(holding()) for _ in range(300)]
    assert [task.result() for task in waiting] == [None] * 300


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


async def test_an_unreplicated_question_is_stored_but_acknowledged_only_when_resent(
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


async def test_a_replica_confirms_writes_and_a_dead_one_is_not_waited_for(pair: Pair) -> None:
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


async def test_a_replica_that_comes_later_is_noticed(redis_client: Redis) -> None:
    asked: list[None] = []

    def clock() -> float:
        asked.append(None)
        return len(asked) * REPLICA_COUNT_TTL_S

    await Replication(redis_client, clock=clock).confirm(SHARD)
    assert asked
    assert await redis_client.exists(f"{SHARD}:replicated") == 0  # no replica to wait for: nothing is written


async def test_a_caller_that_gives_up_leaves_the_count_to_the_next_one(
    redis_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, asked = [100.0], list[str]()
    replication = Replication(redis_client, clock=lambda: now[0])
    await replication.confirm(SHARD)
    info, answers = redis_client.info, asyncio.Event()

    async def slow_info(*sections: str) -> object:
        asked.append(*sections)
        await answers.wait()
        return await info(*sections)

    monkeypatch.setattr(redis_client, "info", slow_info)
    now[0] += 2 * REPLICA_COUNT_TTL_S
    async with asyncio.TaskGroup() as group:
        first = group.create_task(replication.confirm(SHARD))
        await asyncio.sleep(0)
        await replication.confirm(SHARD)  # it does not ask again meanwhile
        assert len(asked) == 1
        first.cancel()
    answers.set()
    await replication.confirm(SHARD)
    assert len(asked) == 2


async def test_a_server_that_does_not_report_replicas_has_none(pair: Pair) -> None:
    await pair.client.acl_setuser("default", enabled=True, nopass=True, commands=["+@all", "-info"], keys=["*"])
    with pytest.raises(ResponseError):
        await pair.client.info("replication")
    await pair.replication().confirm(SHARD)
