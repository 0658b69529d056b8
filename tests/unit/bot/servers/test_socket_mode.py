"""The socket to Slack: replaced when it breaks, asked for at a pace, ready only once Slack greeted."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from redis.asyncio import Redis
from structlog.testing import capture_logs

from bot.events.listeners import register
from bot.servers.http import serve
from bot.servers.socket_mode import SocketMode
from bot.slack.client import SlackWorkspace, build_app, open_client
from bot.slack.message import Access
from bot.slack.web_api import SlackCalls
from tests.support.event_app import PROMPT, Ledger, services
from tests.support.local_slack import CHAT, Slack, crowd_sockets, local_slack
from tests.support.waiting import wait_until


@asynccontextmanager
async def listening(slack: Slack, redis: Redis, ledger: Ledger) -> AsyncIterator[SocketMode]:
    ledger.gate.set()
    app = build_app(slack.client, slack.workspace.authorize)
    front = SocketMode(app, slack.server.app_token, ping_interval_s=0.2, first_pause_s=0.05)
    async with asyncio.TaskGroup() as group:
        register(app, services(slack, ledger, redis, Access(), tasks=group))
        running = group.create_task(front.run())
        yield front
        running.cancel()


async def test_a_socket_on_this_machine_is_opened_without_the_hosts_proxy(
    redis_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with local_slack(strictness=PROMPT) as slack, listening(slack, redis_client, Ledger()) as front:
        await wait_until(front.ready, "the socket is connected")


@asynccontextmanager
async def never_says_goodbye() -> AsyncIterator[str]:
    """A Slack whose first socket cannot be opened; the next ones greet and then answer nothing, not even a close."""
    ports = [9]
    over = asyncio.Event()

    async def open_socket(_: web.Request) -> web.Response:
        return web.json_response({"ok": True, "url": f"ws://127.0.0.1:{ports.pop(0) if ports[1:] else ports[0]}/link"})

    async def silent(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoclose=False, autoping=False)
        await socket.prepare(request)
        await socket.send_json({"type": "hello"})
        await over.wait()
        return socket

    application = web.Application()
    application.router.add_post("/api/apps.connections.open", open_socket)
    application.router.add_get("/link", silent)
    async with serve(application) as port:
        ports.append(port)
        yield f"http://127.0.0.1:{port}/api/"
        over.set()


async def test_an_unclosed_socket_does_not_delay_the_shutdown() -> None:
    async with never_says_goodbye() as api_url, open_client("xoxb-1", api_url=api_url) as client:
        front = SocketMode(build_app(client, SlackWorkspace(SlackCalls(client)).authorize), "xapp-1", 0.2, 0.05)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(front.run())
            await wait_until(front.ready, "the socket is connected")
            began = time.monotonic()
            running.cancel()
        assert time.monotonic() - began < 8


def sockets_asked_for(slack: Slack) -> int:
    return slack.count("apps.connections.open")


async def test_without_a_free_socket_slack_is_asked_less_and_less_often(redis_client: Redis) -> None:
    async with local_slack(strictness=PROMPT) as slack:
        with capture_logs() as logs:
            async with listening(slack, redis_client, Ledger()) as front:
                await wait_until(front.ready, "the socket is connected")
                async with crowd_sockets(slack.server):
                    before = sockets_asked_for(slack)
                    await wait_until(lambda: sockets_asked_for(slack) >= before + 4, "it asks again and again")
                    assert not await front.ready()
                await wait_until(front.ready, "there is a place again")
        waits = [line["wait_s"] for line in logs if line["event"] == "slack_socket_waits"]
        assert waits[:4] == [0.05, 0.1, 0.2, 0.4], "longer each time, until Slack greets"
        assert "too_many_websockets" in [line["reason"] for line in logs if line["event"] == "slack_socket_dropped"]


async def test_orion_waits_for_a_slack_that_refuses_the_first_socket_and_reports_it(redis_client: Redis) -> None:
    async with local_slack(strictness=PROMPT) as slack:
        slack.server.faults.fail("apps.connections.open", "invalid_auth", times=2)
        with capture_logs() as logs:
            async with listening(slack, redis_client, Ledger()) as front:
                assert not await front.ready()
                await wait_until(front.ready, "the socket is connected after all")
        told, _ = [line for line in logs if line["event"] == "slack_socket_refused"]
        assert (told["reason"], "SLACK_APP_TOKEN" in told["remedy"]) == ("invalid_auth", True)


async def test_waiting_for_a_socket_does_not_delay_the_shutdown(redis_client: Redis) -> None:
    async with local_slack(strictness=PROMPT) as slack:
        slack.server.faults.fail("apps.connections.open", "internal_error", times=99)
        front = SocketMode(
            build_app(slack.client, slack.workspace.authorize), "xapp-1", ping_interval_s=0.05, first_pause_s=60
        )
        async with asyncio.TaskGroup() as group:
            running = group.create_task(front.run())
            with capture_logs() as logs:
                await wait_until(lambda: bool(logs), "it waits")
            began = time.monotonic()
            running.cancel()
        assert time.monotonic() - began < 8


async def test_no_library_log_line_has_a_text(redis_client: Redis, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with local_slack(strictness=PROMPT) as slack:
        ledger = Ledger(closed=1)
        async with listening(slack, redis_client, ledger) as front:
            await wait_until(front.ready, "the socket is connected")
            slack.ask("confidential words", CHAT)
            await wait_until(lambda: bool(ledger.messages), "the question arrived")
    assert "confidential" not in caplog.text
    assert slack.server.bot_token not in caplog.text
    assert slack.server.app_token not in caplog.text
