"""Tools of MCP servers (D4). The only importer of ``mcp``.

Orion starts although a server is down, and connects again later. A call is never repeated: it may have done something.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import anyio
import httpx2
import structlog
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp import Client, MCPError, types
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from agent.tasks import beside
from agent.tools.mcp.config import McpServer
from agent.tools.mcp.process import ChildServer, started
from agent.tools.mcp.sanitize import fit_to_show, in_a_line
from agent.tools.tool import Tool, ToolFailed, ToolResult, ToolSpec, outlived
from observability.loopback import is_loopback, trusted_at
from verification.types import Source

PAGES_MOST: Final = 20
TOOLS_MOST: Final = 64
NONSENSE_MOST: Final = 50
"""Lines that are no message: some servers print. More of them is no conversation."""
REPLY_MOST: Final = 8_000_000
_CALLERS_END: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError)
log = structlog.get_logger()
Streams = tuple[ObjectReceiveStream[SessionMessage | Exception], ObjectSendStream[SessionMessage]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Seconds: a server has ``start`` for its greeting and its list of tools; Orion's own start waits ``first`` for it.

    A call waits ``ready`` for a connection to be made again; between attempts lies ``pause``, doubled to ``longest``.
    """

    start: float = 20.0
    first: float = 5.0
    ready: float = 5.0
    pause: float = 0.5
    longest: float = 60.0


class _Flood(httpx2.StreamError):
    """A reply longer than any that can be meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A tool as its server offers it, made fit to be shown."""

    name: str
    title: str
    spec: ToolSpec


class McpConnection:
    """One server, connected as long as ``keep`` runs."""

    def __init__(self, server: McpServer, waits: Waits | None = None) -> None:
        self.server = server
        self._waits = waits or Waits()
        self.offered: tuple[Offered, ...] = ()
        self.tried = asyncio.Event()
        self._client: Client | None = None
        self._connections = 0
        self._ready = asyncio.Event()
        self._over = asyncio.Event()
        self._wanted = asyncio.Event()

    @property
    def connected(self) -> bool:
        """Whether the server is there now."""
        return self._client is not None

    @property
    def longest_s(self) -> float:
        """Seconds after which a call has ended: a connection is waited for first."""
        return self._waits.ready + self.server.timeout_s

    async def keep(self) -> None:
        """Connect, again and again, until cancelled."""
        pause = self._waits.pause
        while True:
            self._wanted.clear()
            before = self._connections
            await outlived(f"mcp:{self.server.name}", self._connect)
            if self._connections > before:
                pause = self._waits.pause
            self.tried.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wanted.wait()
            pause = min(pause * 2, self._waits.longest)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        """Call once. Raises ``McpFailed``; an exception of the SDK's own is left to the wall round tools."""
        client, limit = await self._connection(), self.server.timeout_s
        try:
            async with asyncio.timeout(limit):
                return await client.call_tool(tool, dict(arguments))
        except TimeoutError:
            raise McpFailed(self.server, f"gave no result within {limit:g} seconds.") from None
        except MCPError as error:
            if error.code != types.CONNECTION_CLOSED and not self.server.url:
                raise McpFailed(self.server, f"refused: {in_a_line(error.message)}") from None
            self._over.set()
            raise McpFailed(self.server, f"broke off: {in_a_line(error.message)}") from None
        except ValueError:  # pydantic's, too
            raise McpFailed(self.server, "answered something that is no result.") from None
        except (httpx2.HTTPError, OSError, *_CALLERS_END):
            self._over.set()
            raise McpFailed(self.server, "broke the connection.") from None

    async def _connection(self) -> Client:
        self._wanted.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._waits.ready):
                await self._ready.wait()
        if self._client is None:
            raise McpFailed(self.server, "cannot be reached. It is tried again.")
        return self._client

    async def _connect(self) -> None:
        """One connection, from its beginning to its end."""
        self._over.clear()
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self._waits.start):
                transport = await stack.enter_async_context(self._transport())
                client = await stack.enter_async_context(Client(transport, cache=None))
                self.offered = tuple([offered async for offered in _offered(client, self.server)])
            self._connections += 1
            log.info("mcp_server_connected", server=self.server.name, tools=len(self.offered))
            try:
                self._client = client
                self._ready.set()
                self.tried.set()
                await self._over.wait()
            finally:
                self._client = None
                self._ready.clear()
        log.info("mcp_server_gone", server=self.server.name)

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[AbstractAsyncContextManager[Any]]:
        """What the SDK talks through. The process is stopped only after the SDK let go of it."""
        server = self.server
        if server.url:
            async with _http(server) as http:
                yield streamable_http_client(server.url, http_client=http)
            return
        env = get_default_environment() | dict(server.env)
        async with started(server.command, server.args, env=env, cwd=server.cwd) as child:
            yield _over_lines(child, self._over.set)


class McpFailed(ToolFailed):
    """A server did not do it."""

    hints = ("Go on without it, or try once more.",)

    def __init__(self, server: McpServer, what: str) -> None:
        super().__init__(f"The server {server.name} {what}")


