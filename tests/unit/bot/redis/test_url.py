"""Every form of ``REDIS_URL`` becomes the client it names, and no error shows a password."""

from __future__ import annotations

import asyncio

import pytest
from redis.asyncio.connection import SSLConnection
from redis.asyncio.sentinel import SentinelConnectionPool
from redis.exceptions import AuthenticationError, MovedError, OutOfMemoryError, ReadOnlyError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from bot.redis.cluster import Cluster
from bot.redis.url import client_of, impatient, plain_cause


async def test_cluster_is_named_by_some_of_its_nodes() -> None:
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


async def test_cluster_can_be_spoken_to_over_tls() -> None:
    async with client_of("rediss+cluster://10.0.0.1:7000") as client:
        assert isinstance(client, Cluster)
        assert issubclass(client.connection_kwargs["connection_class"], SSLConnection)


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


async def test_watched_primary_can_be_spoken_to_over_tls() -> None:
    async with client_of("rediss+sentinel://10.0.0.1/queue") as client:
        assert issubclass(client.connection_pool.connection_class, SSLConnection)


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
async def test_url_of_no_known_form_is_refused_without_its_password(url: str) -> None:
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
def test_what_went_wrong_is_said_in_words_and_quotes_nothing(error: RedisError, words: str) -> None:
    assert words in plain_cause(error)
    assert "hunter2" not in plain_cause(error)


async def test_burst_of_events_finds_connections_enough(redis_url: str) -> None:
    """Each event and each turn holds one for a moment; beyond redis-py's own hundred it would be refused at once."""
    async with client_of(redis_url) as redis:

        async def holding() -> object:
            return await redis.brpop(["nothing"], timeout=0.5)

        async with asyncio.TaskGroup() as group:
            waiting = [group.create_task(holding()) for _ in range(300)]
    assert [task.result() for task in waiting] == [None] * 300
