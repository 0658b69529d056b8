"""Connections without a task for each command, and a pool that makes nobody wait in vain."""

from __future__ import annotations

import asyncio
import socket

import pytest
from redis.asyncio import Redis
from redis.exceptions import TimeoutError as RedisTimeoutError

from bot.redis.connection import Pool, TcpConnection
from tests.support.redis_fleet import cancellations_lost


async def test_server_that_reads_nothing_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        connection = TcpConnection(port=deaf.getsockname()[1], socket_timeout=0.1, protocol=2)
        connection._reader, connection._writer = await asyncio.open_connection(*deaf.getsockname())
        with pytest.raises(RedisTimeoutError):
            await connection.send_packed_command([b"x" * 50_000_000], check_health=False)
        assert (connection.socket_timeout, connection.is_connected) == (0.1, False)


async def test_nobody_waits_for_a_connection_in_vain(redis_url: str) -> None:
    pool = Pool.from_url(redis_url, max_connections=2, timeout=5)
    served: set[int] = set()

    async def use(number: int) -> None:
        connection = await pool.get_connection()
        await connection.send_command("ECHO", number)
        served.add(int(await connection.read_response()))
        await pool.release(connection)

    async with asyncio.TaskGroup() as group:
        for number in range(40):
            group.create_task(use(number))
    await use(40)
    assert served == set(range(41))
    assert len(pool._available_connections) == 2
    await pool.aclose()


async def test_no_cancellation_is_lost_in_a_command(redis_client: Redis) -> None:
    assert await cancellations_lost(redis_client) == 0
