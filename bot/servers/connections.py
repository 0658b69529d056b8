"""Limits on HTTP connections: time for headers and between requests, and a share of the process's file descriptors.

aiohttp closes a connection only after its first request, so that idle ones could use up all descriptors.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import structlog
from aiohttp import web

HEADER_TIMEOUT_S: Final = 10.0
IDLE_TIMEOUT_S: Final = 30.0
MIN_CONNECTIONS: Final = 32
log = structlog.get_logger()


def max_connections() -> int:
    """Half of the descriptors that this process may open: the rest is for Redis, Slack, models and files."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(MIN_CONNECTIONS, (limit if limit != resource.RLIM_INFINITY else 1 << 20) // 2)


@dataclass(slots=True)
class ConnectionLimits:
    """The open connections of one server. Those without a request have a timer, the one idle for longest first."""

    limit: int = field(default_factory=max_connections)
    header_s: float = HEADER_TIMEOUT_S
    idle_s: float = IDLE_TIMEOUT_S
    _busy: set[asyncio.BaseTransport] = field(default_factory=set)
    _idle: dict[asyncio.BaseTransport, asyncio.TimerHandle] = field(default_factory=dict)

    def open(self, transport: asyncio.Transport) -> bool:
        """Admit a connection, in place of the one that is idle for longest if there are too many."""
        if len(self._busy) + len(self._idle) >= self.limit:
            for closed in [each for each in (*self._busy, *self._idle) if each.is_closing()]:
                self._forget(closed)
        if len(self._busy) + len(self._idle) >= self.limit:
            if not self._idle:
                log.warning("connection_refused", open=len(self._busy))
                return False
            self._abort(next(iter(self._idle)))
        self._rest(transport, self.header_s)
        return True

    def _forget(self, transport: asyncio.BaseTransport) -> None:
        self._busy.discard(transport)
        if timer := self._idle.pop(transport, None):
            timer.cancel()

    @web.middleware
    async def track(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Stop the timer of a connection while its request is handled."""
        transport = request.transport
        if transport is None:
            return await handler(request)
        self._forget(transport)
        self._busy.add(transport)
        try:
            return await handler(request)
        finally:
            self._busy.discard(transport)
            if not transport.is_closing():
                self._rest(transport, self.idle_s)

    def _rest(self, transport: asyncio.BaseTransport, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._idle[transport] = loop.call_later(seconds, self._abort, transport)

    def _abort(self, transport: asyncio.BaseTransport) -> None:
        self._forget(transport)
        if isinstance(transport, asyncio.Transport):
            transport.abort()


class LimitedProtocol(asyncio.Protocol):
    """Admits a connection within ``limits`` and hands it to aiohttp's ``handler``, or aborts it."""

    def __init__(self, handler: asyncio.Protocol, limits: ConnectionLimits) -> None:
        self._handler = handler
        self._limits = limits

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Decide once; all that follows on the connection goes to the handler."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a TCP server makes no other
        if not self._limits.open(transport):
            transport.abort()
            return
        transport.set_protocol(self._handler)
        self._handler.connection_made(transport)
