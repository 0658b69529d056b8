import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from slack_sdk.signature import SignatureVerifier

from bot.local.deliveries import NotAcknowledged
from bot.local.model.limits import Strictness
from bot.local.server import LocalWorkspace
from tests.support.http_server import LoopServer
from tests.support.local_echo import CHAT, YOU

QUICK = Strictness(rates=False, ack_seconds=0.3, retry_delays=(0.0, 0.01, 0.02))
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Receiver(LoopServer):
    """An app's address for events."""

    path = "/slack/events"

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer

    def routes(self) -> list[web.RouteDef]:
        return [web.post(self.path, self.answer)]


async def test_every_request_is_signed_and_retries_say_so() -> None:
    seen: list[tuple[bytes, dict[str, str]]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((await request.read(), dict(request.headers)))
        return web.Response(status=500 if len(seen) < 3 else 200)

    async with LocalWorkspace(strictness=QUICK) as workspace, Receiver(answer) as app:
        workspace.http.url = app.url
        workspace.post(YOU, CHAT, "hello")
        (delivery,) = workspace.workspace.deliveries.log
        await workspace.wait_for(lambda: delivery.acknowledged)
        assert len({body for body, _ in seen}) == 1
        for body, headers in seen:
            assert SignatureVerifier(workspace.signing_secret).is_valid_request(body, headers)
        numbers = [(h.get("X-Slack-Retry-Num"), h.get("X-Slack-Retry-Reason")) for _, h in seen]
        assert numbers == [(None, None), ("1", "http_error"), ("2", "http_error")]


async def test_redirects_time_outs_and_closed_ports_are_explained() -> None:
    async def away(request: web.Request) -> web.Response:
        raise web.HTTPFound(location="/elsewhere")

    async def never(request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    reasons: list[str] = []
    async with LocalWorkspace(strictness=QUICK) as workspace:
        for answer, limit_s in ((away, 20.0), (never, 0.2)):
            async with Receiver(answer) as app:
                workspace.http.url = app.url
                with pytest.raises(NotAcknowledged) as caught:
                    await workspace.workspace.http.send("events_api", {}, 0, "", limit_s)
                reasons.append(caught.value.reason)
        with pytest.raises(NotAcknowledged) as caught:
            await workspace.workspace.http.send("events_api", {}, 0, "", 0.2)
        reasons.append(caught.value.reason)
    assert reasons == ["http_error", "http_timeout", "connection_failed"]


async def test_an_unanswered_click_is_not_repeated() -> None:
    seen: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(dict(await request.post()))
        return web.Response(status=503)

    async with LocalWorkspace(strictness=QUICK) as workspace, Receiver(answer) as app:
        workspace.http.url = app.url
        with pytest.raises(NotAcknowledged):
            await workspace.workspace.deliveries.interaction({"type": "block_actions"})
        assert seen == [{"payload": '{"type": "block_actions"}'}]
