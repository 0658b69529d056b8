"""Delivers events and clicks to the app over Socket Mode or signed HTTP, with Slack's three retries of events."""

import asyncio
import contextlib
import json
import secrets
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

import aiohttp
from aiohttp import web
from slack_sdk.signature import SignatureVerifier

from bot.local.model.faults import Faults
from bot.local.model.limits import Strictness
from bot.local.model.roster import APP_ID, Json

# Slack's own limit for an app.
MAX_CONNECTIONS: Final = 10


class NotAcknowledged(Exception):  # noqa: N818 - an outcome of a delivery, named as Slack's documentation does
    """A delivery without an ack. ``reason`` is Slack's retry reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


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
            await socket.send_json({"type": "disconnect", "reason": "too_many_websockets"})
            await socket.close()
            return socket
        waiting = self.connections[socket] = {}
        self.opened += 1
        self._changed(True)
        try:
            await socket.send_json({"type": "hello", "connection_info": {"app_id": APP_ID}})
            async for message in socket:
                ack = json_object(str(message.data)) or {}
                future, payload = waiting.get(str(ack.get("envelope_id"))), ack.get("payload")
                if future is not None and not future.done():
                    future.set_result(payload if isinstance(payload, dict) else None)
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
        # Slack picks any connection. Rotate, so that a test with two of them uses both.
        self._turn += 1
        socket, waiting = list(self.connections.items())[self._turn % len(self.connections)]
        envelope_id, events = str(uuid.uuid4()), kind == "events_api"
        retry = {"retry_attempt": attempt, "retry_reason": reason} if events else {}  # over HTTP these are headers
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
                await socket.send_json({"type": "disconnect", "reason": reason})
        await self.close()

    async def close(self) -> None:
        """Close every connection without notice."""
        for socket in list(self.connections):
            with contextlib.suppress(ConnectionError):
                await socket.close()


def json_object(text: str) -> Json | None:
    """Return ``text`` as a JSON object, if it is one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


@dataclass(slots=True)
class HttpEvents:
    """Post to one app. ``url`` may change while the workspace runs."""

    signing_secret: str
    url: str = ""

    async def send(self, kind: str, payload: Json, attempt: int, reason: str, timeout: float) -> Json | None:  # noqa: ASYNC109 - the parts of one request
        """The JSON body of the answer, if it has one. Raises ``NotAcknowledged`` unless it was a 2xx in time."""
        body, content_type = json.dumps(payload).encode(), "application/json"
        if kind != "events_api":  # clicks travel as a form with one field
            body, content_type = urlencode({"payload": body}).encode(), "application/x-www-form-urlencoded"
        timestamp = str(int(time.time()))
        signature = SignatureVerifier(self.signing_secret).generate_signature(timestamp=timestamp, body=body)
        headers = {
            "Content-Type": content_type,
            "X-Slack-Request-Timestamp": timestamp,
            "X-Slack-Signature": signature or "",
            "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
        }
        if attempt:
            headers |= {"X-Slack-Retry-Num": str(attempt), "X-Slack-Retry-Reason": reason}
        limit = aiohttp.ClientTimeout(total=timeout)
        try:
            async with (
                aiohttp.ClientSession(trust_env=False, timeout=limit, headers=headers) as session,
                session.post(self.url, data=body, allow_redirects=False) as answer,
            ):
                text = await answer.text()
        except TimeoutError:
            raise NotAcknowledged(reason="http_timeout") from None
        except aiohttp.ClientError:
            raise NotAcknowledged(reason="connection_failed") from None
        if answer.status in range(200, 300):
            return json_object(text)
        raise NotAcknowledged(reason="http_error")


@dataclass(slots=True, kw_only=True)
class EventDelivery:
    """The delivery of one event. ``reasons`` says why tries failed."""

    event_id: str
    event: Json
    attempts: int = 0
    reasons: list[str] = field(default_factory=list)
    acknowledged: bool = False
    given_up: bool = False


@dataclass(slots=True)
class Deliveries:
    """Sends payloads to the app over the configured transport; ``changed`` is called whenever one progresses."""

    sockets: SocketMode
    http: HttpEvents
    faults: Faults
    strictness: Strictness
    changed: Callable[[], None]
    may_go: asyncio.Event = field(default_factory=asyncio.Event)  # events are held back until it is set
    log: list[EventDelivery] = field(default_factory=list)
    group: asyncio.TaskGroup | None = None  # runs the deliveries; without one, events are recorded only
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def stop(self) -> None:
        """End the running deliveries."""
        self.group = None
        for task in self._tasks:
            task.cancel()

    def event(self, payload: Json) -> None:
        """Deliver an Events API payload in the background."""
        self._begin(payload)
        if self.faults.duplicate_events > 0:
            # Both copies have the same event id, as when Slack resends an event that was acknowledged too late.
            self.faults.duplicate_events -= 1
            self._begin(payload)

    def _begin(self, payload: Json) -> None:
        record = EventDelivery(event_id=payload["event_id"], event=payload["event"])
        self.log.append(record)
        if self.group is not None:
            task = self.group.create_task(self._deliver(payload, record), name=f"deliver {record.event_id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def interaction(self, payload: Json) -> Json | None:
        """Deliver a click or a view once, and return the body of the ack, if it has one. Raises ``NotAcknowledged``."""
        return await self._send("interactive", payload, 0, "")

    async def _send(self, kind: str, payload: Json, attempt: int, reason: str) -> Json | None:
        way = self.http if self.http.url else self.sockets
        return await way.send(kind, payload, attempt, reason, self.strictness.ack_seconds)

    async def _deliver(self, payload: Json, record: EventDelivery) -> None:
        reason = ""
        await self.may_go.wait()  # the page opens seconds before Orion has connected
        for attempt, delay in enumerate((0.0, *self.strictness.retry_delays)):
            await asyncio.sleep(delay)
            record.attempts += 1
            try:
                await self._send("events_api", payload, attempt, reason)
                record.acknowledged = True
                break
            except NotAcknowledged as failure:
                reason = failure.reason
                record.reasons.append(reason)
                self.changed()
        record.given_up = not record.acknowledged
        self.changed()
