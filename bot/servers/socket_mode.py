"""Socket Mode: one WebSocket to Slack, opened again by the SDK whenever it breaks.

By itself the SDK asks hundreds of times a second where Slack accepts sockets and drops them (``too_many_websockets``);
here the pauses grow. ``ready`` means that Slack said hello on the socket that is open now.
"""

from __future__ import annotations

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

from bot.slack.client import library_logger
from bot.slack.payload import string
from observability.loopback import proxy_for

MAX_PAUSE_S: Final = 30.0  # long enough to be no burden, short enough that people hardly wait once Slack is back
_CLOSE_TIMEOUT_S: Final = 2.0  # of the 25 seconds that a deploy gives: the turns need the rest
log = structlog.get_logger()


class SocketClosingError(ConnectionError):
    """Orion ends: no socket is opened any more."""


class PacedClient(SocketModeClient):
    """The SDK's client, which waits before it asks for another socket if Slack did not greet on the last one."""

    def __init__(self, front: SocketFront) -> None:
        super().__init__(
            front.app_token,
            logger=library_logger(),
            web_client=front.app.client,
            ping_interval=front.ping_interval_s,
        )
        self.closing = asyncio.Event()
        self._front = front
        self._ungreeted = 0
        self._greeted: aiohttp.ClientWebSocketResponse | None = None
        self.socket_mode_request_listeners.append(self._dispatch)
        self.on_message_listeners.append(self._note_greeting)

    async def is_greeted(self) -> bool:
        """Whether events can arrive: Slack said hello, and the socket is still open."""
        ours = self._greeted is not None and self._greeted is self.current_session
        return ours and await self.is_connected()

    async def issue_new_wss_url(self) -> str:
        """As the SDK does, in time. Raises ``SocketClosingError`` when there is no need any more."""
        if self._ungreeted:
            pause_s = min(self._front.first_pause_s * 2.0 ** (self._ungreeted - 1), MAX_PAUSE_S)
            log.warning("slack_socket_waits", ungreeted=self._ungreeted, wait_s=round(pause_s, 2))
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s * random.uniform(0.8, 1.2)):  # noqa: S311 - spreads retries only
                    await self.closing.wait()
                message = "Orion ends"
                raise SocketClosingError(message)
        # Counted before it is asked for: a socket that never says hello counts as well.
        self._ungreeted += 1
        try:
            url = await super().issue_new_wss_url()
        except SlackApiError as error:  # the SDK's own line about it must not be shown, so nobody would know why
            reason = string(error.response.data, "error") or "no reason given"
            log.warning("slack_socket_refused", reason=reason, remedy="`orion doctor` looks at SLACK_APP_TOKEN")
            raise
        self.proxy = proxy_for(url)  # the SDK's own choice knows neither loopback nor NO_PROXY
        return url

    async def _dispatch(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        """One envelope, as Bolt's own adapter takes it: its ack goes out when the listeners are done."""
        began = time()
        await send_async_response(client, request, await run_async_bolt_app(self._front.app, request), began)

    async def _note_greeting(self, message: aiohttp.WSMessage) -> None:
        try:
            said = json.loads(message.data)
        except (TypeError, ValueError):
            return
        if string(said, "type") == "hello":
            self._ungreeted, self._greeted = 0, self.current_session
        elif string(said, "type") == "disconnect":
            log.warning("slack_socket_dropped", reason=string(said, "reason"))


@dataclass(slots=True)
class SocketFront:
    """Takes events over Socket Mode. Times in seconds."""

    app: AsyncApp
    app_token: str
    ping_interval_s: float = 10.0
    first_pause_s: float = 1.0
    _client: PacedClient | None = None

    async def ready(self) -> bool:
        """Whether events can arrive right now."""
        return self._client is not None and await self._client.is_greeted()

    async def run(self) -> None:
        """Connects and stays until cancelled. A Slack that is away is tried again for ever: ``ready`` tells."""
        self._client = client = PacedClient(self)
        try:
            await client.connect()  # type: ignore[no-untyped-call]  # the library left it unannotated
            log.info("slack_socket_connected")
            await asyncio.Event().wait()
        finally:
            self._client = None
            client.closing.set()
            with suppress(aiohttp.ClientError, OSError):  # TimeoutError is an OSError
                async with asyncio.timeout(_CLOSE_TIMEOUT_S):  # a peer that never says goodbye must not hold up the end
                    await client.close()  # type: ignore[no-untyped-call]  # the library left it unannotated
            # The SDK leaves its session open when the close was cut short.
            await client.aiohttp_client_session.close()
            log.info("slack_socket_closed")