class McpTool:
    """One tool of one server."""

    def __init__(self, connection: McpConnection, offered: Offered) -> None:
        self._connection = connection
        self._offered = offered

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it. Its own time-out says more than the wall round tools, so it comes first."""
        return replace(self._offered.spec, takes_s=self._connection.longest_s + 1)

    async def run(self, call_id: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call; what came back is the result's text and its source."""
        name, server = self.spec.name, self._connection.server
        result = await self._connection.call(self._offered.name, arguments)
        text = "\n".join(_texts(result)).encode("utf-8", "replace").decode()
        kept = text[: server.max_chars]
        if result.is_error:
            hints = ("Call it again with other input, or go on without it.",)
            error = f"The tool failed: {in_a_line(kept) or 'without a word'}"
            return ToolResult(call_id=call_id, tool=name, ok=False, error=error, hints=hints)
        note = f"\n[Cut off: {len(kept)} of {len(text)} characters are shown.]" if kept != text else ""
        source = Source(id=0, title=f"{server.name}: {self._offered.title}", text=kept, origin=f"tool:{name}")
        sources = (source,) if kept.strip() else ()
        return ToolResult(call_id=call_id, tool=name, ok=True, content=kept + note or "Done.", sources=sources)


class McpTools:
    """The tools of all servers, as they are now. ``reserved`` names are Orion's own."""

    def __init__(self, connections: Sequence[McpConnection], reserved: frozenset[str]) -> None:
        self.connections = tuple(connections)
        self._reserved = reserved

    def __call__(self) -> dict[str, Tool]:
        """By name; of two tools of one name the first counts."""
        tools: dict[str, Tool] = {}
        for connection in self.connections:
            for offered in connection.offered:
                if offered.spec.name not in tools and offered.spec.name not in self._reserved:
                    tools[offered.spec.name] = McpTool(connection, offered)
        return tools


@asynccontextmanager
async def open_mcp(
    servers: Sequence[McpServer], reserved: frozenset[str], waits: Waits | None = None
) -> AsyncIterator[McpTools]:
    """The servers, connected where they can be; nobody waits longer than ``waits.first`` for them."""
    waits = waits or Waits()
    # The SDK's own lines quote what servers say.
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
    connections = [McpConnection(server, waits) for server in servers]
    async with beside() as group:
        keeping = [group.create_task(one.keep(), name=f"mcp:{one.server.name}") for one in connections]
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(waits.first):
                    for connection in connections:
                        await connection.tried.wait()
            yield McpTools(connections, reserved)
        finally:
            for task in keeping:
                task.cancel()


@asynccontextmanager
async def _http(server: McpServer) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that carries the configured headers, and reads only so much of a reply."""

    async def bounded(reply: httpx2.Response) -> None:
        reply.stream = _Bounded(reply.stream)

    timeout = httpx2.Timeout(20.0, read=300.0)  # how long a call may take is decided where it is made
    client = httpx2.AsyncClient(
        headers=dict(server.headers),
        timeout=timeout,
        trust_env=not is_loopback(server.url),
        verify=trusted_at(server.url),
        event_hooks={"response": [bounded]},
    )
    async with client:
        yield client


class _Bounded(httpx2.AsyncByteStream):
    """A reply's bytes, up to ``REPLY_MOST``."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        read = 0
        async for piece in self._stream:
            read += len(piece)
            if read > REPLY_MOST:
                msg = "the reply is too long"
                raise _Flood(msg)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def _over_lines(child: ChildServer, ended: Callable[[], None]) -> AsyncIterator[Streams]:
    """The SDK's messages as the lines of a process. ``ended`` is called when it says no more."""
    heard, hear = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    say, said = anyio.create_memory_object_stream[SessionMessage](0)
    async with heard, hear, say, said, anyio.create_task_group() as group:
        group.start_soon(_hear, child, heard, ended)
        group.start_soon(_say, child, said, ended)
        try:
            yield hear, say
        finally:
            group.cancel_scope.cancel()


async def _hear(
    child: ChildServer, heard: ObjectSendStream[SessionMessage | Exception], ended: Callable[[], None]
) -> None:
    nonsense = 0
    try:
        async with heard:
            async for line in child.lines():
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    nonsense += 1
                    if nonsense > NONSENSE_MOST:
                        return
                else:
                    await heard.send(SessionMessage(message))
    except _CALLERS_END:
        return
    finally:
        ended()


async def _say(child: ChildServer, said: ObjectReceiveStream[SessionMessage], ended: Callable[[], None]) -> None:
    async with said:
        async for message in said:
            try:
                await child.say(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
            except OSError:
                ended()
                return


async def _offered(client: Client, server: McpServer) -> AsyncIterator[Offered]:
    """The server's tools that may be used and can be; the others are counted in the log."""
    cursor, count, left_out = None, 0, 0
    for _ in range(PAGES_MOST):
        listed = await client.list_tools(cursor=cursor)
        for tool in listed.tools:
            spec = fit_to_show(server.name, tool.name, tool.description or tool.title or "", tool.input_schema)
            if spec and count < TOOLS_MOST and server.allows(tool.name):
                count += 1
                yield Offered(name=tool.name, title=in_a_line(tool.title or tool.name)[:80], spec=spec)
            else:
                left_out += 1
        cursor = listed.next_cursor
        if not cursor:
            break
    if left_out:
        log.info("mcp_tools_left_out", server=server.name, tools=left_out)


def _texts(result: types.CallToolResult) -> Iterator[str]:
    """The result's parts as text; pictures and sounds are named."""
    for part in result.content:
        match part:
            case types.TextContent():
                yield part.text
            case types.EmbeddedResource(resource=types.TextResourceContents(text=text)):
                yield text
            case types.ResourceLink():
                yield f"{part.title or part.name}: {part.uri}"
            case _:
                yield f"[{part.type}, not shown]"
    if not result.content and result.structured_content is not None:
        yield json.dumps(result.structured_content, ensure_ascii=False, indent=1)
