"""`python -m bot.local` as a test server for a Slack app that is not Orion (docs/local-workspace.md)."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from tests.support.waiting import wait_until


@asynccontextmanager
async def a_server() -> AsyncIterator[dict[str, str]]:
    """What the server printed: the page's address, and what an app needs."""
    server = await asyncio.create_subprocess_exec(sys.executable, "-m", "bot.local", "--port", "0", stdout=PIPE)
    try:
        yield dict([await _line(server) for _ in range(5)])
    finally:
        server.terminate()
        await server.wait()


async def _line(server: Process) -> tuple[str, str]:
    assert server.stdout is not None
    name, _, value = (await server.stdout.readline()).decode().strip().partition("=")
    return name, value


async def test_another_bolt_app_works_against_it() -> None:
    async with a_server() as printed, aiohttp.ClientSession() as person:
        client = AsyncWebClient(token=printed["SLACK_BOT_TOKEN"], base_url=printed["SLACK_API_URL"])
        app = AsyncApp(client=client)

        @app.event("app_mention")
        async def echo(event: dict[str, Any], say: Any) -> None:
            await client.reactions_add(channel=event["channel"], timestamp=event["ts"], name="eyes")
            await say(f"You wrote: {event['text']}", thread_ts=event["ts"])
            names = {one["id"]: one["name"] for one in (await client.users_list())["members"]}
            chat = await client.conversations_open(users=event["user"])
            await say(f"Hello {names[event['user']]}", channel=chat["channel"]["id"])

        handler = AsyncSocketModeHandler(app, printed["SLACK_APP_TOKEN"])
        await handler.connect_async()  # type: ignore[no-untyped-call]  # the SDK does not type it
        try:
            url = printed["page"]
            async with person.post(f"{url}/ui/post", json={"channel": "C0HELP", "text": "@Orion hello"}) as posted:
                ts = (await posted.json())["ts"]

            async def answered() -> bool:
                async with person.get(f"{url}/ui/messages?channel=D0ORION") as shown:
                    return "Hello you" in [one["text"] for one in (await shown.json())["messages"]]

            await wait_until(answered, "the app answers")
            async with person.get(f"{url}/ui/messages?channel=C0HELP&thread_ts={ts}") as shown:
                asked, answer = (await shown.json())["messages"]
            assert (asked["reactions"][0]["name"], answer["text"]) == ("eyes", "You wrote: <@U0ORION> hello")
        finally:
            await handler.close_async()  # type: ignore[no-untyped-call]  # likewise
