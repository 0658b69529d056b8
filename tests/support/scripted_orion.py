"""A running Orion whose model server says what a script holds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agent.model.chat_server import Timeouts
from bot.settings import Settings
from bot.turn.engine import TurnTimeouts
from tests.support.openai_server import RESPOND, Script, ScriptedOpenAI, says
from tests.support.orion_running import CHANNEL, MENTION, Setting, running, settings_in

CALLS = Timeouts(connect=0.3, reply=1.0, idle=0.5, retries=1, pause=0.01)
QUICK = TurnTimeouts(
    model=CALLS, pause_least_s=0.05, pause_most_s=0.1, call_s=5.0, request_s=1.0, first_pause_s=0.01, rest_s=0.05,
    socket_pause_s=0.05,
)  # fmt: skip
LIMIT = "How many requests per minute may an API key make?"


def with_server(home: Path, redis_url: str, server: ScriptedOpenAI) -> Settings:
    return settings_in(home, redis_url, **server.settings)


DRAFTS = {
    "good": "<thinking>It is [1].</thinking><answer>Each API key may make 600 requests a minute [1].</answer>",
    "wrong": "<answer>Each API key may make 900 requests a minute [1].</answer>",
    "form": "<answer>**Limit** [1]\n\n| what | how many |\n|---|---|\n| requests a minute | 600 [1] |</answer>",
}


@asynccontextmanager
async def with_model(
    home: Path,
    redis_url: str,
    *,
    decisions: Script = lambda _: RESPOND,
    drafts: Script = lambda _: says(DRAFTS["good"]),
    **how: Any,
) -> AsyncIterator[tuple[Setting, ScriptedOpenAI]]:
    """A running Orion and its model's server; without scripts it always writes the good answer."""
    async with (
        ScriptedOpenAI(decisions=decisions, drafts=drafts) as server,
        running(with_server(home, redis_url, server), **how) as setting,
    ):
        yield setting, server


@asynccontextmanager
async def writing(
    home: Path, redis_url: str, channel: str = CHANNEL
) -> AsyncIterator[tuple[Setting, str, asyncio.Event]]:
    """A turn whose model goes on until the event is set, and the ts of its question."""
    gate = asyncio.Event()
    drafts = [says(DRAFTS["good"], before_end=gate)]
    async with with_model(home, redis_url, drafts=drafts) as (setting, server):
        ts = setting.ask(f"{MENTION} {LIMIT}", channel=channel)
        await server.wait_for_requests(2)
        yield setting, ts, gate
        gate.set()


async def quiet(setting: Setting) -> bool:
    """Return True if no message is stored or being handled."""
    return setting.orion.worker.in_flight == 0 and (await setting.orion.mailbox.depth()).messages == 0


async def done(*settings: Setting) -> bool:
    """Return True if every event was accepted, and nothing waits or runs."""
    events = settings[0].workspace.workspace.deliveries.log
    return all(event.acknowledged for event in events) and all([await quiet(setting) for setting in settings])
