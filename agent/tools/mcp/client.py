"""Connections to MCP servers, through the official SDK.

Orion starts even if a server is down, and connects later. A call is never repeated: it may have had an effect.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

import httpx2
import structlog
from mcp import Client, MCPError, types

from agent.tasks import background_tasks
from agent.tools.mcp.config import McpServer
from agent.tools.mcp.outside_text import Pages, to_one_line, to_tool_spec
from agent.tools.mcp.records import refusal_in
from agent.tools.mcp.transport import STREAM_CLOSED, ServerLink, open_transport
from agent.tools.tool import ToolFailed, ToolSpec, error_of

MAX_PAGES: Final = 20
MAX_TOOLS: Final = 64
_ALIVE_TIMEOUT_S: Final = 0.5  # less than the extra second that the wall around the call waits
_REFUSALS: Final = frozenset({types.INVALID_PARAMS, types.METHOD_NOT_FOUND, types.INVALID_REQUEST})
log = structlog.get_logger()
Reply = TypeVar("Reply")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Waiting times in seconds."""

    start: float = 20.0  # for a server's handshake and list of tools
    first: float = 5.0  # for which Orion's start waits for a server
    ready: float = 5.0  # for which a call waits for a new connection
    pause: float = 0.5  # between two tries to connect, doubled up to ``longest``
    longest: float = 60.0


