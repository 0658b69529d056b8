"""The server's half of Socket Mode. Each envelope goes to one connection; the caller decides about retries."""

import asyncio
import contextlib
import json
import secrets
import uuid
from collections.abc import Callable
from typing import Final

from aiohttp import web

from bot.local.model.roster import APP_ID, Json

# Slack's own limit for an app.
MAX_CONNECTIONS: Final = 10


class NotAcknowledged(Exception):  # noqa: N818 - an outcome of a delivery, named as Slack's documentation does
    """A delivery without an ack. ``reason`` is Slack's retry reason; ``final`` forbids another try."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.final = final


class SocketMode:
    """All Socket Mode connections of the app; ``changed`` gets whether there is one."""

    def __init__(self, changed: Callable[[bool], None]) -> None:
        self._changed = changed
        self._tickets: set[str] = set()
        self._turn = 0
        self.connections: dict[web.WebSocketResponse, dict[str, asyncio.Future[Json | None]]] = {}
        """Open connections, each with the acks that it still owes by envelope id."""
        self.opened = 0  # connections opened so far, closed ones included

    def new_ticket(self) -> str:
        """A secret that opens one connection once, as part of the URL that ``apps.connections.open`` returns."""
        ticket = secrets.token_urlsafe(24)
        self._tickets.add(ticket)
        return ticket

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        """Serve one connection until it closes."""
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            raise web.HTTPForbidden(text="bad or used ticket")
        self._tickets.discard(ticket)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if len(self.connections) >= MAX_CONNECTIONS:
            await socket.send_json({"type": "disconnect", "reason": "too_many_websockets", "debug_info": {}})
            await socket.close()
            return socket
        waiting = self.connections[socket] = {}
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
            async for message in socket:
                _acknowledge(waiting, str(message.data))
        finally:
            del self.connections[socket]
            self._changed(bool(self.connections))
            for future in waiting.values():
                if not future.done():
                    future.set_exception(NotAcknowledged(reason="connection_failed"))
        return socket

    async def send(self, kind: str, payload: Json, attempt: int, reason: str, timeout: float) -> Json | None:  # noqa: ASYNC109 - the parts of one envelope
        """The body of the ack of one envelope. Raises ``NotAcknowledged`` without one, in ``timeout`` seconds."""
        if not self.connections:
            raise NotAcknowledged(reason="connection_failed")
        # Slack picks any connection; rotate, so that a test with two of them uses both.
        self._turn += 1
        socket, waiting = list(self.connections.items())[self._turn % len(self.connections)]
        envelope_id, events = str(uuid.uuid4()), kind == "events_api"
        retry = {"retry_attempt": attempt, "retry_reason": reason} if events else {}  # headers in HTTP
        sent = {"envelope_id": envelope_id, "type": kind, "payload": payload, "accepts_response_payload": not events}
        waiting[envelope_id] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout):
                await socket.send_json(sent | retry)
                return await waiting[envelope_id]
        except TimeoutError:
            raise NotAcknowledged(reason="timeout") from None
        except ConnectionError:
            raise NotAcknowledged(reason="connection_failed") from None
        finally:
            del waiting[envelope_id]

    async def disconnect(self, reason: str = "refresh_requested") -> None:
        """Tell every client to reconnect, as Slack does when it recycles its hosts."""
        for socket in list(self.connections):
            with contextlib.suppress(ConnectionError):
                await socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "local"}})
        await self.close()

    async def close(self) -> None:
        """Close every connection without notice."""
        for socket in list(self.connections):
            with contextlib.suppress(ConnectionError):
                await socket.close()


def _acknowledge(waiting: dict[str, asyncio.Future[Json | None]], text: str) -> None:
    ack = json_object(text) or {}
    future, payload = waiting.get(str(ack.get("envelope_id"))), ack.get("payload")
    if future is not None and not future.done():
        future.set_result(payload if isinstance(payload, dict) else None)


def json_object(text: str) -> Json | None:
    """Return ``text`` as a JSON object, if it is one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
