"""The two transports of the SDK, within limits: lines of a process, and HTTP."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any, Final

import anyio
import httpx2
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp import types
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from agent.tools.mcp.config import McpServer
from agent.tools.mcp.process import ChildServer, start_process
from observability.loopback import is_loopback, trusted_at

MAX_REPLY_BYTES: Final = 8_000_000  # over HTTP the SDK reads a whole reply of any length
STREAM_CLOSED: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError)
Streams = tuple[ObjectReceiveStream[SessionMessage | Exception], ObjectSendStream[SessionMessage]]


@asynccontextmanager
async def open_transport(
    server: McpServer, *, ended: Callable[[], None], note: Callable[[str], None]
) -> AsyncIterator[AbstractAsyncContextManager[Any]]:
    """Open the SDK's transport. The process is stopped only after the SDK closed it.

    ``ended`` is called when a process closes its output, ``note`` with each line of its error output, or with the
    status of an HTTP reply that is an error.
    """
    if not server.url:
        env = get_default_environment() | dict(server.env)
        async with start_process(server.command, server.args, env=env, cwd=server.cwd, note=note) as child:
            yield _line_transport(child, ended)
        return

    async def limit_reply(reply: httpx2.Response) -> None:
        reply.stream = _LimitedStream(reply.stream)
        if reply.status_code >= HTTPStatus.BAD_REQUEST and reply.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
            note(f"HTTP {reply.status_code}")

    async with httpx2.AsyncClient(
        headers=dict(server.headers),
        timeout=httpx2.Timeout(20.0, read=300.0),  # each call has a time-out of its own
        trust_env=not is_loopback(server.url),
        verify=trusted_at(server.url),
        event_hooks={"response": [limit_reply]},
    ) as http:
        yield streamable_http_client(server.url, http_client=http)


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
    except STREAM_CLOSED:
        return
    finally:
        ended()
