"""The gates before an answerer that notes what came through, over a local workspace and a real Redis."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from redis.asyncio import Redis

from agent.knowledge.index.sqlite import SqliteIndex
from bot.gates.flow import Flow
from bot.local.model.roster import VISITOR
from bot.queue.claim import OK, Claimed, Ending, Lease
from bot.queue.queue import Mailbox
from bot.slack.directory import SlackDirectory
from bot.slack.message import Access, Incoming
from bot.stores.limits import Budgets, Limits
from bot.stores.stores import Stores
from bot.turn.answer import Answering
from bot.turn.job import Job, TeamServices
from bot.turn.unasked import UnaskedAnswers
from tests.support.local_slack import Slack, local_slack
from tests.support.openai_server import calls
from tests.support.services import services_in


@dataclass(slots=True, eq=False)
class Answerer(Answering):
    """Remembers what it should answer."""

    through: list[Job] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)

    async def answer(self, job: Job) -> Ending:
        self.through.append(job)
        return OK

    async def notify_given_up(self, _: Job, reason: str) -> None:
        self.dead.append(reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateScene:
    """``through`` has the messages that passed, ``dead`` those whose authors were told that they were given up."""

    slack: Slack
    mailbox: Mailbox
    services: TeamServices
    flow: Flow
    people: SlackDirectory
    answerer: Answerer

    @property
    def through(self) -> list[Job]:
        return self.answerer.through

    @property
    def dead(self) -> list[str]:
        return self.answerer.dead

    @property
    def budgets(self) -> Budgets:
        return self.services.stores.budgets

    async def store(self, **more: Any) -> tuple[Claimed, Lease]:
        place, ts = self.slack.ask()
        fields: dict[str, Any] = {"kind": "question", "addressed": "mention", "text": "How?", "user": VISITOR, **more}
        incoming = Incoming(**{"thread": place, "ts": ts, **fields})
        return await self.store_body(str(incoming.thread), incoming.to_json())

    async def store_body(self, thread: str, body: str) -> tuple[Claimed, Lease]:
        """Any body, stored and claimed."""
        await self.mailbox.enqueue(thread, body, event_ids=[body])
        (claimed,) = await self.mailbox.claim("w", 1)
        return claimed, Lease(claimed.leased_until)

    async def knock(self, **more: Any) -> Ending:
        return await self.flow.handle(*await self.store(**more))


@asynccontextmanager
async def gates(redis: Redis, access: Access | None = None, limits: Limits | None = None) -> AsyncIterator[GateScene]:
    with TemporaryDirectory() as folder:
        async with local_slack(patience_s=0.05) as slack:
            mailbox, index = Mailbox(redis), SqliteIndex(Path(folder) / "index")
            stores = Stores(redis, mailbox, limits)
            services = services_in(slack, redis, stores, index, access=access or Access())
            answerer = Answerer(services)
            flow = Flow(answerer, UnaskedAnswers(services))
            yield GateScene(
                slack=slack, mailbox=mailbox, services=services, flow=flow, people=services.people, answerer=answerer
            )
            await mailbox.aclose()


ASKS = calls(("ask_user", {"question": "For which plan?", "key": "plan"}))
