"""The composition root: settings become clients, clients become Orion; everything closes in reverse order.

Promises: nothing is a module global, each part is made once and handed to whoever needs it. Must never hold logic of
its own beyond putting parts together.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from redis.asyncio import Redis
from redis.exceptions import RedisError
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from agent.thread_store import ThreadStore
from bot.admission import Admission, Gates
from bot.answering import Answering
from bot.budgets import Budgets, Limits
from bot.clicks import Feedback
from bot.delivery import Delivery
from bot.engine import Corpus, Engine, open_engine
from bot.handing_off import HandingOff, Helpers, offers_human
from bot.handlers import Office, register
from bot.intake import Access
from bot.mailbox import Mailbox
from bot.newer_versions import NewerVersions
from bot.oauth import InstallPages
from bot.observing import Observers, open_observers
from bot.open_redis import open_redis
from bot.open_slack import open_slack
from bot.pausing import Pausing
from bot.people import People
from bot.queueing import Queueing
from bot.recalling import Recalling
from bot.reception import Reception
from bot.settings import Settings
from bot.slack_app import SocketFront, Workspace, build_app
from bot.slack_calls import SlackCalls
from bot.standing import Standings
from bot.turn_record import TurnRecords
from bot.turns import DRAIN_S, Turns
from bot.views import Collection, HomeFigures
from bot.withdrawals import Withdrawals
from bot.wording import SUGGESTED_PROMPTS
from bot.workspaces import DeliveryOf, Desk, Reading, delivery_of, heed_uninstalling

PATIENCE_S = 2.0
"""How long a page waits for Redis."""
SHOWN_DAYS = 14
"""Days that the App Home's figures cover."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orion:
    """One running Orion, whatever its mode."""

    redis: Redis
    engine: Engine
    mailbox: Mailbox
    turns: Turns
    observers: Observers
    records: TurnRecords
    app: AsyncApp
    socket: SocketFront | None
    installing: InstallPages | None = None

    async def metrics(self) -> bytes:
        """The page for Prometheus; the queue's depth is asked for when the page is."""
        metrics = self.observers.metrics
        try:
            async with asyncio.timeout(PATIENCE_S):
                depth = await self.mailbox.depth()
        except (RedisError, TimeoutError):
            metrics.queue(messages=math.nan, dead=math.nan)
        else:
            metrics.queue(messages=depth.messages, dead=depth.dead)
        return metrics.render()[0]

    async def checks(self) -> dict[str, bool]:
        """What must be up before questions can be answered."""
        checks = {"redis": await _answers(self.redis)}
        if self.socket is not None:
            checks["slack_socket"] = await self.socket.ready()
        return checks


async def _answers(redis: Redis) -> bool:
    try:
        async with asyncio.timeout(PATIENCE_S):
            return bool(await redis.ping())
    except (RedisError, TimeoutError):
        return False


