"""`orion serve` and `worker`: they start although Slack, Redis or the model is away, and drain at a signal."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
from contextlib import AsyncExitStack, suppress

import structlog

from bot.app import Orion, open_orion
from bot.cli.signals import Stopping, heeding_signals
from bot.documents.corpus import SYNC_WAIT_S
from bot.documents.open import available_documents, corpus_of
from bot.errors import WrongUse
from bot.servers.http import SlackEndpoint, build
from bot.servers.http import serve as serve_pages
from bot.settings import Settings
from bot.slack.client import open_client, try_token

log = structlog.get_logger()

OBJECTS_OF_A_QUESTION = 10_000  # between two collections while Orion serves: about as many as one question needs
_MISSING = "Not set: {what}. Put it into the environment or a .env file; `orion doctor` checks the rest."
_REFUSED = "Slack refused SLACK_BOT_TOKEN: {reason}. Reinstall the app and copy its bot token (xoxb-…)."


async def serve(settings: Settings, *, host: str, concurrency: int, mode: str = "") -> None:
    """Take events in this ``mode`` and work on them unless ``concurrency`` is 0; without a mode, work only."""
    _require(settings, mode)
    with heeding_signals() as stopping:
        async with AsyncExitStack() as stack:
            corpus = corpus_of(settings)
            await _sign_in(settings)
            opening = open_orion(settings, corpus, concurrency=concurrency, socket=mode == "socket", sync_first=False)
            orion = await stack.enter_async_context(opening)
            secret = settings.slack_signing_secret.get_secret_value()
            endpoint = SlackEndpoint(app=orion.app, signing_secret=secret, installing=orion.installing)
            await _open_pages(stack, orion, host, settings.port, endpoint if mode == "http" else None)
            await run_until_stopped(orion, stopping, work=concurrency > 0, takes_events=bool(mode))


async def _sign_in(settings: Settings) -> None:
    """Refuse to start with a token that Slack refuses. A Slack that is away is no reason not to: it comes back."""
    if settings.many_workspaces:
        return  # each has a token of its own, and who installs later has none yet
    if settings.slack_client_id:
        log.warning("installing_is_off", because="SLACK_BOT_TOKEN is set")
    token = settings.slack_bot_token.get_secret_value()
    async with open_client(token, api_url=settings.slack_api_url) as client:
        tried = await try_token(client.auth_test())
    if tried.state == "refused":
        raise WrongUse(_REFUSED.format(reason=tried.reason))
    if tried.state == "unreachable":
        log.warning("slack_unreachable", reason=tried.reason)


async def run_until_stopped(orion: Orion, stopping: Stopping, *, work: bool, takes_events: bool = True) -> None:
    """Serve until a signal says so, then drain."""
    stopping.running = True
    async with asyncio.TaskGroup() as group:
        socket = group.create_task(orion.socket.run(), name="slack-socket") if orion.socket else None
        ears = group.create_task(orion.catching_up.run(), name="catching-up") if takes_events else None
        sync = group.create_task(orion.syncing.run(), name="syncing") if orion.syncing else None
        turns = group.create_task(_work(orion, work=work), name="turns")
        if work:  # now that the pages are open, so that the first turn need not wait for its import
            group.create_task(orion.observers.tracer.connect(), name="langfuse")
        gc.collect()
        gc.freeze()  # what start-up made lives as long as the process: no collection need look at it again
        gc.set_threshold(OBJECTS_OF_A_QUESTION)
        await stopping.asked.wait()
        log.info("orion_stopping", in_flight=orion.turns.in_flight)
        for task in filter(None, (socket, ears, sync)):  # first nothing new comes in, then what runs may end
            task.cancel()
        orion.turns.stop()
        await asyncio.wait({turns})
    log.info("orion_stopped")


async def _work(orion: Orion, *, work: bool) -> None:
    """Take turns after the first sync, but do not wait long: then the documents of the last run answer."""
    if orion.syncing:
        with suppress(TimeoutError):
            async with asyncio.timeout(SYNC_WAIT_S):
                await orion.syncing.started.wait()
    documents = await available_documents(orion.engine.index)
    log.info("orion_started", model=orion.engine.model.name, documents=len(documents))
    if not documents:
        log.warning("no_documents", remedy="`orion doctor` says what to do about it")
    if work:
        await orion.turns.run()


async def _open_pages(
    stack: AsyncExitStack, orion: Orion, host: str, port: int, endpoint: SlackEndpoint | None
) -> None:
    try:
        bound = await stack.enter_async_context(serve_pages(build(orion.pages, endpoint), host=host, port=port))
    except OSError as error:
        why = "it is taken" if error.errno == errno.EADDRINUSE else os.strerror(error.errno or 0)
        raise WrongUse(why=f"Port {port} on {host} cannot be opened ({why}). Choose another with --port.") from None
    log.info("pages_open", host=host, port=bound)


def _require(settings: Settings, mode: str) -> None:
    """The tokens a mode cannot do without. Workspaces that install Orion have bot tokens of their own."""
    of_many = settings.many_workspaces and mode != "socket"
    needed = {} if of_many else {"SLACK_BOT_TOKEN": settings.slack_bot_token}
    if mode == "socket":
        needed["SLACK_APP_TOKEN"] = settings.slack_app_token
    if mode == "http":
        needed["SLACK_SIGNING_SECRET"] = settings.slack_signing_secret
    if missing := [name for name, token in needed.items() if not token.get_secret_value()]:
        raise WrongUse(_MISSING.format(what=" and ".join(missing)))
