"""Events on their way to an app, by signed HTTP and by Socket Mode."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_sdk.signature import SignatureVerifier

from bot.local.deliveries import MAX_CONNECTIONS, NotAcknowledged
from bot.local.model.limits import Strictness
from bot.local.server import LocalWorkspace
from tests.support.http_server import LoopServer
from tests.support.local_echo import CHAT, HELP, MENTION, YOU, client_of

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
QUICK = Strictness(rates=False, ack_seconds=0.2, retry_delays=(0.0, 0.01, 0.02))


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


async def test_a_mention_comes_as_two_events_with_one_ts() -> None:
    workspace = LocalWorkspace()
    ts = workspace.post(YOU, HELP, f"{MENTION} hello")
    mention, message = workspace.workspace.deliveries.log
    assert mention.event_id != message.event_id
    assert mention.event["ts"] == message.event["ts"] == ts
    assert mention.event["client_msg_id"] == message.event["client_msg_id"]
    assert "channel_type" not in mention.event
    assert message.event["channel_type"] == "channel"


@asynccontextmanager
async def connect(workspace: LocalWorkspace) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """A raw connection of our own, past its hello."""
    answer = await client_of(workspace, workspace.app_token).apps_connections_open(app_token=workspace.app_token)
    async with aiohttp.ClientSession() as session, session.ws_connect(answer["url"], autoping=False) as socket:
        hello = await socket.receive_json()
        assert hello["type"] == "hello"
        assert hello["connection_info"] == {"app_id": "A0ORION"}
        yield socket


async def receive(socket: aiohttp.ClientWebSocketResponse, *, ack: bool = True) -> dict[str, Any]:
    envelope: dict[str, Any] = await socket.receive_json()
    if ack:
        await socket.send_json({"envelope_id": envelope["envelope_id"]})
    return envelope


async def test_slack_gives_up_after_three_retries() -> None:
    async with LocalWorkspace(strictness=QUICK) as workspace:
        workspace.post(YOU, CHAT, "nobody listens")
        (delivery,) = workspace.workspace.deliveries.log
        await workspace.wait_for(lambda: delivery.given_up)
        assert delivery.reasons == ["connection_failed"] * 4


async def test_each_event_goes_to_one_connection() -> None:
    async with LocalWorkspace() as workspace, connect(workspace) as one, connect(workspace) as other:
        for text in ("a", "b"):
            workspace.post(YOU, CHAT, text)
        texts = {(await receive(socket))["payload"]["event"]["text"] for socket in (one, other)}
        assert texts == {"a", "b"}


async def test_an_envelope_of_a_closed_connection_goes_to_another_one() -> None:
    async with LocalWorkspace(strictness=QUICK) as workspace, connect(workspace) as socket:
        workspace.post(YOU, CHAT, "hello")
        await receive(socket, ack=False)
        async with connect(workspace) as other:
            await socket.close()
            again = await receive(other)
            assert again["retry_reason"] == "connection_failed"


async def test_the_envelope_has_what_slack_adds_to_an_event() -> None:
    async with LocalWorkspace() as workspace, connect(workspace) as socket:
        workspace.post(YOU, HELP, f"{MENTION} hello")
        payload = (await receive(socket))["payload"]
        assert payload["type"] == "event_callback"
        who = {"team_id": "T0LOCAL", "user_id": "U0ORION", "is_bot": True}
        assert payload["authorizations"] == [{"enterprise_id": None, "is_enterprise_install": False, **who}]
        assert payload["is_ext_shared_channel"] is False
        assert {"team_id", "api_app_id", "event_id", "event_time"} <= payload.keys()
        assert payload["event"]["blocks"][0]["elements"][0]["elements"] == [
            {"type": "user", "user_id": "U0ORION"},
            {"type": "text", "text": " hello"},
        ]
        await receive(socket)


async def test_nonsense_from_the_app_is_ignored() -> None:
    async with LocalWorkspace() as workspace, connect(workspace) as socket:
        for text in ("no json", "[]", json.dumps({"envelope_id": "unknown"})):
            await socket.send_str(text)
        workspace.post(YOU, CHAT, "hello")
        await receive(socket)
        (delivery,) = workspace.workspace.deliveries.log
        await workspace.wait_for(lambda: delivery.acknowledged)


async def test_a_ticket_opens_one_connection_and_an_eleventh_is_sent_away() -> None:
    async with LocalWorkspace() as workspace, aiohttp.ClientSession() as session:
        client = client_of(workspace, workspace.app_token)
        urls = [
            (await client.apps_connections_open(app_token=workspace.app_token))["url"]
            for _ in range(MAX_CONNECTIONS + 1)
        ]
        sockets = [await session.ws_connect(url) for url in urls]
        first = [(await socket.receive_json())["type"] for socket in sockets]
        assert first == ["hello"] * MAX_CONNECTIONS + ["disconnect"]
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(urls[0])