@asynccontextmanager
async def open_orion(  # noqa: PLR0913 - the composition root's choices
    settings: Settings,
    corpus: Corpus,
    *,
    concurrency: int,
    socket: bool,
    prompts: Sequence[Mapping[str, str]] = SUGGESTED_PROMPTS,
    prefix: str = "orion",
    drain_s: float = DRAIN_S,
    mailbox_over: Callable[..., Mailbox] = Mailbox,
) -> AsyncIterator[Orion]:
    """Everything, opened. Raises ``WrongUse`` and ``EmbeddedRedisError`` with what to do.

    ``prefix`` keeps the questions and threads of one workspace apart from another's in the same Redis.
    ``drain_s`` is how long running turns may go on once Orion was asked to end. ``mailbox_over`` makes the mailbox of a
    Redis and a ``prefix`` (another length of leases, say).
    """
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(open_redis(settings))
        engine = await stack.enter_async_context(open_engine(settings, corpus))
        observers = await stack.enter_async_context(open_observers(settings, redis, prefix=prefix))
        mailbox = mailbox_over(redis, prefix=prefix, per_team=settings.turns_per_workspace)
        stack.push_async_callback(mailbox.aclose)
        gates = _gates(settings, redis, mailbox, prefix=prefix)
        observers.tokens_used = gates.budgets.used

        def open_desk(client: AsyncWebClient) -> Desk:
            calls = SlackCalls(client, on_trouble=observers.slack_trouble)
            workspace = Workspace(client, calls)
            delivery = Delivery(calls, workspace.own, prompts=prompts)
            answering = Answering(
                engine,
                delivery,
                mailbox=mailbox,
                threads=gates.threads,
                withdrawals=gates.withdrawals,
                observers=observers,
                offers_human=partial(offers_human, settings.handoff),
            )
            people = People(calls, redis, prefix=prefix)
            handing_off = HandingOff(
                answering.handle,
                answering.tell_dead,
                helpers=Helpers(handoff=settings.handoff, calls=calls, workspace=workspace, delivery=delivery),
                mailbox=mailbox,
                records=observers.records,
                redis=redis,
            )
            admission = Admission(
                handing_off.handle, handing_off.tell_dead, gates=gates, people=people, delivery=delivery
            )
            recalling = Recalling(
                admission.handle, admission.tell_dead, standings=gates.standings, reader=delivery.reader
            )
            return Desk(workspace=workspace, delivery=delivery, handle=recalling.handle, tell_dead=recalling.tell_dead)

        slack = await stack.enter_async_context(open_slack(settings, redis, open_desk, prefix=prefix))
        reading, delivery = Reading(slack.workspaces), delivery_of(slack.workspaces)
        turns = Turns(
            mailbox,
            NewerVersions(reading.handle, gates.threads).handle,
            on_dead=reading.tell_dead,
            concurrency=max(1, concurrency),
            drain_s=drain_s,
            sweep=Queueing(mailbox, delivery).sweep,
        )
        app = build_app(slack.client, slack.workspaces)
        if slack.installations is not None:
            heed_uninstalling(app, slack.installations)
        reception = Reception(mailbox, gates.withdrawals, turns.cancel)
        office = _office(settings, engine, observers, standings=gates.standings, delivery=delivery, reception=reception)
        register(app, office)
        app_token = settings.slack_app_token.get_secret_value()
        yield Orion(
            redis=redis,
            engine=engine,
            mailbox=mailbox,
            turns=turns,
            observers=observers,
            records=observers.records,
            app=app,
            socket=SocketFront(app, app_token) if socket else None,
            installing=slack.installing,
        )


def _office(  # noqa: PLR0913 - the composition root sees every part once
    settings: Settings,
    engine: Engine,
    observers: Observers,
    *,
    standings: Standings,
    delivery: DeliveryOf,
    reception: Reception,
) -> Office:
    async def feedback(found: Feedback) -> None:
        await observers.feedback(found.turn_id, found.user, good=found.good)

    async def figures() -> HomeFigures:
        return await home_figures(engine, observers)

    return Office(
        access=_access(settings),
        standings=standings,
        store=reception.receive,
        feedback=feedback,
        record=observers.records.load,
        figures=figures,
        delivery_of=delivery,
        count=observers.slack_event,
    )


def _gates(settings: Settings, redis: Redis, mailbox: Mailbox, *, prefix: str) -> Gates:
    """Who may ask, when and how much; and what stays known of each thread."""
    return Gates(
        access=_access(settings),
        pausing=Pausing(redis, prefix=prefix),
        budgets=Budgets(redis, _limits(settings), prefix=prefix),
        mailbox=mailbox,
        standings=Standings(redis, prefix=prefix),
        threads=ThreadStore(redis, prefix=prefix),
        withdrawals=Withdrawals(redis, prefix=prefix),
    )


def _access(settings: Settings) -> Access:
    return Access(
        allow_users=settings.allow_users,
        deny_users=settings.deny_users,
        allow_channels=settings.allow_channels,
        deny_channels=settings.deny_channels,
        allow_bots=settings.allow_bots,
        allow_external=settings.allow_external,
        allow_guests=settings.allow_guests,
    )


def _limits(settings: Settings) -> Limits:
    return Limits(
        user=settings.daily_tokens_user,
        channel=settings.daily_tokens_channel,
        workspace=settings.daily_tokens_workspace,
        admins=settings.admins,
    )


async def home_figures(engine: Engine, observers: Observers) -> HomeFigures:
    """What App Home shows: what Orion knows, and how well it does."""
    documents = await asyncio.to_thread(engine.index.documents)
    counted = await observers.stats.read(SHOWN_DAYS)
    newest = max((document.updated_at for document in documents), default="")
    return HomeFigures(
        collections=(Collection(name="Documents", documents=len(documents), size=0),) if documents else (),
        last_sync=newest,
        pass_rate=counted.pass_rate,
        answered=counted.answered,
        partial=counted.partial,
        failed=counted.failed,
        refused=counted.refused,
        days=SHOWN_DAYS,
    )
