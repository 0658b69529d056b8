"""Redis connections and their pool, without redis-py's overhead, which costs more than the command itself.

A question takes some seventeen commands in sequence. The overhead would be a tenth of its processor time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from redis.asyncio import BlockingConnectionPool, ConnectionPool
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.sentinel import SentinelManagedConnection, SentinelManagedSSLConnection
from redis.exceptions import TimeoutError as RedisTimeoutError


class _Sending(AbstractConnection):
    async def send_packed_command(self, command: bytes | str | Iterable[bytes], check_health: bool = True) -> None:  # noqa: FBT001, FBT002 (the signature is redis-py's)
        """Send, within ``socket_timeout`` seconds. Raises ``RedisError``."""
        if not self.is_connected:
            await self.connect_check_health(check_health=False)
        if check_health:
            await self.check_health()  # type: ignore[no-untyped-call]  # redis-py's own
        # On Python 3.11 redis-py waits for each write with `asyncio.wait_for`: in a task of its own, and a cancellation
        # that arrives as it ends is lost (python/cpython#86296). Without a time-out it writes at once. A connection
        # serves one caller at a time, so this change is safe.
        seconds, self.socket_timeout = self.socket_timeout, None
        try:
            async with asyncio.timeout(seconds):
                await super().send_packed_command(command, check_health=False)
        except TimeoutError:
            message = "Timeout writing to socket"
            raise RedisTimeoutError(message) from None
        finally:
            self.socket_timeout = seconds


class TcpConnection(_Sending, Connection):
    """Connection to one server, without TLS."""


class TlsConnection(_Sending, SSLConnection):
    """Connection to one server, over TLS."""


class SentinelConnection(_Sending, SentinelManagedConnection):
    """Connection to the primary that the Sentinels name."""


class SentinelTlsConnection(_Sending, SentinelManagedSSLConnection):
    """Connection to the primary that the Sentinels name, over TLS."""


class SocketConnection(_Sending, UnixDomainSocketConnection):
    """Connection to a unix socket on this machine."""


OWN: Final[Mapping[type, type]] = {
    Connection: TcpConnection,
    SSLConnection: TlsConnection,
    UnixDomainSocketConnection: SocketConnection,
}


class Pool(BlockingConnectionPool):
    """A pool that hands out free connections without its lock and timer, unless a caller is waiting."""

    _waiting = 0

    async def get_connection(self, *_: Any, **__: Any) -> AbstractConnection:
        """Return a connection, or wait for one if all are in use. Raises ``RedisError``."""
        if self._waiting or not self._available_connections:
            self._waiting += 1
            try:
                return cast("AbstractConnection", await super().get_connection())  # type: ignore[no-untyped-call]  # redis-py's own
            finally:
                self._waiting -= 1
        connection: AbstractConnection = self.get_available_connection()  # type: ignore[no-untyped-call]  # redis-py's own
        ready = False
        try:
            await self.ensure_connection(connection)
            ready = True
        finally:
            if not ready:
                await self.release(connection)
        return connection

    async def release(self, connection: AbstractConnection) -> None:
        """Return the connection to the pool."""
        if self._waiting:
            await super().release(connection)
        else:
            await ConnectionPool.release(self, connection)
