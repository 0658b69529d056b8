"""Connections that send nothing, or too slowly, are closed and never keep work from its descriptors."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from bot.servers.connections import ConnectionLimits, max_connections
from bot.servers.http import serve


@asynccontextmanager
async def server(limits: ConnectionLimits) -> AsyncIterator[int]:
    async def page(request: web.Request) -> web.Response:
        if "slow" in request.query:
            await released.wait()
        return web.Response(text="here")

    async def release(_: web.Request) -> web.Response:
        released.set()
        return web.Response()

    released = asyncio.Event()
    application = web.Application()
    application.add_routes([web.get("/", page), web.get("/release", release)])
    async with serve(application, limits=limits) as port:
        yield port


async def closed(port: int, start: bytes, more: bytes = b"") -> bool:
    """Open a connection, send ``start``, then a byte of ``more`` now and then. Return once the server closes it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(start)
    async with asyncio.TaskGroup() as group:
        drip = group.create_task(_drip(writer, more))
        try:
            while await reader.read(4096):
                pass
        except ConnectionError:
            pass
        drip.cancel()
    writer.close()
    return True


async def _drip(writer: asyncio.StreamWriter, more: bytes) -> None:
    for byte in more * 1_000:
        writer.write(bytes([byte]))
        await asyncio.sleep(0.01)


STARTS = {
    "nothing": (b"", b""),
    "half a request line": (b"GET / HT", b""),
    "headers without an end": (b"GET / HTTP/1.1\r\nHost: x\r\n", b""),
    "a header a byte at a time": (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ", b"a"),
    "a whole request, then silence": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b""),
    "a whole request, then half a second one": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT", b""),
}


@pytest.mark.parametrize(("start", "more"), STARTS.values(), ids=STARTS)
async def test_connection_without_a_whole_request_is_closed(start: bytes, more: bytes) -> None:
    async with server(ConnectionLimits(header_s=0.2, idle_s=0.2)) as port, asyncio.timeout(5):
        assert await closed(port, start, more)


async def test_request_that_takes_longer_than_the_limits_is_answered() -> None:
    async with server(ConnectionLimits(header_s=0.1, idle_s=0.1)) as port, aiohttp.ClientSession() as client:
        async with asyncio.TaskGroup() as group:
            slow = group.create_task(_get(client, f"http://127.0.0.1:{port}/?slow"))
            assert await closed(port, b"")
            assert await _get(client, f"http://127.0.0.1:{port}/release") == ""
        assert slow.result() == "here"


async def _get(client: aiohttp.ClientSession, url: str) -> str:
    async with client.get(url) as reply:
        return await reply.text()


async def test_three_hundred_idle_connections_leave_a_request_its_place() -> None:
    async with server(ConnectionLimits(limit=100)) as port, AsyncExitStack() as stack:
        for _ in range(300):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
        client = await stack.enter_async_context(aiohttp.ClientSession())
        async with asyncio.timeout(5):
            assert await _get(client, f"http://127.0.0.1:{port}/") == "here"


def test_connections_get_half_of_the_descriptors() -> None:
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert max_connections() <= max(32, soft // 2)
