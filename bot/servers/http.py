"""The HTTP pages of every mode (``/healthz``, ``/readyz``, ``/metrics``), and Slack's events in HTTP mode.

A request from Slack needs a fresh signature over its raw bytes, at most 1 MiB. Bodies are never logged. Connections
have separate limits: aiohttp closes them only after their first request, so idle ones could use up all descriptors.
"""

import asyncio
import errno
import os
import re
import resource
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_sdk.signature import Clock, SignatureVerifier

from agent.json_data import string
from bot.errors import WrongUse
from bot.install.installations import InstallPages
from bot.slack.manifest import EVENTS_PATH
from bot.slack.web_api import SET_CLOCK

HEADER_TIMEOUT_S: Final = 10.0
IDLE_TIMEOUT_S: Final = 30.0
MIN_CONNECTIONS: Final = 32
MAX_BODY_BYTES: Final = 1024 * 1024  # Slack's own events are far smaller
_STAMP: Final = re.compile(r"[0-9]{1,12}")
_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"  # Prometheus' text format
log = structlog.get_logger()


def max_connections() -> int:
    """Half of the descriptors that this process may open: the rest is for Redis, Slack, models and files."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(MIN_CONNECTIONS, (limit if limit != resource.RLIM_INFINITY else 1 << 20) // 2)


@dataclass(slots=True)
class ConnectionLimits:
    """Limits on the open connections of one server, and the timers of the idle ones, idle for longest first."""

    limit: int = field(default_factory=max_connections)
    header_s: float = HEADER_TIMEOUT_S
    idle_s: float = IDLE_TIMEOUT_S
    _timers: dict[asyncio.BaseTransport, asyncio.TimerHandle] = field(default_factory=dict)

    def admit(self, transport: asyncio.Transport, open_connections: int) -> bool:
        """Admit a connection. If there are too many, close the one that has been idle for longest."""
        if open_connections >= self.limit:
            idle = next((each for each in self._timers if not each.is_closing()), None)
            if idle is None:
                log.warning("connection_refused", open=open_connections)
                return False
            self._abort(idle)
        self._start_timer(transport, self.header_s)
        return True

    @web.middleware
    async def track(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Stop the timer of a connection while its request is handled."""
        transport = request.transport
        if transport and (timer := self._timers.pop(transport, None)):
            timer.cancel()
        try:
            return await handler(request)
        finally:
            if transport and not transport.is_closing():
                self._start_timer(transport, self.idle_s)

    def _start_timer(self, transport: asyncio.BaseTransport, seconds: float) -> None:
        self._timers[transport] = asyncio.get_running_loop().call_later(seconds, self._abort, transport)

    def _abort(self, transport: asyncio.BaseTransport) -> None:
        self._timers.pop(transport).cancel()
        if isinstance(transport, asyncio.Transport):
            transport.abort()


class LimitedProtocol(asyncio.Protocol):
    """Admits a connection within ``limits`` and hands it to aiohttp's ``server``, or aborts it."""

    def __init__(self, server: web.Server, limits: ConnectionLimits) -> None:
        self._server = server
        self._limits = limits

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Decide once; everything after that goes to aiohttp's handler."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a TCP server makes no other
        if not self._limits.admit(transport, len(self._server.connections)):
            transport.abort()
            return
        handler = self._server()
        transport.set_protocol(handler)
        handler.connection_made(transport)


class ProcessStatus:
    """Content of the pages; empty here. A pause or an open circuit fails no check, as questions are stored."""

    async def checks(self) -> Mapping[str, bool]:
        """Check what must be up before questions can be answered."""
        return {}

    async def metrics(self) -> bytes:
        """Render the page for Prometheus."""
        return b""

    async def is_paused(self) -> bool:
        """Return whether an admin paused Orion."""
        return False

    def open_circuits(self) -> Sequence[str]:
        """Return the services that keep failing and are not called for a while."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackEndpoint:
    """The endpoint for Slack in HTTP mode. A body must arrive within ``body_s``.

    ``installing`` are the pages on which workspaces install Orion, if they may.
    """

    app: AsyncApp
    signing_secret: str
    body_s: float = 10.0
    installing: InstallPages | None = None


def build(status: ProcessStatus, endpoint: SlackEndpoint | None = None) -> web.Application:
    """Build the web application: three pages, and Slack's endpoint in HTTP mode."""
    application = web.Application(client_max_size=MAX_BODY_BYTES)
    application.add_routes(page_routes(status))
    if endpoint is not None:
        application.router.add_post(EVENTS_PATH, partial(_slack_events, endpoint))
        if endpoint.installing is not None:
            application.add_routes(endpoint.installing.routes())
    return application


