"""The two transports of the SDK, within limits: lines of a process, and HTTP."""

from collections.abc import AsyncGenerator, AsyncIterator
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

from agent.tools.mcp.process import ChildServer, Link, start_process
from observability.loopback import is_loopback, trusted_at

MAX_REPLY_BYTES: Final = 8_000_000  # over HTTP the SDK reads a whole reply of any length
STREAM_CLOSED: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError)
Streams = tuple[ObjectReceiveStream[SessionMessage | Exception], ObjectSendStream[SessionMessage]]


@asynccontextmanager
async def open_transport(link: Link) -> AsyncIterator[AbstractAsyncContextManager[Any]]:
    """Open the SDK's transport. The process is stopped only after the SDK closed the transport.

    The link is over when the process closes its output. HTTP errors are noted on the link.
    """
    url = link.server.url
    if not url:
        async with start_process(link, get_default_environment() | link.server.env) as child:
            yield _line_transport(child, link)
        return

    async def limit_reply(reply: httpx2.Response) -> None:
        reply.stream = _LimitedStream(reply.stream)
        if reply.status_code >= HTTPStatus.BAD_REQUEST and reply.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
            link.note(f"HTTP {reply.status_code}")

    async with httpx2.AsyncClient(
        headers=link.server.headers,
        timeout=httpx2.Timeout(20.0, read=300.0),  # each call has its own time-out
        trust_env=not is_loopback(url),
        verify=trusted_at(url),
        event_hooks={"response": [limit_reply]},
    ) as http:
        yield streamable_http_client(url, http_client=http)


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
async def _line_transport(child: ChildServer, link: Link) -> AsyncIterator[Streams]:
    """Exchange the SDK's messages as lines of a process."""
    heard, hear = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    say, said = anyio.create_memory_object_stream[SessionMessage](0)

    async def listen() -> None:
        with suppress(*STREAM_CLOSED):
            async with heard:
                async for line in child.lines():
                    with suppress(ValueError):  # some servers print lines that are not messages
                        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                        await heard.send(SessionMessage(message))
        link.over.set()

    async def speak() -> None:
        try:
            async with said:
                async for message in said:
                    await child.say(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
        except OSError:
            link.over.set()

    async with heard, hear, say, said, anyio.create_task_group() as group:
        group.start_soon(listen)
        group.start_soon(speak)
        try:
            yield hear, say
        finally:
            group.cancel_scope.cancel()
