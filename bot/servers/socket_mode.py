"""Socket Mode: one WebSocket to Slack, which the SDK reopens whenever it breaks.

If Slack accepts sockets and drops them (``too_many_websockets``), the SDK asks hundreds of times a second; here the
pauses grow. ``ready`` means that Slack said hello on the open socket.
"""

import asyncio
import json
import random
from contextlib import suppress
from dataclasses import dataclass
from time import time
from typing import Final

import aiohttp
import structlog
from slack_bolt.adapter.socket_mode.async_internals import run_async_bolt_app, send_async_response
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest

from agent.json_data import string
from bot.slack.client import library_logger
from observability.loopback import proxy_for

MAX_PAUSE_S: Final = 30.0  # no burden for Slack, and people hardly wait once Slack is back
_CLOSE_TIMEOUT_S: Final = 2.0  # out of a deploy's 25 seconds; the turns need the rest
log = structlog.get_logger()


class SocketClosingError(ConnectionError):
    """Orion is shutting down and opens no further socket."""


class PacedClient(SocketModeClient):
    """The SDK's client, with a pause before the next socket if Slack did not say hello on the last one."""

    wss_uri: str | None = None

    def __init__(self, socket_mode: "SocketMode") -> None:
        super().__init__(
            socket_mode.app_token,
            logger=library_logger(),
            web_client=socket_mode.app.client,
            ping_interval=socket_mode.ping_interval_s,
        )
        self.closing = asyncio.Event()
        self._socket_mode = socket_mode
        self._ungreeted = 0
        self.greeted: aiohttp.ClientWebSocketResponse | None = None  # the socket on which Slack said hello
        self.socket_mode_request_listeners.append(self._dispatch)
        self.on_message_listeners.append(self._note_greeting)

    async def issue_new_wss_url(self) -> str:
        """Get a URL as the SDK does, after a pause if due. Raises ``SocketClosingError`` when Orion shuts down."""
        if self._ungreeted:
            pause_s = min(self._socket_mode.first_pause_s * 2.0 ** (self._ungreeted - 1), MAX_PAUSE_S)
            log.warning("slack_socket_waits", ungreeted=self._ungreeted, wait_s=round(pause_s, 2))
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s * random.uniform(0.8, 1.2)):  # noqa: S311 - spreads retries only
                    await self.closing.wait()
                raise SocketClosingError
        # Count before the request, so that a socket without a hello counts as well.
        self._ungreeted += 1
        try:
            url = await super().issue_new_wss_url()
        except SlackApiError as error:  # the SDK's own line is suppressed, so log the reason here
            reason = string(error.response.data, "error") or "no reason given"
            log.warning("slack_socket_refused", reason=reason, remedy="`orion doctor` looks at SLACK_APP_TOKEN")
            raise
        return url

    @property
    def proxy(self) -> str | None:
        """Proxy for the socket that the SDK opens now. It would use the URL again if that fails, so it is removed."""
        url, self.wss_uri = self.wss_uri, None
        return proxy_for(url) if url else None

    @proxy.setter
    def proxy(self, chosen: str | None) -> None:
        """Ignore the SDK's own choice, which knows neither loopback nor NO_PROXY."""

    async def _dispatch(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        """Handle one envelope as Bolt's own adapter does. It is acknowledged once all listeners succeeded."""
        began = time()
        await send_async_response(client, request, await run_async_bolt_app(self._socket_mode.app, request), began)

    async def _note_greeting(self, message: aiohttp.WSMessage) -> None:
        if '"envelope_id"' in str(message.data):  # an event, which the SDK reads
            return
        try:
            frame = json.loads(message.data)
        except (TypeError, ValueError):
            return
        if string(frame, "type") == "hello":
            self._ungreeted, self.greeted = 0, self.current_session
        elif string(frame, "type") == "disconnect":
            log.warning("slack_socket_dropped", reason=string(frame, "reason"))


@dataclass(slots=True)
class SocketMode:
    """Receives events over Socket Mode. Times in seconds."""

    app: AsyncApp
    app_token: str
    ping_interval_s: float = 10.0
    first_pause_s: float = 1.0
    _client: PacedClient | None = None

    async def ready(self) -> bool:
        """Return True if events can arrive right now: Slack said hello on the socket, which is still open."""
        client = self._client
        if client is None or client.greeted is None or client.greeted is not client.current_session:
            return False
        return bool(await client.is_connected())

    async def run(self) -> None:
        """Connect and stay connected until cancelled. Keep retrying while Slack is down."""
        self._client = client = PacedClient(self)
        try:
            await client.connect()  # type: ignore[no-untyped-call]  # the library left it unannotated
            log.info("slack_socket_connected")
            await asyncio.Event().wait()
        finally:
            self._client = None
            client.closing.set()
            with suppress(aiohttp.ClientError, OSError):  # TimeoutError is an OSError
                async with asyncio.timeout(_CLOSE_TIMEOUT_S):  # a peer that never closes must not delay the shutdown
                    await client.close()  # type: ignore[no-untyped-call]  # the library left it unannotated
            # The SDK leaves its session open if the close timed out.
            await client.aiohttp_client_session.close()
            log.info("slack_socket_closed")