def page_routes(status: ProcessStatus) -> list[web.RouteDef]:
    """Routes of the three pages, for any server that shows them."""

    async def healthz(_: web.Request) -> web.Response:
        return web.json_response({"alive": True})

    async def readyz(_: web.Request) -> web.Response:
        checks = dict(await status.checks())
        ready, open_circuits = all(checks.values()), list(status.open_circuits())
        shown = {"ready": ready, "checks": checks, "open_circuits": open_circuits, "paused": await status.is_paused()}
        return web.json_response(shown, status=200 if ready else 503)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=await status.metrics(), headers={"Content-Type": _METRICS_TYPE})

    return [web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)]


@asynccontextmanager
async def serve(
    application: web.Application, *, host: str = "127.0.0.1", port: int = 0, limits: ConnectionLimits | None = None
) -> AsyncIterator[int]:
    """Serve until the block ends and yield the bound port (0 picks a free one). Raises ``WrongUse`` if it is in use."""
    limits = limits or ConnectionLimits()
    application.middlewares.append(limits.track)
    # Slack compresses nothing, and unpacking a megabyte of zeros would block this process for seconds.
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=3, auto_decompress=False)
    await runner.setup()
    server = runner.server
    assert server is not None  # noqa: S101 - set up above
    try:
        try:
            listener = await asyncio.get_running_loop().create_server(
                partial(LimitedProtocol, server, limits), host, port, reuse_address=True, backlog=128
            )
        except OSError as error:
            why = "it is taken" if error.errno == errno.EADDRINUSE else os.strerror(error.errno or 0)
            raise WrongUse(why=f"Port {port} on {host} cannot be opened ({why}). Choose another with --port.") from None
        try:
            yield int(listener.sockets[0].getsockname()[1])
        finally:
            listener.close()
    finally:
        await runner.cleanup()


@dataclass(frozen=True, slots=True)
class _ClockAt(Clock):
    stamp: int

    def now(self) -> float:
        """Return the fixed time of this clock."""
        return self.stamp


def has_valid_signature(secret: str, headers: Mapping[str, str], body: bytes, clock: Clock | None = None) -> bool:
    """Return True if Slack signed exactly these bytes within the last five minutes of the clock."""
    if not _STAMP.fullmatch(headers.get("X-Slack-Request-Timestamp", "")):  # `int` would take "+1" and "1_0" too
        return False
    try:
        return SignatureVerifier(secret, clock or Clock()).is_valid_request(body, headers)
    except (ValueError, TypeError, OverflowError):  # Slack never sends these: a number that is too long, or not UTF-8
        return False


async def _slack_events(endpoint: SlackEndpoint, request: web.Request) -> web.Response:
    try:
        # A client that sends a byte a minute must not keep a connection forever.
        async with asyncio.timeout(endpoint.body_s):
            body = await request.read()  # 413 above client_max_size
    except TimeoutError:
        return web.Response(status=408)
    if not has_valid_signature(endpoint.signing_secret, request.headers, body):
        stamp, fault = request.headers.get("X-Slack-Request-Timestamp", ""), dict[str, int | str]()
        then = _ClockAt(int(stamp)) if _STAMP.fullmatch(stamp) else None
        if then and has_valid_signature(endpoint.signing_secret, request.headers, body, then):  # except for its age
            fault = {"seconds_off": round(time.time()) - then.stamp, "remedy": SET_CLOCK}
        log.warning("slack_signature_refused", body_length=len(body), **fault)
        return web.Response(status=401)  # Bolt would log the signature and body of a request that it refuses
    try:
        asked = AsyncBoltRequest(body=body.decode(), headers=dict(request.headers))
        is_event = "event" in asked.body or asked.body.get("type") == "event_callback"
        has_type = string(asked.body, "event", "type") and isinstance(asked.body.get("type"), str)
        trouble = "shape" if is_event and not has_type else ""  # Bolt would fail on a missing type later
    except (ValueError, TypeError, AttributeError, KeyError, IndexError, RecursionError) as exc:
        # Bolt reads its context from the payload and does not check the types of its fields.
        trouble = type(exc).__name__
    else:
        if asked.body.get("type") == "app_rate_limited":  # Bolt does not know it
            log.warning("slack_withholds_events", remedy="Orion gets more than Slack's 30,000 events an hour.")
            return web.Response()
    if trouble:
        log.warning("slack_body_unreadable", error_type=trouble, body_length=len(body))
        return web.Response(status=400)
    return await to_aiohttp_response(await endpoint.app.async_dispatch(asked))
