"""Composition root: opens clients from the settings, and Orion from the clients. All close in reverse order."""

import asyncio
import math
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import stamina
import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from agent.circuit_breaker import CircuitBreaker
from agent.knowledge.readers.process import ATTACHMENT_LIMITS, DocumentReader
from agent.knowledge.sources.answers import AnswerFolder
from agent.knowledge.types import KnowledgeAwayError
from agent.tasks import background_tasks
from agent.texts.catalogue import SUGGESTED_PROMPTS
from bot.answers import AnswerBook, Proposals, SavedAnswers
from bot.channel_settings import ChannelFile
from bot.delivery.delivery import Delivery
from bot.delivery.stream import Streams
from bot.documents.corpus import Corpus, available_figures, sync_now
from bot.documents.open import keep_vectors_current
from bot.documents.sync import Syncing
from bot.errors import WrongUse
from bot.events.catch_up import CatchUp
from bot.events.clicks import ListenerServices
from bot.events.home import HomePage
from bot.events.intake import Intake
from bot.events.listeners import register
from bot.gates.flow import Flow
from bot.install.identity import DEFAULT_PREFIX, Identity, join_redis
from bot.install.installations import InstallPages
from bot.install.workspaces import TeamBot, Workspaces, open_slack
from bot.queue.claim import Cancel
from bot.queue.queue import Mailbox
from bot.queue.worker import DRAIN_S, Worker
from bot.redis.client import plain_cause
from bot.redis.server import EVICTS_REMEDY, MIN_FREE_BYTES, eviction_policy, missing_command, open_redis
from bot.reports.weekly import WeeklyReports
from bot.servers.http import ProcessStatus
from bot.servers.socket_mode import SocketMode
from bot.settings import Settings
from bot.slack.client import SlackWorkspace, TokenCheck, build_app
from bot.slack.directory import Memberships, SlackDirectory
from bot.slack.files import Attachments
from bot.slack.hand_off_place import HandOffPlace
from bot.slack.message import Access
from bot.slack.rate_limits import RateLimits
from bot.slack.search import SlackSearch
from bot.slack.web_api import SlackCalls
from bot.stores.limits import Pausing, limits_of
from bot.stores.stores import Stores
from bot.turn.answer import Answering
from bot.turn.engine import Engine, TurnTimeouts, open_engine
from bot.turn.job import TeamServices
from bot.turn.observer import Observers, open_observers
from bot.turn.status import QueueNotices
from bot.turn.unasked import UnaskedAnswers

log = structlog.get_logger()
Answer = TypeVar("Answer")
PAGE_TIMEOUT_S = 2.0  # how long a page waits for Redis or the index
PROBE_BYTES = 4_096


