"""Connections without a task for each command."""

from __future__ import annotations

import asyncio
import socket

import pytest
from redis.asyncio import Redis
from redis.asyncio.connection import Connection
from redis.exceptions import TimeoutError as RedisTimeoutError

from bot.redis.connection import with_direct_writes
from tests.support.redis_fleet import cancellations_lost


async def test_server_that_reads_nothing_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        connection = with_direct_writes(Connection)(port=deaf.getsockname()[1], socket_timeout=0.1, protocol=2)
        connection._reader, connection._writer = await asyncio.open_connection(*deaf.getsockname())
        with pytest.raises(RedisTimeoutError):
            await connection.send_packed_command([b"x" * 50_000_000], check_health=False)
        assert (connection.socket_timeout, connection.is_connected) == (0.1, False)


async def test_no_cancellation_is_lost_in_a_command(redis_client: Redis) -> None:
    assert await cancellations_lost(redis_client) == 0
