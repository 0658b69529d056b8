"""Addresses: no call follows a redirect to another server, and each server listens only where it should."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from pydantic import SecretStr

from agent.model.client import SdkClient
from agent.model.protocol import ModelError, ServerAddress
from agent.tools.builtin.web import WebSearchFailed, open_searxng
from agent.tools.mcp.config import McpServer
from agent.tools.mcp.tools import open_mcp
from bot.doctor.checks import Problem, check_langfuse
from bot.local.server import LocalWorkspace
from bot.servers.http import ProcessStatus, build, serve
from bot.settings import Settings
from bot.slack.client import open_client
from bot.slack.web_api import DeliveryFailed, SlackCalls
from tests.support.http_server import LoopServer
from tests.support.langfuse_receiver import tracer_to

SECRET = "s3cr3t-of-orion"


class Moved(LoopServer):
    """Sends every request to another server with ``status``. ``asked`` are the paths of the requests."""

    def __init__(self, status: int, to: str) -> None:
        super().__init__()
        self.status, self.to = status, to
        self.asked: list[str] = []

    def routes(self) -> list[web.RouteDef]:
        return [web.route("*", "/{path:.*}", self._move)]

    async def _move(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        return web.Response(status=self.status, headers={"Location": f"{self.to}{request.path_qs}"})


class Elsewhere(LoopServer):
    """Keeps each request that arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[str] = []

    def routes(self) -> list[web.RouteDef]:
        return [web.route("*", "/{path:.*}", self._keep)]

    async def _keep(self, request: web.Request) -> web.Response:
        self.requests.append(f"{request.method} {request.path_qs} {dict(request.headers)} {await request.text()}")
        return web.json_response({"ok": True})


async def call_slack(url: str) -> None:
    async with open_client(f"xoxb-{SECRET}", api_url=f"{url}/api/") as client:
        calls = SlackCalls(client, patience_s=0.0)
        with pytest.raises(DeliveryFailed, match="TooManyRedirects"):
            await calls.write("chat.postMessage", {"channel": "C1", "text": SECRET})
        with pytest.raises(DeliveryFailed, match="TooManyRedirects"):
            await calls.read("users.info", user=SECRET)
        with pytest.raises(DeliveryFailed, match="TooManyRedirects"):
            await calls.call_once("oauth.v2.access", {"client_secret": SECRET})


async def call_model(url: str) -> None:
    address = ServerAddress(base_url=f"{url}/v1", api_key=SECRET, headers={"X-Api-Key": SECRET})
    client = SdkClient(address, connect_s=5.0, read_s=5.0)
    async with client.sdk:
        with pytest.raises(ModelError, match="status 30"):
            await client.post({"model": "m", "messages": [{"role": "user", "content": SECRET}]})
        with pytest.raises(ModelError, match="status 30"):
            await client.post({"model": "m", "input": [SECRET]}, "/embeddings")


async def call_langfuse(url: str) -> None:
    async with tracer_to(url) as tracer:
        trace = await tracer.turn("turn-1", thread="T1:C1:1.0", user="U1", question=SECRET)
        trace.end(outcome="answered", answer=SECRET)
    settings = Settings(_env_file=None).model_copy(  # type: ignore[call-arg]  # pydantic-settings' own switch
        update={"langfuse_public_key": "pk", "langfuse_secret_key": SecretStr(SECRET), "langfuse_host": url}
    )
    assert isinstance(await check_langfuse(settings, 5.0), Problem)


async def call_mcp(url: str) -> None:
    server = McpServer(name="far", url=f"{url}/mcp", headers={"X-Api-Key": SECRET, "Authorization": SECRET})
    async with open_mcp([server], frozenset()) as tools:
        assert [*tools.by_name()] == ["far_search"]  # which only says that it is away


async def call_searxng(url: str) -> None:
    async with open_searxng(url) as tool:
        with pytest.raises(WebSearchFailed):
            await tool.search(SECRET)


CALLS: list[Callable[[str], Awaitable[Any]]] = [call_slack, call_model, call_langfuse, call_searxng, call_mcp]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("call", CALLS)
async def test_nothing_follows_a_redirect_to_another_server(call: Callable[[str], Awaitable[Any]], status: int) -> None:
    async with Elsewhere() as elsewhere, Moved(status, elsewhere.url) as moved:
        await call(moved.url)
        assert moved.asked
        assert elsewhere.requests == []


async def answers(host: str, port: int) -> bool:
    with suppress(ConnectionRefusedError):
        _, writer = await asyncio.open_connection(host, port)
        writer.close()
        return True
    return False


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
async def test_the_pages_listen_only_on_the_requested_address(host: str) -> None:
    async with serve(build(ProcessStatus()), host=host) as port:
        assert [other for other in ("127.0.0.1", "127.0.0.2") if await answers(other, port)] == [host]


async def test_the_local_workspace_listens_only_on_loopback() -> None:
    async with LocalWorkspace() as workspace:
        port = urlsplit(workspace.url).port or 0
        assert [await answers(host, port) for host in ("127.0.0.1", "127.0.0.2")] == [True, False]
