"""One answering bot over a real mailbox, the local workspace and a scripted model."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from agent.knowledge.index.sqlite import SqliteIndex
from agent.thread.conversation import ThreadKey
from agent.thread.store import ThreadStore
from bot.delivery.answer_key import Recheck
from bot.events.intake import Intake
from bot.gates.flow import GATES, Flow, read_body
from bot.queue.claim import OK, Cancel, Cancellation, Claimed, Ending, Lease
from bot.queue.queue import Mailbox
from bot.slack.client import SlackWorkspace
from bot.slack.message import Access, Incoming
from bot.slack.web_api import SlackCalls
from bot.stores.stores import Cancellations, Stores
from bot.turn import recovery
from bot.turn.answer import Answering
from bot.turn.job import TeamServices
from bot.turn.unasked import UnaskedAnswers
from tests.support.fakes import ScriptedModel
from tests.support.local_slack import Slack, local_slack
from tests.support.posted_answers import answers, texts
from tests.support.services import services_in, workspaces_of
from tests.support.waiting import wait_until

GOOD = "<answer>Each key may send 120 requests a minute [1].</answer>"
ASKED = "How many requests may a key send a minute?"


@dataclass(kw_only=True)
class TeamBot:
    """The parts of one workspace, and the hands to hold a message."""

    slack: Slack
    model: ScriptedModel
    services: TeamServices
    cancelled: list[Cancellation]
    redis: Redis
    resting: list[str] = field(default_factory=list)

    async def store(self, ts: str, place: ThreadKey, **more: Any) -> Incoming:
        keys = (f"msg:{place.team}:{place.channel}:{ts}",) if not more else ()
        usual = {"kind": "question", "addressed": "mention", "text": ASKED, "event_ts": ts, "user": "U0YOU"}
        fields: dict[str, Any] = {**usual, **more}
        incoming = Incoming(thread=place, ts=ts, event_ids=keys, **fields)
        await self.intake.store_or_carry_out(incoming)
        return incoming

    async def ask(self) -> tuple[ThreadKey, str]:
        """Ask in Slack, and store the question."""
        place, ts = self.slack.ask()
        await self.store(ts, place)
        return place, ts

    @property
    def flow(self) -> Flow:
        """A way without gates."""
        return Flow(Answering(self.services), UnaskedAnswers(self.services), gates=dict.fromkeys(GATES, ()))

    @property
    def stores(self) -> Stores:
        return self.services.stores

    @property
    def mailbox(self) -> Mailbox:
        return self.stores.mailbox

    @property
    def threads(self) -> ThreadStore:
        return self.stores.threads

    @property
    def cancellations(self) -> Cancellations:
        return self.stores.cancellations

    @property
    def intake(self) -> Intake:
        async def cancel(wish: Cancellation) -> None:
            self.cancelled.append(wish)

        return self.intake_with(cancel)

    def intake_with(self, cancel: Cancel) -> Intake:
        return Intake(self.stores, cancel, Access(), workspaces_of(self.slack, self.redis))

    async def claim(self) -> tuple[Claimed, Lease]:
        """A person's message; rechecks rest until ``run_rechecks``."""
        (claimed,) = await self.mailbox.claim("w", 1)
        while isinstance(read_body(claimed.body)[1], Recheck):
            self.resting.append(claimed.thread)
            await self.mailbox.finish(claimed, "give_back", after_s=600)
            (claimed,) = await self.mailbox.claim("w", 1)
        return claimed, Lease(claimed.leased_until)

    async def handle(self) -> Ending:
        claimed, lease = await self.claim()
        ending = await self.flow.handle(claimed, lease)
        assert await self.mailbox.finish(claimed, ending.verb, after_s=0, reason=ending.reason)
        return ending

    async def interrupt(self, when: Callable[[], object], *, stop: str = "") -> Ending | None:
        """Handle a message and cancel it at a moment; ``stop`` is a person's reason. None: given back."""
        claimed, lease = await self.claim()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.flow.handle(claimed, lease))
            await wait_until(when, "the moment to interrupt")
            if stop:
                incoming = Incoming.from_json(claimed.body)
                await self.cancellations.record_stop(replace(incoming, event_ts="9999999999.000000"))
                lease.stopped = stop
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        ending = None if task.cancelled() else task.result()
        await self.mailbox.finish(claimed, ending.verb if ending else "give_back")
        return ending

    def posted_texts(self, place: ThreadKey) -> list[str]:
        return texts(answers(self.slack, place))


@asynccontextmanager
async def team_bot(
    tmp_path: Path,
    redis: Redis,
    drafts: list[Any],
    *,
    pause_s: float = 0.01,
    patience_s: float = 20,
    request_s: float = 15.0,
) -> AsyncIterator[TeamBot]:
    model = ScriptedModel(drafts)
    mailbox = Mailbox(redis)
    async with local_slack() as slack:
        delivery = type(slack.delivery)(
            SlackWorkspace(
                SlackCalls(
                    slack.client,
                    patience_s=patience_s,
                    request_s=request_s,
                    first_pause_s=pause_s,
                    breaker=slack.breaker,
                ),
            ),
            mailbox=mailbox,
        )
        index = SqliteIndex.open(tmp_path / "index")
        services = services_in(slack, redis, Stores(redis, mailbox), index, model, delivery=delivery)
        yield TeamBot(slack=slack, model=model, services=services, cancelled=[], redis=redis)
        await mailbox.aclose()
        index.close()


async def lose(at: TeamBot, claimed: Claimed, lease: Lease) -> None:
    """The lease runs out, here and in Redis: the next claim takes the thread over."""
    lease.lost = True
    await at.redis.zadd(f"{at.mailbox.shard_of(claimed.thread)}:lease", {claimed.thread: 1}, xx=True)


async def run_rechecks(at: TeamBot) -> None:
    """Carry out every recheck, without its wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recovery, "RECHECK_AT_S", (0.0,))
        for thread in at.resting:
            await at.mailbox.make_due_now(thread)
        while messages := await at.mailbox.claim("w", 9):
            for claimed in messages:
                assert await at.flow.handle(claimed, Lease(claimed.leased_until)) == OK
                assert await at.mailbox.finish(claimed, "ok")
