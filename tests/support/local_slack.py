"""The server of Slack tests: the local workspace on a free port, and Orion's client and calls against it."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from agent.circuit_breaker import CircuitBreaker
from agent.thread.conversation import ThreadKey
from bot.delivery.delivery import Delivery
from bot.local.deliveries import MAX_CONNECTIONS
from bot.local.model.limits import LENIENT, Strictness
from bot.local.model.roster import TEAM_ID
from bot.local.server import LocalWorkspace
from bot.slack.client import SlackWorkspace, open_client
from bot.slack.history import ThreadReader
from bot.slack.web_api import SlackCalls

TODAY = date(2026, 11, 21)
CHANNEL = "C0GENERAL"
CHAT = "D0ORION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """A running workspace and Orion's side of it."""

    server: LocalWorkspace
    client: AsyncWebClient
    calls: SlackCalls
    workspace: SlackWorkspace
    delivery: Delivery
    reader: ThreadReader
    breaker: CircuitBreaker

    def ask(self, text: str = "<@U0ORION> how do we release?", channel: str = CHANNEL) -> tuple[ThreadKey, str]:
        """Posts a question; gives its place and ts."""
        ts = self.server.post("U0YOU", channel, text)
        return ThreadKey(team=TEAM_ID, channel=channel, thread_ts=ts), ts

    def count(self, method: str) -> int:
        """The number of calls of a method."""
        return sum(call.method == method for call in self.server.calls)


@asynccontextmanager
async def local_slack(
    *, patience_s: float = 20.0, strictness: Strictness = LENIENT, server: LocalWorkspace | None = None
) -> AsyncIterator[Slack]:
    """A workspace with a client whose pauses are short."""
    async with (
        server or LocalWorkspace(strictness=strictness) as started,
        open_client(started.bot_token, api_url=started.api_url) as client,
    ):
        breaker = CircuitBreaker("slack", first_pause_s=0.01, max_pause_s=0.02)
        calls = SlackCalls(client, patience_s=patience_s, first_pause_s=0.01, breaker=breaker)
        workspace = SlackWorkspace(calls)
        delivery = Delivery(workspace, today=lambda: TODAY)
        yield Slack(
            server=started,
            client=client,
            calls=calls,
            workspace=workspace,
            delivery=delivery,
            reader=delivery.reader,
            breaker=breaker,
        )


def block_text(block: dict[str, Any]) -> str:
    """The text of a section, a markdown or a rich text block; empty for any other."""
    text = block.get("text", "")
    own: str = text.get("text", "") if isinstance(text, dict) else text
    return own + "".join(map(block_text, block.get("elements", ()) if "rich_text" in block["type"] else ()))


def answer_texts(messages: Iterable[dict[str, Any]]) -> list[str]:
    """The text of each rich text block of these messages."""
    return [block_text(block) for m in messages for block in m["blocks"] if block["type"] == "rich_text"]


@asynccontextmanager
async def crowd_sockets(workspace: LocalWorkspace) -> AsyncIterator[None]:
    """All the sockets that Slack allows one app are taken by others, so that the app's own find no place."""
    sockets = workspace.workspace.sockets
    ours = list(sockets.connections)
    url = f"{workspace.url.replace('http', 'ws')}/link/?ticket="
    async with aiohttp.ClientSession() as session:
        others = [await session.ws_connect(url + sockets.new_ticket()) for _ in range(MAX_CONNECTIONS - len(ours))]
        for own in ours:
            workspace.faults.delay("apps.connections.open", 0.3)  # it comes back, when its place is taken
            await own.close()
            others.append(await session.ws_connect(url + sockets.new_ticket()))
        yield
        for other in others:
            await other.close()
