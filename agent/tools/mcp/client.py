"""Tools of MCP servers. The only importer of ``mcp``.

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

from agent.tasks import background_tasks
from agent.tools.mcp.config import McpServer
from agent.tools.mcp.process import ChildServer, start_process
from agent.tools.mcp.sanitize import to_one_line, to_tool_spec
from agent.tools.tool import Tool, ToolFailed, ToolResult, ToolSpec, run_supervised
from observability.loopback import is_loopback, trusted_at
from verification.types import Source

MAX_PAGES: Final = 20
MAX_TOOLS: Final = 64
MAX_REPLY_BYTES: Final = 8_000_000  # over HTTP the SDK reads a whole reply of any length
_ALIVE_TIMEOUT_S: Final = 0.5  # within the second that a call's own wall waits longer
_OTHER_INPUT: Final = "Call it again with other input, or go on without it."
_STREAM_CLOSED: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError)
log = structlog.get_logger()
Streams = tuple[ObjectReceiveStream[SessionMessage | Exception], ObjectSendStream[SessionMessage]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Seconds. A server has ``start`` for its handshake and its list of tools; Orion's start waits ``first`` for it.

    A call waits ``ready`` for a new connection. The back-off between tries is ``pause``, doubled up to ``longest``.
    """

    start: float = 20.0
    first: float = 5.0
    ready: float = 5.0
    pause: float = 0.5
    longest: float = 60.0


class McpConnection:
    """One server, connected as long as ``keep`` runs."""

    def __init__(self, server: McpServer, waits: Waits) -> None:
        self.server = server
        self._waits = waits
        self.tools: tuple[McpTool, ...] = ()
        self.tried = asyncio.Event()
        self._client: Client | None = None
        self._pause = self._waits.pause
        self._ready = asyncio.Event()
        self._over = asyncio.Event()
        self._wanted = asyncio.Event()

    @property
    def is_connected(self) -> bool:
        """True while the server is connected."""
        return self._client is not None

    async def keep(self) -> None:
        """Connect, again and again, until cancelled."""
        while True:
            self._wanted.clear()
            await run_supervised(f"mcp:{self.server.name}", self._connect)
            self.tried.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause):
                    await self._wanted.wait()
            self._pause = min(self._pause * 2, self._waits.longest)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        """Call once. Raises ``McpFailed``; an exception of the SDK's own is left to the wall round tools."""
        client, limit = await self._connection(), self.server.timeout_s
        try:
            async with asyncio.timeout(limit):
                return await client.call_tool(tool, dict(arguments))
        except TimeoutError:
            if not self.server.url and not await _is_alive(client):
                self._over.set()  # a process that hangs never recovers by itself: start another one
                self._client = None
                self._ready.clear()
            raise McpFailed(self.server, f"gave no result within {limit:g} seconds.") from None
        except MCPError as error:
            if error.code != types.CONNECTION_CLOSED and not self.server.url:
                raise McpFailed(self.server, f"refused: {to_one_line(error.message)}") from None
            self._over.set()
            raise McpFailed(self.server, f"broke off: {to_one_line(error.message)}") from None
        except ValueError:  # pydantic's, too
            raise McpFailed(self.server, "sent something that is not a result.") from None
        except (httpx2.HTTPError, OSError, *_STREAM_CLOSED):
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
        self._over.clear()
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self._waits.start):
                transport = await stack.enter_async_context(self._transport())
                client = await stack.enter_async_context(Client(transport, cache=None))
                self.tools = tuple([tool async for tool in self._list_tools(client)])
            self._pause = self._waits.pause
            log.info("mcp_server_connected", server=self.server.name, tools=len(self.tools))
            try:
                self._client = client
                self._ready.set()
                self.tried.set()
                await self._over.wait()
            finally:
                self._client = None
                self._ready.clear()
        log.info("mcp_server_gone", server=self.server.name)

    async def _list_tools(self, client: Client) -> AsyncIterator[McpTool]:
        """Yield the server's tools that are allowed and usable. The others are counted in the log."""
        cursor, count, left_out = None, 0, 0
        # A call first waits for a connection, and its own time-out says more than the wall's: the wall waits longer.
        longest_s = self._waits.ready + self.server.timeout_s + 1
        for _ in range(MAX_PAGES):
            listed = await client.list_tools(cursor=cursor)
            for tool in listed.tools:
                said = tool.description or tool.title or ""
                spec = to_tool_spec(self.server.name, tool.name, said, tool.input_schema)
                if spec and count < MAX_TOOLS and self.server.allows(tool.name):
                    count += 1
                    title = to_one_line(tool.title or tool.name)[:80]
                    yield McpTool(self, tool.name, title, replace(spec, takes_s=longest_s))
                else:
                    left_out += 1
            cursor = listed.next_cursor
            if not cursor:
                break
        if left_out:
            log.info("mcp_tools_left_out", server=self.server.name, tools=left_out)

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[AbstractAsyncContextManager[Any]]:
        """Open the SDK's transport. The process is stopped only after the SDK closed it."""
        server = self.server
        if server.url:
            async with httpx2.AsyncClient(
                headers=dict(server.headers),
                timeout=httpx2.Timeout(20.0, read=300.0),  # each call has a time-out of its own
                trust_env=not is_loopback(server.url),
                verify=trusted_at(server.url),
                event_hooks={"response": [_limit_reply]},
            ) as http:
                yield streamable_http_client(server.url, http_client=http)
            return
        env = get_default_environment() | dict(server.env)
        async with start_process(server.command, server.args, env=env, cwd=server.cwd) as child:
            yield _line_transport(child, self._over.set)


