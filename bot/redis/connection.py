"""Redis connections that lose no cancellation on Python 3.11.

There redis-py waits for each write with `asyncio.wait_for`: in a task of its own, and a cancellation that arrives as it
ends is lost (python/cpython#86296). Without a time-out it writes at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TypeVar

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import TimeoutError as RedisTimeoutError

AnyConnection = TypeVar("AnyConnection", bound=AbstractConnection)


class DirectWrites(AbstractConnection):
    """Writes without `asyncio.wait_for`."""

    async def send_packed_command(self, command: bytes | str | Iterable[bytes], check_health: bool = True) -> None:  # noqa: FBT001, FBT002 (the signature is redis-py's)
        """Send, within ``socket_timeout`` seconds. Raises ``RedisError``."""
        if not self.is_connected:
            await self.connect_check_health(check_health=False)
        if check_health:
            await self.check_health()  # type: ignore[no-untyped-call]  # redis-py's own
        # A connection serves one caller at a time, so this change is safe.
        seconds, self.socket_timeout = self.socket_timeout, None
        try:
            async with asyncio.timeout(seconds):
                await super().send_packed_command(command, check_health=False)
        except TimeoutError:
            message = "Timeout writing to socket"
            raise RedisTimeoutError(message) from None
        finally:
            self.socket_timeout = seconds


def with_direct_writes(connection_class: type[AnyConnection]) -> type[AnyConnection]:
    """Return this class of redis-py's, with direct writes."""
    return type(connection_class.__name__, (DirectWrites, connection_class), {})
