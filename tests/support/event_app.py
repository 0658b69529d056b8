"""The app behind Slack's events, with a ledger of what it stored."""

import asyncio
import hashlib
import hmac
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from slack_bolt.async_app import AsyncApp

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.index.sqlite import SqliteIndex
from agent.knowledge.types import Document
from bot.channel_settings import ChannelFile
from bot.delivery.home import HomeFigures
from bot.events.clicks import ListenerServices
from bot.local.model.limits import Strictness
from bot.local.model.roster import TEAM_ID
from bot.servers.http import ProcessStatus, SlackEndpoint, build, serve
from bot.slack.manifest import EVENTS_PATH
from bot.slack.message import Access, Incoming
from bot.stores.limits import Listening
from bot.stores.stores import ThreadModes
from bot.stores.turn_records import TurnRecords
from tests.support.local_slack import Slack
from tests.support.services import workspaces_of

PROMPT = Strictness(rates=False, ack_seconds=1.5, retry_delays=(0.02, 0.02, 0.02))


@dataclass(slots=True)
class Ledger:
    """A record of all that the listeners store. ``closed`` refuses the first messages, ``gate`` delays them."""

    closed: int = 0
    tries: int = 0
    messages: list[Incoming] = field(default_factory=list)
    judged: list[tuple[str, str, bool]] = field(default_factory=list)
    complaints: list[tuple[str, str, tuple[str, ...], str]] = field(default_factory=list)
    fates: list[str] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    raises: Exception = field(default_factory=ConnectionError)
    known: set[str] = field(default_factory=set)
    redis: Redis | None = None

    async def store_or_carry_out(self, incoming: Incoming) -> bool:
        self.tries += 1
        await self.gate.wait()
        if self.closed:
            self.closed -= 1
            raise self.raises
        if new := self.known.isdisjoint(incoming.event_ids):
            self.messages.append(incoming)
        self.known.update(incoming.event_ids)
        if self.redis is not None:
            async with self.redis.pipeline() as pipe:
                ThreadModes(self.redis).record_message(pipe, incoming, new=new)
                await pipe.execute()
        return new

    async def feedback(self, turn_id: str, user: str, *, good: bool) -> None:
        self.judged.append((turn_id, user, good))

    async def correct(self, turn_id: str, answer: str = "") -> None:
        """Nothing is saved here."""

    async def complaint(self, turn_id: str, user: str, *, reasons: Sequence[str], said: str) -> None:
        self.complaints.append((turn_id, user, tuple(reasons), said))

    def slack_event(self, fate: str) -> None:
        self.fates.append(fate)


class FixedHome:
    async def figures(self, team: str, user: str, language: str | None) -> HomeFigures:
        assert team == TEAM_ID, (user, language)
        return HomeFigures(documents=(Document(id="handbook", title="handbook"),), total=15, questions=("How many?",))


def services(
    slack: Slack,
    ledger: Ledger,
    redis: Redis,
    access: Access,
    *,
    tasks: asyncio.TaskGroup,
    index: KnowledgeIndex | None = None,
) -> ListenerServices:
    fakes: dict[str, Any] = {"intake": ledger, "observers": ledger, "home": FixedHome()}
    return ListenerServices(
        access=access,
        tasks=tasks,
        thread_modes=ThreadModes(redis),
        channels=ChannelFile(Path("absent")),
        listening=Listening(redis),
        records=TurnRecords(redis),
        index=index or SqliteIndex(Path("absent")),
        workspaces=workspaces_of(slack, redis),
        **fakes,
    )


@asynccontextmanager
async def over_http(slack: Slack, app: AsyncApp) -> AsyncIterator[None]:
    async with serve(
        build(ProcessStatus(), SlackEndpoint(app=app, signing_secret=slack.server.signing_secret))
    ) as port:
        slack.server.http.url = f"http://127.0.0.1:{port}{EVENTS_PATH}"
        yield


SECRET = "8f742231b10e8888abcd99yyyzzz85a5"


def headers(body: bytes, *, stamp: str | None = None, secret: str = SECRET) -> dict[str, str]:
    when = stamp if stamp is not None else str(int(time.time()))
    digest = hmac.new(secret.encode(), b"v0:" + when.encode() + b":" + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": when, "X-Slack-Signature": f"v0={digest}", "Content-Type": "application/json"}