async def _is_alive(client: Client) -> bool:
    """Ask a server that gave no result whether it is alive. A slow tool leaves it able to answer."""
    with suppress(TimeoutError, MCPError, OSError, *_STREAM_CLOSED):
        async with asyncio.timeout(_ALIVE_TIMEOUT_S):
            await client.list_tools()
            return True
    return False


class McpFailed(ToolFailed):
    """A call to a server failed."""

    hints = ("Go on without it, or try once more.",)

    def __init__(self, server: McpServer, what: str) -> None:
        super().__init__(f"The server {server.name} {what}")


@dataclass(frozen=True, slots=True)
class McpTool:
    """One tool of one server, where it is called ``name``. ``title`` and ``spec`` are sanitized."""

    connection: McpConnection
    name: str
    title: str
    spec: ToolSpec

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Call the tool. The reply is the result's text and its source."""
        server = self.connection.server
        result = await self.connection.call(self.name, arguments)
        text = "\n".join(_texts_of(result)).encode("utf-8", "replace").decode()
        kept = text[: server.max_chars]
        if result.is_error:
            error = f"The tool failed: {to_one_line(kept) or 'no message'}"
            raise ToolFailed(error, _OTHER_INPUT)
        note = f"\n[Cut off: {len(kept)} of {len(text)} characters are shown.]" if kept != text else ""
        source = Source(id=0, title=f"{server.name}: {self.title}", text=kept, origin=f"tool:{self.spec.name}")
        return ToolResult(content=kept + note or "Done.", sources=(source,) if kept.strip() else ())


@dataclass(frozen=True, slots=True)
class McpTools:
    """The tools of all servers, as they are now. ``reserved`` names are Orion's own."""

    connections: Sequence[McpConnection]
    reserved: frozenset[str]

    def __call__(self) -> dict[str, Tool]:
        """Return the tools by name. Of two tools with one name the first counts."""
        tools: dict[str, Tool] = {}
        for tool in (tool for connection in self.connections for tool in connection.tools):
            if tool.spec.name not in self.reserved:
                tools.setdefault(tool.spec.name, tool)
        return tools


@asynccontextmanager
async def open_mcp(
    servers: Sequence[McpServer], reserved: frozenset[str], waits: Waits | None = None
) -> AsyncIterator[McpTools]:
    """Connect to the servers that are reachable. The start waits at most ``waits.first`` for them."""
    waits = waits or Waits()
    # The SDK's own lines quote what servers say.
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
    connections = [McpConnection(server, waits) for server in servers]
    async with background_tasks() as group:
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


async def _limit_reply(reply: httpx2.Response) -> None:
    reply.stream = _LimitedStream(reply.stream)


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        read = 0
        async for piece in self._stream:
            read += len(piece)
            if read > MAX_REPLY_BYTES:
                raise httpx2.ReadError(message="the reply is too long")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def _line_transport(child: ChildServer, ended: Callable[[], None]) -> AsyncIterator[Streams]:
    """Exchange the SDK's messages as lines of a process. ``ended`` is called at the end of its output."""
    heard, hear = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    say, said = anyio.create_memory_object_stream[SessionMessage](0)

    async def speak() -> None:
        async with said:
            async for message in said:
                try:
                    await child.say(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
                except OSError:
                    ended()
                    return

    async with heard, hear, say, said, anyio.create_task_group() as group:
        group.start_soon(_receive_lines, child, heard, ended)
        group.start_soon(speak)
        try:
            yield hear, say
        finally:
            group.cancel_scope.cancel()


async def _receive_lines(
    child: ChildServer, heard: ObjectSendStream[SessionMessage | Exception], ended: Callable[[], None]
) -> None:
    try:
        async with heard:
            async for line in child.lines():
                with suppress(ValueError):  # some servers print lines that are not messages
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                    await heard.send(SessionMessage(message))
    except _STREAM_CLOSED:
        return
    finally:
        ended()


def _texts_of(result: types.CallToolResult) -> Iterator[str]:
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