class McpFailed(ToolFailed):
    """A call to a server failed."""

    def __init__(self, server: McpServer, what: str, *, away: bool = True) -> None:
        go_on = "Go on without it, or try once more."
        say = f"Say that you could not look into {server.name}, not that it holds nothing."
        super().__init__(f"The server {server.name} {what}", *((say, go_on) if away else (go_on,)))
        self.away = away


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as a server lists it. ``title`` and ``spec`` are sanitized."""

    name: str
    title: str
    spec: ToolSpec


class McpConnection:
    """One server, which is connected while ``keep`` runs."""

    def __init__(self, server: McpServer, waits: Waits) -> None:
        self.server = server
        self.tools: tuple[ListedTool, ...] = ()
        self.left_out: tuple[str, ...] = ()  # names of tools that cannot or may not be used
        self.pages = Pages(server)
        self.tried = asyncio.Event()  # set after the first try to connect
        self._last_trouble = ""  # known until the next try ends: a call may come in between
        self._waits = waits
        self._pause = waits.pause
        self._link = ServerLink(server)
        self._client: Client | None = None
        self._ready = asyncio.Event()
        self._wanted = asyncio.Event()
        self._changed = asyncio.Event()

    @property
    def is_connected(self) -> bool:
        """True while the server is connected."""
        return self._client is not None

    @property
    def trouble(self) -> str:
        """The last hint at what is wrong."""
        return self._link.trouble or self._last_trouble

    async def keep(self) -> None:
        """Connect, and reconnect, until cancelled."""
        while True:
            self._wanted.clear()
            self._link = ServerLink(self.server)
            error = await error_of(self._connect)
            if not self._link.trouble:
                late = isinstance(error, TimeoutError)
                reason = f"no answer within {self._waits.start:g} s" if late else str(error or "the connection ended")
                self._link.note(reason or type(error).__name__)
            if self._link.trouble != self._last_trouble:
                log.warning("mcp_server_away", server=self.server.name, reason=self._link.trouble)
            self._last_trouble = self._link.trouble
            self.tried.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause):
                    await self._wanted.wait()
            self._pause = min(self._pause * 2, self._waits.longest)

    def unreachable(self) -> McpFailed:
        """Return the failure of a call without a connection."""
        status = f" ({self.trouble})" if self.trouble.startswith("HTTP ") else ""
        return McpFailed(self.server, f"cannot be reached{status}. It is tried again.")

    async def request(self, send: Callable[[Client], Awaitable[Reply]]) -> Reply:
        """Send once. Raises ``McpFailed``; the wall around tools handles the SDK's own exceptions."""
        self._wanted.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._waits.ready):
                await self._ready.wait()
        client, server, link = self._client, self.server, self._link
        if client is None:
            raise self.unreachable()
        link.trouble = ""
        try:
            async with asyncio.timeout(server.timeout_s):
                return await send(client)
        except TimeoutError:
            if not server.url and not await _is_alive(client):
                self._disconnect()  # a process that hangs never recovers by itself: start another one
            raise McpFailed(server, f"gave no result within {server.timeout_s:g} seconds.") from None
        except MCPError as error:
            said, status = to_one_line(error.message), link.trouble if server.url else ""
            is_answer = not status or (status == "HTTP 400" and error.code in _REFUSALS)
            if is_answer and error.code != types.CONNECTION_CLOSED:
                refusal = refusal_in(said)
                raise McpFailed(server, f"{refusal or 'refused'}: {said}", away=bool(refusal)) from None
            self._disconnect()
            raise McpFailed(server, f"broke off{status and f' ({status})'}: {said}") from None
        except (ValueError, RuntimeError):  # of pydantic, and of the SDK for a result that its schema does not allow
            raise McpFailed(server, "sent something that is not a result.") from None
        except (httpx2.HTTPError, OSError, *STREAM_CLOSED):
            self._disconnect()
            raise McpFailed(server, "broke the connection.") from None

    def _disconnect(self) -> None:
        self._link.over.set()
        self._client = None
        self._ready.clear()

    async def _connect(self) -> None:
        link = self._link
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self._waits.start):
                transport = await stack.enter_async_context(open_transport(link))
                client = Client(transport, cache=None, message_handler=self._hear)
                client = await stack.enter_async_context(client)
                await self._list_tools(client)
            self._pause, self._last_trouble = self._waits.pause, ""
            log.info("mcp_server_connected", server=self.server.name, tools=len(self.tools))
            tasks = await stack.enter_async_context(background_tasks())
            following = [
                tasks.create_task(self._follow(client)),
                tasks.create_task(error_of(partial(self._listen, client))),
            ]
            try:
                self._client = client
                self._ready.set()
                self.tried.set()
                await link.over.wait()
            finally:
                self._disconnect()
                for task in following:
                    task.cancel()

    async def _hear(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changed.set()

    async def _listen(self, client: Client) -> None:
        """Subscribe to changes of the server's tools. Raises if it does not offer this."""
        async with client.listen(tools_list_changed=True) as changes:
            async for _ in changes:
                self._changed.set()

    async def _follow(self, client: Client) -> None:
        """List the tools again whenever the server says that they changed."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if error := await error_of(partial(self._list_tools, client)):
                log.warning("mcp_tools_not_listed", server=self.server.name, error_type=type(error).__name__)

    async def _list_tools(self, client: Client) -> None:
        """Read the server's tools, and keep those that are allowed and usable, as the model sees them."""
        server, cursor, tools, left_out = self.server, None, list[ListedTool](), list[str]()
        # A call first waits for a connection, and its own time-out gives a better error, so the wall waits longer.
        takes_s = self._waits.ready + server.timeout_s + 1
        for _ in range(MAX_PAGES):
            try:
                page = await client.list_tools(cursor=cursor)
            except MCPError:
                if cursor is None:
                    raise
                break  # keep what it listed so far
            for tool in page.tools:
                hints = tool.annotations or types.ToolAnnotations()
                reads = False if hints.destructive_hint else hints.read_only_hint
                spec = to_tool_spec(server.name, tool.name, tool.description or tool.title or "", tool.input_schema)
                if spec and server.allows(tool.name, reads=reads) and len(tools) < MAX_TOOLS:
                    spec = replace(spec, takes_s=takes_s, place=server.name)
                    tools.append(ListedTool(tool.name, to_one_line(tool.title or tool.name)[:80], spec))
                else:
                    left_out.append(to_one_line(tool.name)[:80])
            if not page.next_cursor or page.next_cursor == cursor:
                break
            cursor = page.next_cursor
        self.tools, self.left_out = tuple(tools), tuple(left_out)
        if left_out:
            log.info("mcp_tools_left_out", server=server.name, tools=len(left_out))


async def _is_alive(client: Client) -> bool:
    """Ping a server that returned no result: it may still answer while a tool is slow."""
    with suppress(TimeoutError, MCPError, OSError, *STREAM_CLOSED):
        async with asyncio.timeout(_ALIVE_TIMEOUT_S):
            await client.list_tools()
            return True
    return False
