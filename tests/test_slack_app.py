"""The Bolt app and its connections: H2 (proxy, one workspace), H3 (sockets that break), G1 (silent libraries)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from redis.asyncio import Redis
from slack_sdk.web.async_client import AsyncWebClient

from bot.handlers import register
from bot.http_front import serve
from bot.intake import Access
from bot.slack_app import (
    NotAuthorized,
    SocketFront,
    Workspace,
    build_app,
    library_logger,
    open_client,
    proxy_for,
)
from bot.slack_calls import DeliveryFailed, SlackCalls
from tests.local_slack import CHAT, Slack, local_slack
from tests.test_handlers import PROMPT, Ledger, office
from tests.waiting import wait_until


@asynccontextmanager
async def listening(slack: Slack, redis: Redis, ledger: Ledger) -> AsyncIterator[SocketFront]:
    ledger.gate.set()
    app = build_app(slack.client, slack.workspace)
    register(app, office(slack, ledger, redis, Access()))
    front = SocketFront(app, slack.server.app_token, ping_interval_s=0.2)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(front.run())
        yield front
        running.cancel()


async def test_h3_a_recycled_socket_is_replaced(redis_client: Redis) -> None:
    async with local_slack(strictness=PROMPT) as slack:
        ledger = Ledger()
        async with listening(slack, redis_client, ledger) as front:
            await wait_until(front.ready, "the socket is connected")
            await slack.server.workspace.sockets.disconnect()
            await wait_until(lambda: slack.server.workspace.sockets.opened >= 2, "a second socket is opened")
            await wait_until(front.ready, "the second socket is connected")
            slack.ask("how?", CHAT)
            # On a slow day the ack comes late and Slack sends again: more letters, but one message.
            await wait_until(lambda: bool(ledger.letters), "the question arrived")
        assert not await front.ready()
        assert len({letter.ts for letter in ledger.letters}) == 1


async def test_h3_a_slack_that_is_away_at_the_start_is_waited_for(redis_client: Redis) -> None:
    async with local_slack(strictness=PROMPT) as slack:
        slack.server.faults.fail("apps.connections.open", "internal_error", times=2)
        async with listening(slack, redis_client, Ledger()) as front:
            assert not await front.ready()
            await wait_until(front.ready, "the socket is connected after all")


@asynccontextmanager
async def never_says_goodbye() -> AsyncIterator[str]:
    """A Slack whose sockets open but answer nothing, not even a close."""
    ports: list[int] = []
    over = asyncio.Event()

    async def open_socket(_: web.Request) -> web.Response:
        return web.json_response({"ok": True, "url": f"ws://127.0.0.1:{ports[0]}/link"})

    async def silent(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoclose=False, autoping=False)
        await socket.prepare(request)
        await over.wait()
        return socket

    application = web.Application()
    application.router.add_post("/api/apps.connections.open", open_socket)
    application.router.add_get("/link", silent)
    async with serve(application) as port:
        ports.append(port)
        yield f"http://127.0.0.1:{port}/api/"
        over.set()


async def test_h3_a_socket_that_never_says_goodbye_does_not_hold_up_the_end() -> None:
    async with never_says_goodbye() as api_url, open_client("xoxb-1", api_url=api_url) as client:
        front = SocketFront(build_app(client, Workspace(client, SlackCalls(client))), "xapp-1")
        async with asyncio.TaskGroup() as group:
            running = group.create_task(front.run())
            await wait_until(front.ready, "the socket is connected")
            began = time.monotonic()
            running.cancel()
        assert time.monotonic() - began < 4


async def test_h2_loopback_never_goes_through_a_proxy() -> None:
    async with open_client("xoxb-1", api_url="http://127.0.0.1:1/api/") as client:
        assert client.proxy is None
    async with local_slack() as slack:
        slack.client.proxy = None
        app = build_app(slack.client, slack.workspace)
        assert (app.client.proxy, app.client.base_url) == (None, slack.server.api_url)


async def test_h2_the_hosts_proxy_and_its_exceptions_are_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "intern.example")
    assert proxy_for("https://slack.com/api/") == "http://proxy.example:3128"
    assert proxy_for("https://slack.intern.example/api/") is None
    assert proxy_for("http://127.0.0.1:8765/api/") is None
    async with open_client("xoxb-1", api_url="http://localhost:1/api/") as client:
        assert client.proxy is None


async def test_h2_orion_asks_once_who_it_is() -> None:
    async with local_slack() as slack:
        first = await slack.workspace.identity()
        assert await slack.workspace.identity() is first
        assert (first.team, first.own.user, first.own.bot) == ("T0LOCAL", "U0ORION", "B0ORION")
        assert (await slack.workspace.own()).user == "U0ORION"
        result = await slack.workspace.authorize()
        assert (result.bot_user_id, result.bot_token) == ("U0ORION", slack.server.bot_token)
        assert slack.made("auth.test") == 1


async def test_h3_a_refused_token_is_an_error_not_a_silent_ack() -> None:
    async with local_slack() as slack:
        slack.server.faults.fail("auth.test", "invalid_auth", times=2)
        with pytest.raises(NotAuthorized, match="invalid_auth"):
            await slack.workspace.authorize()
        with pytest.raises(DeliveryFailed, match="invalid_auth"):
            await slack.workspace.identity()


async def test_a3_the_client_repeats_nothing_by_itself() -> None:
    async with local_slack() as slack:
        slack.server.faults.lose_response("chat.postMessage")
        slack.server.faults.fail("chat.postMessage", "ratelimited", status=429, retry_after=1)
        assert slack.client.retry_handlers == []
        assert isinstance(slack.client, AsyncWebClient)


def test_g1_the_libraries_lines_lose_their_texts(caplog: pytest.LogCaptureFixture) -> None:
    logger = library_logger()
    assert library_logger().filters == logger.filters
    with caplog.at_level(logging.ERROR, logger=logger.name):
        logger.warning("confidential %s", "words")
        try:
            int("confidential words")
        except ValueError:
            logger.exception("confidential %s", "words")
        logger.error("confidential words")
    assert [record.getMessage() for record in caplog.records] == [
        "slack library: ValueError in test_slack_app.test_g1_the_libraries_lines_lose_their_texts",
        "slack library: error in test_slack_app.test_g1_the_libraries_lines_lose_their_texts",
    ]
    assert "confidential" not in caplog.text


async def test_g1_no_text_in_any_library_line(redis_client: Redis, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with local_slack(strictness=PROMPT) as slack:
        ledger = Ledger(closed=1)
        async with listening(slack, redis_client, ledger) as front:
            await wait_until(front.ready, "the socket is connected")
            slack.ask("confidential words", CHAT)
            await wait_until(lambda: bool(ledger.letters), "the question arrived")
    assert "confidential" not in caplog.text
    assert slack.server.bot_token not in caplog.text
    assert slack.server.app_token not in caplog.text
