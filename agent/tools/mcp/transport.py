"""The two transports of the SDK, within limits of size and time: the lines of a process, and HTTP."""

import asyncio
import os
import signal
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import anyio
import httpx2
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp import types
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from agent.limited_reply import reply_limit
from agent.tasks import background_tasks
from agent.tools.mcp.config import McpServer
from agent.tools.mcp.outside_text import to_one_line
from observability.loopback import client_options

MAX_LINE_BYTES: Final = 4_000_000  # the SDK's reader has no limit: an endless line would use up the memory
MAX_UNREQUESTED_BYTES: Final = 16_000_000
MAX_ERROR_BYTES: Final = 4_096  # maximum bytes of the end of the error output
MAX_TROUBLE_CHARS: Final = 200
GRACE_S: Final = 1.0
MAX_REPLY_BYTES: Final = 8_000_000  # over HTTP, unpacked: the SDK reads a reply of any length
STREAM_CLOSED: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError)
Streams = tuple[ObjectReceiveStream[SessionMessage | Exception], ObjectSendStream[SessionMessage]]


@dataclass(slots=True)
class ServerLink:
    """The link to one server."""

    server: McpServer
    over: asyncio.Event = field(default_factory=asyncio.Event)  # set when the connection breaks
    trouble: str = ""  # the latest hint: an HTTP status or a line of the server's error output

    def note(self, trouble: str) -> None:
        """Remember a hint at the problem, without the server's secrets."""
        self.trouble = to_one_line(self.server.without_secrets(trouble))[:MAX_TROUBLE_CHARS]


@asynccontextmanager
async def _start_process(link: ServerLink) -> AsyncIterator[Process]:
    """Start the server's process, and stop it when the block ends. Raises ``OSError`` if it cannot be started."""
    server = link.server
    process = await asyncio.create_subprocess_exec(
        server.command,
        *server.args,
        env=get_default_environment() | server.env,  # not Orion's own environment, which has tokens
        cwd=server.cwd or None,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=MAX_LINE_BYTES,
        start_new_session=True,  # ended with all its children
    )

    async def read_errors() -> None:
        end = b""
        while process.stderr and (piece := await process.stderr.read(MAX_ERROR_BYTES)):
            end = (end + piece)[-MAX_ERROR_BYTES:]
            link.note(end.decode(errors="replace").strip().rpartition("\n")[2])

    async with background_tasks() as tasks:
        reading = tasks.create_task(read_errors(), name="mcp-errors")
        try:
            yield process
        finally:
            await _stop(process)
            await asyncio.wait({reading}, timeout=GRACE_S)  # its last lines say why it ended
            reading.cancel()


async def _stop(process: Process) -> None:
    """Close the input of a process, then send SIGTERM, then SIGKILL to it and its children."""

    async def wait_for_end() -> None:
        while process.stdout and not process.stdout.at_eof():
            await process.stdout.read(1 << 16)  # a full pipe must not prevent its exit
        await process.wait()

    def send(which: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, which)

    if process.stdin:
        process.stdin.close()
    try:
        for which in (0, signal.SIGTERM):  # 0 sends no signal: closing its input may be enough
            send(which)
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_S):
                    await wait_for_end()
                    return
    finally:
        send(signal.SIGKILL)
    await wait_for_end()


@asynccontextmanager
async def open_transport(link: ServerLink) -> AsyncIterator[AbstractAsyncContextManager[Any]]:
    """Open the SDK's transport. On leaving, its process ends. HTTP errors are recorded in the link."""
    url = link.server.url
    if not url:
        async with _start_process(link) as process:
            assert process.stdout and process.stdin  # noqa: S101, PT018 - pipes
            yield _line_transport(process.stdout, process.stdin, link)
        return

    async def on_reply(reply: httpx2.Response) -> None:
        if reply.status_code >= HTTPStatus.MULTIPLE_CHOICES and reply.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
            link.note(f"HTTP {reply.status_code}")

    async with httpx2.AsyncClient(
        headers=link.server.headers,
        timeout=httpx2.Timeout(20.0, read=300.0),  # each call has its own time-out
        **client_options(url),
        event_hooks={"response": [reply_limit(MAX_REPLY_BYTES), on_reply]},
    ) as http:
        yield streamable_http_client(url, http_client=http)


@asynccontextmanager
async def _line_transport(out: StreamReader, into: StreamWriter, link: ServerLink) -> AsyncIterator[Streams]:
    """Exchange the SDK's messages as lines of a process."""
    heard, hear = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    say, said = anyio.create_memory_object_stream[SessionMessage](0)
    unrequested = 0  # bytes since the last request

    async def listen() -> None:
        nonlocal unrequested
        with suppress(*STREAM_CLOSED, ValueError):  # ValueError: a line without end
            async with heard:
                while unrequested <= MAX_UNREQUESTED_BYTES and (line := await out.readline()):
                    unrequested += len(line)
                    with suppress(ValueError):  # some servers print lines that are not messages
                        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                        await heard.send(SessionMessage(message))
        link.over.set()

    async def speak() -> None:
        nonlocal unrequested
        with suppress(OSError):  # the process no longer reads
            async with said:
                async for message in said:
                    unrequested = 0
                    into.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                    await into.drain()
            return
        link.over.set()

    async with heard, hear, say, said, anyio.create_task_group() as group:
        group.start_soon(listen)
        group.start_soon(speak)
        try:
            yield hear, say
        finally:
            group.cancel_scope.cancel()
