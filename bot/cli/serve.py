"""The long-running commands: `orion serve` and `worker`.

They start although Slack, Redis or the model is away. The first signal drains, a second one ends at once.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog

from bot.app import Orion, open_orion
from bot.cli.signals import Stopping, heeding_signals
from bot.documents.open import corpus_of, known_documents
from bot.errors import WrongUse
from bot.servers.http import Pages, SlackEndpoint, build
from bot.servers.http import serve as serve_pages
from bot.settings import Settings
from bot.slack.client import open_client
from bot.slack.tokens import try_bot_token

log = structlog.get_logger()

OBJECTS_OF_A_QUESTION = 10_000
"""New objects between two collections while Orion serves: about as many as one question needs."""
_MISSING = "Not set: {what}. Put it into the environment or a .env file; `orion doctor` checks the rest."
_REFUSED = "Slack refused SLACK_BOT_TOKEN: {reason}. Reinstall the app and copy its bot token (xoxb-…)."


async def serve(settings: Settings, *, mode: str, host: str, concurrency: int) -> None:
    """`orion serve`: takes events, and works on them unless ``concurrency`` is 0."""
    _require(settings, mode)
    with heeding_signals() as stopping:
        async with AsyncExitStack() as stack:
            socket = mode == "socket"
            corpus = corpus_of(settings)
            await _sign_in(settings)
            orion = await stack.enter_async_context(
                open_orion(settings, corpus, concurrency=concurrency, socket=socket)
            )
            secret = settings.slack_signing_secret.get_secret_value()
            intake = (
                None if socket else SlackEndpoint(app=orion.app, signing_secret=secret, installing=orion.installing)
            )
            await stack.enter_async_context(_pages(orion, host, settings.port, intake))
            await run_until_stopped(orion, stopping, work=concurrency > 0)


async def work(settings: Settings, *, host: str, concurrency: int) -> None:
    """`orion worker`: works on stored questions only."""
    _require_token(settings)
    with heeding_signals() as stopping:
        async with AsyncExitStack() as stack:
            corpus = corpus_of(settings)
            await _sign_in(settings)
            orion = await stack.enter_async_context(open_orion(settings, corpus, concurrency=concurrency, socket=False))
            await stack.enter_async_context(_pages(orion, host, settings.port))
            await run_until_stopped(orion, stopping, work=True, takes_events=False)


async def _sign_in(settings: Settings) -> None:
    """Refuse to start with a token that Slack refuses. A Slack that is away is no reason not to: it comes back."""
    if settings.many_workspaces:
        return  # each has a token of its own, and who installs later has none yet
    if settings.slack_client_id:
        log.warning("installing_is_off", because="SLACK_BOT_TOKEN is set")
    token = settings.slack_bot_token.get_secret_value()
    async with open_client(token, api_url=settings.slack_api_url) as client:
        tried = await try_bot_token(client)
    if tried.state == "refused":
        raise WrongUse(_REFUSED.format(reason=tried.reason))
    if tried.state == "unreachable":
        log.warning("slack_unreachable", reason=tried.reason)


async def run_until_stopped(orion: Orion, stopping: Stopping, *, work: bool, takes_events: bool = True) -> None:
    """Serve until a signal says so, then drain."""
    stopping.running = True
    async with asyncio.TaskGroup() as group:
        socket = group.create_task(orion.socket.run(), name="slack-socket") if orion.socket else None
        turns = group.create_task(orion.turns.run(), name="turns") if work else None
        ears = group.create_task(orion.catching_up.run(), name="catching-up") if takes_events else None
        sync = group.create_task(orion.syncing.run(), name="syncing") if orion.syncing else None
        gc.collect()
        gc.freeze()  # what start-up made lives as long as the process: no collection need look at it again
        gc.set_threshold(OBJECTS_OF_A_QUESTION)
        documents = await known_documents(orion.engine.index)
        log.info("orion_started", model=orion.engine.model.name, documents=len(documents))
        if not documents:
            log.warning("no_documents", remedy="`orion doctor` says what to do about it")
        await stopping.asked.wait()
        log.info("orion_stopping", in_flight=orion.turns.in_flight)
        for task in filter(None, (socket, ears, sync)):
            task.cancel()
        orion.turns.stop()
        if turns:
            await asyncio.wait({turns})
    log.info("orion_stopped")


@asynccontextmanager
async def _pages(orion: Orion, host: str, port: int, intake: SlackEndpoint | None = None) -> AsyncIterator[int]:
    pages = Pages(checks=orion.checks, metrics=orion.metrics, paused=orion.paused, left_alone=orion.left_alone)
    async with AsyncExitStack() as stack:
        try:
            bound = await stack.enter_async_context(serve_pages(build(pages, intake), host=host, port=port))
        except OSError as error:
            why = "it is taken" if error.errno == errno.EADDRINUSE else os.strerror(error.errno or 0)
            message = f"Port {port} on {host} cannot be opened ({why}). Choose another with --port."
            raise WrongUse(message) from None
        log.info("pages_open", host=host, port=bound)
        yield bound


def _require(settings: Settings, mode: str) -> None:
    """The tokens a mode cannot do without."""
    if mode == "socket":
        needed = {"SLACK_BOT_TOKEN": settings.slack_bot_token, "SLACK_APP_TOKEN": settings.slack_app_token}
    else:
        needed = {"SLACK_SIGNING_SECRET": settings.slack_signing_secret}
        if not settings.many_workspaces:
            needed = {"SLACK_BOT_TOKEN": settings.slack_bot_token, **needed}
    missing = [name for name, value in needed.items() if not value.get_secret_value()]
    if missing:
        raise WrongUse(_MISSING.format(what=" and ".join(missing)))


def _require_token(settings: Settings) -> None:
    """A worker serves one workspace by its token, or all that installed Orion."""
    if not settings.slack_bot_token.get_secret_value() and not settings.many_workspaces:
        raise WrongUse(_MISSING.format(what="SLACK_BOT_TOKEN"))
