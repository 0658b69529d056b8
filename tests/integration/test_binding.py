"""Servers listen only on this machine unless a setting says otherwise."""

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from bot.local.server import LocalWorkspace
from bot.servers.http import ProcessStatus, build, serve


async def answers(host: str, port: int) -> bool:
    with suppress(ConnectionRefusedError):
        _, writer = await asyncio.open_connection(host, port)
        writer.close()
        return True
    return False


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
async def test_the_pages_listen_only_on_the_address_that_was_asked_for(host: str) -> None:
    async with serve(build(ProcessStatus()), host=host) as port:
        assert [other for other in ("127.0.0.1", "127.0.0.2") if await answers(other, port)] == [host]


async def test_the_local_workspace_listens_only_on_loopback() -> None:
    async with LocalWorkspace() as workspace:
        port = urlsplit(workspace.url).port or 0
        assert [await answers(host, port) for host in ("127.0.0.1", "127.0.0.2")] == [True, False]
