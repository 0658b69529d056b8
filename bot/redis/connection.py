"""Redis connections that send a command without starting a task for it.

On Python 3.11 redis-py waits for each write with ``asyncio.wait_for``, which runs it in a task of its own: as much
processor time as the command itself, for some seventeen commands a question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from redis.asyncio.connection import AbstractConnection, Connection, UnixDomainSocketConnection
from redis.exceptions import TimeoutError as RedisTimeoutError


class _Sending(AbstractConnection):
    async def send_packed_command(self, command: bytes | str | Iterable[bytes], check_health: bool = True) -> None:  # noqa: FBT001, FBT002 (the signature is redis-py's)
        """Send, within ``socket_timeout`` seconds. Raises ``RedisError``."""
        if not self.is_connected:
            await self.connect_check_health(check_health=False)
        if check_health:
            await self.check_health()  # type: ignore[no-untyped-call]  # redis-py's own
        # Without a time-out redis-py writes at once; a connection serves one caller at a time, so nobody misses it.
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
    """To a server of its own, without TLS."""


class SocketConnection(_Sending, UnixDomainSocketConnection):
    """To a server on this machine."""
