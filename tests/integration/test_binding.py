"""Servers listen only on this machine unless a setting says otherwise."""

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit

from bot.local.server import LocalWorkspace
from bot.servers.http import ProcessStatus, build, serve


async def answers(host: str, port: int) -> bool:
    with suppress(ConnectionRefusedError):
        _, writer = await asyncio.open_connection(host, port)
        writer.close()
        return True
    return False


async def test_another_address_of_this_machine_is_refused() -> None:
    application = build(ProcessStatus())
    async with serve(application) as port:
        assert [await answers(host, port) for host in ("127.0.0.1", "127.0.0.2")] == [True, False]


async def test_the_pages_listen_on_another_address_on_request() -> None:
    application = build(ProcessStatus())
    async with serve(application, host="127.0.0.2") as port:
        assert [await answers(host, port) for host in ("127.0.0.1", "127.0.0.2")] == [False, True]


async def test_the_local_workspace_listens_only_on_loopback() -> None:
    async with LocalWorkspace() as workspace:
        port = urlsplit(workspace.url).port or 0
        assert [await answers(host, port) for host in ("127.0.0.1", "127.0.0.2")] == [True, False]