@dataclass(slots=True)
class DiskProbe:
    """Tries to write to a folder. After a failure ``MIN_FREE_BYTES`` must be free, to avoid flapping."""

    folder: Path
    probe_bytes: int = PROBE_BYTES

    def takes_writes(self) -> bool:
        """Write an unnamed temporary file. Blocks."""
        try:
            with tempfile.TemporaryFile(dir=self.folder) as file:
                file.write(bytes(self.probe_bytes))
        except OSError as error:
            log.warning("disk_takes_no_writes", folder=str(self.folder), reason=error.strerror)
            self.probe_bytes = MIN_FREE_BYTES
            return False
        self.probe_bytes = PROBE_BYTES
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Orion(ProcessStatus):
    """One running Orion, in any mode."""

    redis: Redis
    engine: Engine
    mailbox: Mailbox
    worker: Worker
    observers: Observers
    app: AsyncApp
    socket: SocketMode | None
    catching_up: CatchUp
    disk: DiskProbe
    circuits: Sequence[CircuitBreaker] = ()
    installing: InstallPages | None = None
    token: TokenCheck | None = None
    pausing: Pausing | None = None
    syncing: Syncing | None = None
    reporting: WeeklyReports | None = None

    async def is_paused(self) -> bool:
        """Return True if an admin paused Orion; False if not, or if Redis does not answer."""
        return self.pausing is not None and await _ask_briefly(self.pausing.current()) is not None

    def open_circuits(self) -> list[str]:
        """Services (``model``, ``slack``) that keep failing and are not called for a while."""
        return sorted({circuit.name for circuit in self.circuits if circuit.is_open})

    async def metrics(self) -> bytes:
        """Render the page for Prometheus. Queue and index are read with each request."""
        metrics, unknown = self.observers.metrics, math.nan  # a queue that could not be read is not empty
        depth = await _ask_briefly(self.mailbox.depth())
        metrics.queue_messages.set(depth.messages if depth else unknown)
        metrics.dead_letters.set(depth.dead if depth else unknown)
        known = await _ask_briefly(available_figures(self.engine.index))
        metrics.documents.set(known.documents if known else unknown)
        metrics.passages.set(known.passages if known else unknown)
        metrics.unread.set(known.failures if known else unknown)
        metrics.sync_age_seconds.set(time.time() - known.synced if known and known.synced else unknown)
        if meaning := self.engine.meaning:
            metrics.search_by_meaning.set(not meaning.failure)
        # if there are several breakers, show an open one
        for circuit in sorted(self.circuits, key=lambda one: one.is_open):
            metrics.circuit_open.labels(circuit.name).set(circuit.is_open)
        return metrics.render()[0]

    async def checks(self) -> dict[str, bool]:
        """Check what must be up before questions can be answered."""
        checks = {"redis": bool(await _ask_briefly(self.mailbox.probe()))}
        if self.engine.shared:
            checks["knowledge"] = False
            with suppress(KnowledgeAwayError):
                await asyncio.to_thread(self.engine.index.ping)
                checks["knowledge"] = True
        else:  # there the index is a file
            checks["disk"] = bool(await _ask_briefly(asyncio.to_thread(self.disk.takes_writes)))
        if self.socket is not None:
            checks["slack_socket"] = await self.socket.ready()
        if self.token is not None:
            checks["slack_token"] = await self.token.is_accepted()
        return checks


async def _ask_briefly(answer: Awaitable[Answer]) -> Answer | None:
    """Return the reply of Redis, the index or the disk, or None if it does not come in time."""
    try:
        async with asyncio.timeout(PAGE_TIMEOUT_S):
            return await answer
    except (RedisError, TimeoutError):
        return None


async def _redis(stack: AsyncExitStack, settings: Settings, identity: Identity | None) -> Redis:
    """Open a Redis with everything that questions need, and join it; if it is down, join it later."""
    redis = await stack.enter_async_context(open_redis(settings))
    tasks = await stack.enter_async_context(background_tasks())
    joining = tasks.create_task(_join(redis, identity), name="join-redis")
    stack.callback(joining.cancel)
    try:
        async with asyncio.timeout(PAGE_TIMEOUT_S):
            wrong, policy = await missing_command(redis), await eviction_policy(redis)
    except (RedisError, TimeoutError) as error:
        cause = plain_cause(error) if isinstance(error, RedisError) else "Redis does not answer in time"
        log.warning("redis_not_looked_at", cause=cause)
        return redis
    if wrong:
        raise WrongUse(wrong[0].upper() + wrong[1:])
    if policy:
        log.warning("redis_evicts", policy=policy, remedy=EVICTS_REMEDY)
    await asyncio.wait({joining}, timeout=PAGE_TIMEOUT_S)
    return redis


async def _join(redis: Redis, identity: Identity | None) -> None:
    """List this Orion, if it serves a workspace of Slack. Retry while Redis is down."""
    if identity is None:
        return
    async for attempt in stamina.retry_context(RedisError, attempts=None, timeout=None, wait_max=30.0):
        with attempt:
            await join_redis(redis, identity)


