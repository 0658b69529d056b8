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
        """``reason`` such as ``timeout`` or ``http_error``."""
        super().__init__(reason)
        self.reason = reason
        self.final = final


@dataclass(eq=False, slots=True)
class Connection:
    """One open WebSocket and the envelopes it has not acknowledged yet."""

    socket: web.WebSocketResponse
    waiting: dict[str, asyncio.Future[Json | None]] = field(default_factory=dict)


class SocketMode:
    """All Socket Mode connections of the app."""

    def __init__(self, faults: Faults, changed: Callable[[bool], None]) -> None:
        """Asks ``faults`` whether sockets hang or are refused; tells ``changed`` whether the app is connected."""
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
            await socket.send_json(self._hello())
            await self._listen(connection)
        finally:
            self._drop(connection)
        return socket

    async def send(self, kind: str, payload: Json, attempt: int, reason: str, timeout: float) -> Json | None:  # noqa: ASYNC109 - the parts of one envelope
        """Sends one envelope to one connection and returns the body of its ack.

        Raises ``NotAcknowledged``: without a connection, without an ack in ``timeout`` seconds, or when it closed.
        """
        connection = self._next_connection()
        if connection is None:
            raise NotAcknowledged(reason="connection_failed")
        sent = self._envelope(kind, payload, attempt, reason)
        envelope_id = str(sent["envelope_id"])
        future: asyncio.Future[Json | None] = asyncio.get_running_loop().create_future()
        connection.waiting[envelope_id] = future
        try:
            async with asyncio.timeout(timeout):
                if not self._faults.sockets_hang:
                    await connection.socket.send_json(sent)
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
                await connection.socket.send_json(
                    {"type": "disconnect", "reason": reason, "debug_info": {"host": "local"}}
                )
        if close:
            await self.close()

    async def close(self) -> None:
        """Closes every connection without a word."""
        for connection in list(self.connections):
            with contextlib.suppress(ConnectionError):
                await connection.socket.close()

    def _hello(self) -> Json:
        return {
            "type": "hello",
            "num_connections": len(self.connections),
            "debug_info": {"host": "local", "build_number": 1, "approximate_connection_time": 18060},
            "connection_info": {"app_id": APP_ID},
        }

    @staticmethod
    def _envelope(kind: str, payload: Json, attempt: int, reason: str) -> Json:
        sent: Json = {"envelope_id": str(uuid.uuid4()), "type": kind, "payload": payload}
        if kind == "events_api":
            return sent | {"accepts_response_payload": False, "retry_attempt": attempt, "retry_reason": reason}
        return sent | {"accepts_response_payload": True}

    def _next_connection(self) -> Connection | None:
        if not self.connections:
            return None
        # Slack picks any connection; by turns, so that a test with two of them meets both.
        self._turn += 1
        return self.connections[self._turn % len(self.connections)]

    async def _listen(self, connection: Connection) -> None:
        async for message in connection.socket:
            if self._faults.sockets_hang:
                continue
            if message.type == WSMsgType.PING:
                await connection.socket.pong(message.data)
            elif message.type == WSMsgType.TEXT:
                self._acknowledge(connection, message.data)

    @staticmethod
    def _acknowledge(connection: Connection, text: str) -> None:
        try:
            ack = json.loads(text)
        except ValueError:
            return
        if not isinstance(ack, dict):
            return
        future = connection.waiting.get(str(ack.get("envelope_id", "")))
        if future is not None and not future.done():
            payload = ack.get("payload")
            future.set_result(payload if isinstance(payload, dict) else None)

    def _drop(self, connection: Connection) -> None:
        self.connections.remove(connection)
        self._changed(bool(self.connections))
        for future in connection.waiting.values():
            if not future.done():
                future.set_exception(NotAcknowledged(reason="connection_failed"))
