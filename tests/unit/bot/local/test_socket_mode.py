import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from bot.local.deliveries import MAX_CONNECTIONS
from bot.local.model.limits import Strictness
from bot.local.server import LocalWorkspace
from tests.support.local_echo import CHAT, HELP, MENTION, YOU, client_of

QUICK = Strictness(rates=False, ack_seconds=0.2, retry_delays=(0.0, 0.01, 0.02))


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


async def test_an_unacknowledged_envelope_is_sent_again_with_its_number_and_reason() -> None:
    async with LocalWorkspace(strictness=QUICK) as workspace, connect(workspace) as socket:
        workspace.post(YOU, CHAT, "hello")
        first = await receive(socket, ack=False)
        second = await receive(socket)
        assert (first["retry_attempt"], first["retry_reason"]) == (0, "")
        assert (second["retry_attempt"], second["retry_reason"]) == (1, "timeout")
        assert first["payload"]["event_id"] == second["payload"]["event_id"]
        assert first["envelope_id"] != second["envelope_id"]
        (delivery,) = workspace.workspace.deliveries.log
        await workspace.wait_for(lambda: delivery.acknowledged)
        assert delivery.attempts == 2


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