@asynccontextmanager
async def open_orion(  # noqa: PLR0913 - the composition root's choices
    settings: Settings,
    corpus: Corpus,
    *,
    concurrency: int,
    socket: bool,
    prompts: Sequence[Mapping[str, str]] = SUGGESTED_PROMPTS,
    identity: Identity | None = None,  # the owner of the keys; a local workspace has only a prefix
    prefix: str = DEFAULT_PREFIX,
    drain_s: float = DRAIN_S,  # time for running turns once Orion was asked to stop
    mailbox_over: Callable[..., Mailbox] = Mailbox,  # takes a Redis and a prefix; tests pass one with shorter leases
    timeouts: TurnTimeouts | None = None,
    sync_first: bool = True,  # otherwise ``syncing`` reads the documents once it runs
) -> AsyncIterator[Orion]:
    """Open everything. Raises ``WrongUse`` and ``EmbeddedRedisError`` with what to do."""
    timeouts = timeouts or TurnTimeouts.of(settings)
    async with AsyncExitStack() as stack:
        prefix = identity.prefix if identity else prefix
        redis = await _redis(stack, settings, identity)
        now = corpus if sync_first else replace(corpus, roots=(), sources=())
        engine = await stack.enter_async_context(open_engine(settings, now, timeouts))
        observers = await stack.enter_async_context(open_observers(settings, redis, prefix=prefix))
        await stack.enter_async_context(keep_vectors_current(engine.meaning, observers.stats))
        half = max(1, concurrency // 2) if settings.many_workspaces else 0  # per process, unless settings allow more
        mailbox = mailbox_over(redis, prefix=prefix, per_team=settings.turns_per_workspace or half)
        stack.push_async_callback(mailbox.aclose)
        stores = Stores(redis, mailbox, limits_of(settings), prefix=prefix)
        team_bots = _TeamBots(
            engine=engine, stores=stores, prompts=prompts, timeouts=timeouts, circuits=[engine.breaker],
            observers=observers, settings=settings, channels=ChannelFile(settings.channels, settings.listen),
            documents=stack.enter_context(DocumentReader(ATTACHMENT_LIMITS)), corpus=corpus,
        )  # fmt: skip
        slack = await stack.enter_async_context(open_slack(settings, redis, team_bots.open, prefix=prefix))
        workspaces = slack.workspaces
        sweep = QueueNotices(mailbox, workspaces).sweep
        worker = Worker(mailbox, workspaces, concurrency=max(1, concurrency), drain_s=drain_s, sweep=sweep)
        app = build_app(slack.client, workspaces.authorize)
        tasks = await stack.enter_async_context(background_tasks())
        services = team_bots.services(workspaces, worker.cancel, tasks)
        listeners = register(app, services, slack.installing)
        app_token = settings.slack_app_token.get_secret_value()
        socket_mode = SocketMode(app, app_token, first_pause_s=timeouts.socket_pause_s) if socket else None
        can_receive = socket_mode.ready if socket_mode else None
        catching_up = CatchUp(
            stores, listeners=listeners, workspaces=workspaces, can_receive=can_receive, max_age_s=settings.catch_up_s
        )
        yield Orion(
            redis=redis, engine=engine, mailbox=mailbox, worker=worker, observers=observers,
            app=app, socket=socket_mode, catching_up=catching_up, pausing=stores.pausing, disk=DiskProbe(settings.home),
            circuits=team_bots.circuits, reporting=team_bots.reporting(workspaces),
            syncing=team_bots.syncing(at_start=not sync_first),
            installing=slack.installing, token=None if settings.many_workspaces else TokenCheck(slack.client),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _TeamBots:
    """Builds the parts of each workspace's ``TeamBot``. ``circuits`` gets one for each."""

    engine: Engine
    observers: Observers
    stores: Stores
    prompts: Sequence[Mapping[str, str]]
    settings: Settings
    timeouts: TurnTimeouts
    circuits: list[CircuitBreaker]
    documents: DocumentReader
    channels: ChannelFile
    corpus: Corpus

    @property
    def access(self) -> Access:
        """The access settings, which have the same names."""
        return Access(**{name: getattr(self.settings, name) for name in Access.__slots__})

    def open(self, client: AsyncWebClient) -> TeamBot:
        """Make the ``TeamBot`` of one workspace's client."""
        stores, circuit = self.stores, self.timeouts.breaker("slack")
        self.circuits.append(circuit)
        redis, prefix = stores.redis, stores.prefix
        limits = RateLimits(redis, prefix=prefix, metrics=self.observers.metrics)
        calls = SlackCalls(
            client, patience_s=self.timeouts.call_s, request_s=self.timeouts.request_s,
            first_pause_s=self.timeouts.first_pause_s, metrics=self.observers.metrics, breaker=circuit, limits=limits,
        )  # fmt: skip
        workspace = SlackWorkspace(calls)
        delivery = Delivery(workspace, mailbox=stores.mailbox)
        people = SlackDirectory(workspace, redis, prefix=prefix)
        streams = Streams(calls, call_s=min(5.0, self.timeouts.request_s)) if self.settings.streams else None
        services = TeamServices(
            engine=self.engine, stores=stores, observers=self.observers, delivery=delivery, people=people,
            memberships=Memberships(people, self.engine.index, self.engine.audiences),
            attachments=Attachments(delivery.reader, documents=self.documents),
            search=SlackSearch(calls), channels=self.channels, access=self.access, timeouts=self.timeouts,
            handoff=HandOffPlace(self.settings.handoff, people, self.channels), streams=streams,
            saves_answers=self.settings.answers is not None,
        )  # fmt: skip
        flow = Flow(Answering(services), UnaskedAnswers(services))
        return TeamBot(delivery=delivery, people=people, handler=flow)

    def syncing(self, *, at_start: bool) -> Syncing | None:
        """Make the background sync, if there are documents to read now or again."""
        settings = self.settings
        if not (self.corpus.names and (settings.sync_minutes or at_start)):
            return None
        return Syncing(
            corpus=self.corpus, index=self.engine.index, every_s=settings.sync_minutes * 60 or math.inf,
            count=lambda how: self.observers.metrics.syncs.labels(how).inc(),
            json=not sys.stderr.isatty(), debug=settings.debug, at_start=at_start,
        )  # fmt: skip

    def reporting(self, workspaces: Workspaces) -> WeeklyReports | None:
        """Make the weekly report, if a channel for it is configured."""
        if not self.settings.report:
            return None
        return WeeklyReports(
            settings=self.settings, redis=self.stores.redis, prefix=self.stores.prefix, workspaces=workspaces,
            observers=self.observers, index=self.engine.index, channels=self.channels,
        )  # fmt: skip

    def services(self, workspaces: Workspaces, cancel: Cancel, tasks: asyncio.TaskGroup) -> ListenerServices:
        """Collaborators of the listeners of all workspaces."""
        stores, observers = self.stores, self.observers
        folder = self.settings.answers
        saved = None if folder is None else SavedAnswers(
            book=AnswerBook(folder=folder), proposals=Proposals(stores.redis, prefix=stores.prefix),
            admins=self.settings.admins, editors=self.settings.answer_editors,
            sync=partial(sync_now, self.corpus, AnswerFolder(folder=folder).key),
        )  # fmt: skip
        home = HomePage(
            engine=self.engine, observers=observers, pausing=stores.pausing, admins=self.settings.admins,
            prompts=self.prompts, channels=self.channels, saved_answers=saved,
        )  # fmt: skip
        return ListenerServices(
            saved_answers=saved, tasks=tasks, access=self.access, channels=self.channels, workspaces=workspaces,
            thread_modes=stores.thread_modes, listening=stores.listening, admins=self.settings.admins,
            intake=Intake(stores, cancel, self.access, workspaces, self.settings.admins), observers=observers,
            records=observers.records, index=self.engine.index, home=home,
        )  # fmt: skip
