"""The server's half of Socket Mode.

Each envelope goes to one connection; whoever delivers decides about sending again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from aiohttp import WSMsgType, web

from bot.local.model.faults import Faults
from bot.local.model.roster import APP_ID, Json

# Slack's own limit for an app.
MOST_CONNECTIONS: Final = 10


class NotAcknowledged(Exception):  # noqa: N818 - an outcome of a delivery, named as Slack's documentation does
    """A delivery that got no ack. ``reason`` is Slack's retry reason; ``final`` forbids another try."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.final = final


@dataclass(eq=False, slots=True)
class Connection:
    """One open WebSocket and the envelopes it has not acknowledged yet."""

    socket: web.WebSocketResponse
    waiting: dict[str, asyncio.Future[Json | None]] = field(default_factory=dict)


class SocketMode:
    """All Socket Mode connections of the app; ``changed`` is told whether there is one."""

    def __init__(self, faults: Faults, changed: Callable[[bool], None]) -> None:
        self._faults = faults
        self._changed = changed
        self._tickets: set[str] = set()
        self._turn = 0
        self.connections: list[Connection] = []
        self.opened = 0
        """Connections opened so far, closed ones included."""

    def new_ticket(self) -> str:
        """A secret that opens one connection once, as part of the URL that ``apps.connections.open`` returns."""
        ticket = secrets.token_urlsafe(24)
        self._tickets.add(ticket)
        return ticket

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        """Serves one connection until it closes."""
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets or self._faults.refuse_sockets:
            raise web.HTTPForbidden(text="bad or used ticket")
        self._tickets.discard(ticket)
        # The app's own pings must be answered with their payload, unless a fault keeps the socket silent.
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        if len(self.connections) >= MOST_CONNECTIONS:
            await socket.send_json({"type": "disconnect", "reason": "too_many_websockets", "debug_info": {}})
            await socket.close()
            return socket
        connection = Connection(socket)
        self.connections.append(connection)
        self.opened += 1
        self._changed(True)
        try:
            await socket.send_json(
                {
                    "type": "hello",
                    "num_connections": len(self.connections),
                    "debug_info": {"host": "local", "build_number": 1, "approximate_connection_time": 18060},
                    "connection_info": {"app_id": APP_ID},
                }
            )
            await self._listen(connection)
        finally:
            self._drop(connection)
        return socket

    async def send(self, kind: str, payload: Json, attempt: int, reason: str, timeout: float) -> Json | None:  # noqa: ASYNC109 - the parts of one envelope
        """Sends one envelope to one connection and returns the body of its ack.

        Raises ``NotAcknowledged``: without a connection, without an ack in ``timeout`` seconds, or when it closed.
        """
        if not self.connections:
            raise NotAcknowledged(reason="connection_failed")
        # Slack picks any connection; by turns, so that a test with two of them meets both.
        self._turn += 1
        connection = self.connections[self._turn % len(self.connections)]
        envelope_id, events = str(uuid.uuid4()), kind == "events_api"
        retry = {"retry_attempt": attempt, "retry_reason": reason} if events else {}
        sent = {"envelope_id": envelope_id, "type": kind, "payload": payload, "accepts_response_payload": not events}
        future: asyncio.Future[Json | None] = asyncio.get_running_loop().create_future()
        connection.waiting[envelope_id] = future
        try:
            async with asyncio.timeout(timeout):
                if not self._faults.sockets_hang:
                    await connection.socket.send_json(sent | retry)
                return await future
        except TimeoutError:
            raise NotAcknowledged(reason="timeout") from None
        except ConnectionError:
            raise NotAcknowledged(reason="connection_failed") from None
        finally:
            connection.waiting.pop(envelope_id, None)

    async def disconnect(self, reason: str = "refresh_requested", *, close: bool = True) -> None:
        """Tells every connection to come back on a new one, as Slack does when it recycles its hosts."""
        for connection in list(self.connections):
            with contextlib.suppress(ConnectionError):
                sent = {"type": "disconnect", "reason": reason, "debug_info": {"host": "local"}}
                await connection.socket.send_json(sent)
        if close:
            await self.close()

    async def close(self) -> None:
        """Closes every connection without a word."""
        for connection in list(self.connections):
            with contextlib.suppress(ConnectionError):
                await connection.socket.close()

    async def _listen(self, connection: Connection) -> None:
        async for message in connection.socket:
            if self._faults.sockets_hang:
                continue
            if message.type == WSMsgType.PING:
                await connection.socket.pong(message.data)
            elif message.type == WSMsgType.TEXT:
                ack = json_object(message.data) or {}
                payload = ack.get("payload")
                future = connection.waiting.get(str(ack.get("envelope_id")))
                if future is not None and not future.done():
                    future.set_result(payload if isinstance(payload, dict) else None)

    def _drop(self, connection: Connection) -> None:
        self.connections.remove(connection)
        self._changed(bool(self.connections))
        for future in connection.waiting.values():
            if not future.done():
                future.set_exception(NotAcknowledged(reason="connection_failed"))


def json_object(text: str) -> Json | None:
    """The JSON object that ``text`` is, if it is one."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
