"""`orion serve` and `worker`: they start even if Slack, Redis or the model cannot be reached, and drain at a signal."""

import asyncio
import gc
from contextlib import AsyncExitStack, suppress

import stamina
import structlog
from redis.exceptions import RedisError

from bot.app import PAGE_TIMEOUT_S, Orion, open_orion
from bot.cli.signals import Stopping, handle_signals
from bot.documents.corpus import SYNC_WAIT_S
from bot.documents.open import available_documents, corpus_of
from bot.errors import WrongUse
from bot.install.identity import Identity, identify, recall_identity
from bot.redis.server import EmbeddedRedisError, open_redis
from bot.servers.http import ProcessStatus, SlackEndpoint, build
from bot.servers.http import serve as serve_pages
from bot.settings import Settings
from bot.slack.client import NotAuthorized

log = structlog.get_logger()


async def serve(settings: Settings, *, host: str, concurrency: int, mode: str = "") -> None:
    """Take events in this ``mode``, and work on them unless ``concurrency`` is 0. Without a mode, only work."""
    _require(settings, mode)
    with handle_signals() as stopping:
        async with AsyncExitStack() as stack:
            corpus = corpus_of(settings)
            identity = await identify(settings) or await _wait_for_slack(settings, host)
            opening = open_orion(
                settings, corpus, concurrency=concurrency, socket=mode == "socket", identity=identity, sync_first=False
            )
            orion = await stack.enter_async_context(opening)
            secret = settings.slack_signing_secret.get_secret_value()
            endpoint = SlackEndpoint(app=orion.app, signing_secret=secret, installing=orion.installing)
            await _open_pages(stack, orion, host, settings.port, endpoint if mode == "http" else None)
            await run_until_stopped(orion, stopping, work=concurrency > 0, takes_events=bool(mode))


class _WaitingForSlack(ProcessStatus):
    async def checks(self) -> dict[str, bool]:
        """Name Slack as the part to check."""
        return {"slack": False}


async def _wait_for_slack(settings: Settings, host: str) -> Identity:
    """Wait until Slack, or else Redis, identifies the token. Until then only the pages are available."""
    async with AsyncExitStack() as stack:
        await _open_pages(stack, _WaitingForSlack(), host, settings.port)
        async for attempt in stamina.retry_context(NotAuthorized, attempts=None, timeout=None, wait_max=30.0):
            with attempt:
                identity = None
                with suppress(RedisError, EmbeddedRedisError, TimeoutError):
                    async with asyncio.timeout(PAGE_TIMEOUT_S), open_redis(settings) as redis:
                        identity = await recall_identity(redis, settings)
                if identity := identity or await identify(settings):
                    return identity
                raise NotAuthorized
    raise AssertionError  # the loop above never ends by itself


async def run_until_stopped(orion: Orion, stopping: Stopping, *, work: bool, takes_events: bool = True) -> None:
    """Serve until a signal, then drain."""
    stopping.running = True
    async with asyncio.TaskGroup() as group:
        socket = group.create_task(orion.socket.run(), name="slack-socket") if orion.socket else None
        catching_up = group.create_task(orion.catching_up.run(), name="catching-up") if takes_events else None
        sync = group.create_task(orion.syncing.run(), name="syncing") if orion.syncing else None
        report = group.create_task(orion.reporting.run(), name="report") if orion.reporting and work else None
        working = group.create_task(_work(orion, work=work), name="worker")
        if work:  # load it now that the pages are open, so that the first turn does not wait for the import
            group.create_task(orion.observers.tracer.connect(), name="langfuse")
        gc.collect()
        gc.freeze()  # objects from the start live as long as the process, so collections can skip them
        gc.set_threshold(10_000)  # objects between two collections: about as many as one question creates
        await stopping.asked.wait()
        log.info("orion_stopping", in_flight=orion.worker.in_flight)
        for task in filter(None, (socket, catching_up, sync, report)):  # first stop taking events, then let turns end
            task.cancel()
        orion.worker.stop()
        await asyncio.wait({working})
    log.info("orion_stopped")


async def _work(orion: Orion, *, work: bool) -> None:
    """Start turns after the first sync. If that takes long, use the documents of the last run."""
    if orion.syncing:
        with suppress(TimeoutError):
            async with asyncio.timeout(SYNC_WAIT_S):
                await orion.syncing.started.wait()
    documents = await available_documents(orion.engine.index)
    log.info("orion_started", model=orion.engine.model.name, documents=len(documents))
    if not documents:
        log.warning("no_documents", remedy="`orion doctor` says what to do about it")
    if work:
        await orion.worker.run()


async def _open_pages(
    stack: AsyncExitStack, status: ProcessStatus, host: str, port: int, endpoint: SlackEndpoint | None = None
) -> None:
    bound = await stack.enter_async_context(serve_pages(build(status, endpoint), host=host, port=port))
    log.info("pages_open", host=host, port=bound)


def _require(settings: Settings, mode: str) -> None:
    """The tokens that a mode requires. Workspaces that install Orion have their own bot tokens."""
    of_many = settings.many_workspaces and mode != "socket"
    needed = {} if of_many else {"SLACK_BOT_TOKEN": settings.slack_bot_token}
    if mode == "socket":
        needed["SLACK_APP_TOKEN"] = settings.slack_app_token
    if mode == "http":
        needed["SLACK_SIGNING_SECRET"] = settings.slack_signing_secret
    if missing := [name for name, token in needed.items() if not token.get_secret_value()]:
        what = " and ".join(missing)
        raise WrongUse(
            why=f"Not set: {what}. Add the missing lines to .env or the environment; `orion doctor` checks the rest."
        )
