"""The long-running commands: `orion serve`, `worker` and `local`.

They start although Slack, Redis or the model is away. The first signal drains, a second one ends at once.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import threading
import webbrowser
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import structlog
from pydantic import SecretStr
from rich.console import Console

from agent.model.protocol import Model
from agent.texts.catalogue import SUGGESTED_PROMPTS
from bot.app import Orion, open_orion
from bot.cli.output import prefix_of
from bot.cli.signals import Stopping, heeding_signals
from bot.cli.slow_model import SlowModel
from bot.documents.open import corpus_of, known_documents
from bot.errors import WrongUse
from bot.local.documents import DocsFolder
from bot.local.model.roster import ADMIN
from bot.local.server import LocalWorkspace
from bot.local.switches import Switch
from bot.servers.http import Pages, SlackEndpoint, build, page_routes
from bot.servers.http import serve as serve_pages
from bot.settings import Settings
from bot.slack.client import open_client
from bot.slack.tokens import try_bot_token

log = structlog.get_logger()

HANDBOOK = Path(__file__).parents[1] / "local" / "handbook"
EXAMPLES = (
    "How many requests may one API key send per minute?",
    "Who is called first when the database fails over?",
    "What may a dinner cost on a business trip?",
)
HELPERS = "#help"
"""Where "Ask a human" posts in the local workspace, unless the settings say otherwise."""
USUAL_PORT = 8765
TERMINAL_BROWSERS = {"www-browser", "links", "elinks", "lynx", "w3m"}
_MISSING = "Not set: {what}. Put it into the environment or a .env file; `orion doctor` checks the rest."
_REFUSED = "Slack refused SLACK_BOT_TOKEN: {reason}. Reinstall the app and copy its bot token (xoxb-…)."


@dataclass(slots=True)
class LocalOrion:
    """The Orion in a local workspace, as the workspace's server asks for it: before there is one, too."""

    orion: Orion | None = None

    async def record(self, turn_id: str) -> dict[str, Any] | None:
        """A turn's record, or None."""
        return await self.orion.records.load(turn_id) if self.orion else None

    def pages(self) -> Pages:
        """The three pages of every mode (G3)."""
        return Pages(checks=self._checks, metrics=self._metrics, paused=self._paused, left_alone=self._left_alone)

    async def _checks(self) -> dict[str, bool]:
        return await self.orion.checks() if self.orion else {"started": False}

    async def _metrics(self) -> bytes:
        return await self.orion.metrics() if self.orion else b""

    async def _paused(self) -> bool:
        return await self.orion.paused() if self.orion else False

    def _left_alone(self) -> list[str]:
        return self.orion.left_alone() if self.orion else []


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


async def local(settings: Settings, *, port: int | None, docs: Sequence[Path] | None, browser: bool) -> None:
    """`orion local`: the local workspace and an Orion in it, the real app over the real protocol.

    ``port`` None is the usual one, or a free one where another workspace has that.
    """
    folders = tuple(docs or settings.docs or (HANDBOOK,))
    corpus_of(settings, folders)  # refuses folders that are not there before anything opens
    with heeding_signals() as stopping:
        async with AsyncExitStack() as stack:
            inside = LocalOrion()
            examples = EXAMPLES if folders == (HANDBOOK,) else ()
            workspace = LocalWorkspace(DocsFolder(roots=folders), inside.record, examples=examples, kept=settings.home)
            workspace.routes = page_routes(inside.pages())
            stack.push_async_callback(workspace.stop)
            await _start(workspace, port)
            orion = await stack.enter_async_context(_inhabit(settings, workspace, folders, examples))
            inside.orion = orion
            Console().print(f"Orion's local workspace: {workspace.url}   (Ctrl-C ends it)", highlight=False)
            if browser:
                # A daemon: some browsers' commands return only when the person closes them.
                threading.Thread(target=_open_browser, args=(workspace.url,), daemon=True).start()
            await run_until_stopped(orion, stopping, work=True)


def _inhabit(
    settings: Settings, workspace: LocalWorkspace, folders: tuple[Path, ...], examples: Sequence[str]
) -> AbstractAsyncContextManager[Orion]:
    """An Orion for this workspace alone: another one over the same Redis must not take its questions."""
    inside = settings_for(settings, workspace)
    more = {"handoff": settings.handoff or HELPERS, "admins": settings.admins | {ADMIN}}
    inside = inside.model_copy(update=more)
    corpus = corpus_of(inside, folders, docs_url=f"{workspace.url}/docs/")
    prompts = [{"title": example, "message": example} for example in examples] or SUGGESTED_PROMPTS
    prefix = prefix_of(urlsplit(workspace.url).port)

    def slowed(model: Model) -> Model:
        slow = SlowModel(model=model)
        told = "The model takes ten seconds to think."
        workspace.workspace.switches.all["slow_model"] = Switch(label="Slow model", tells=told, turn=slow.turn)
        return slow

    return open_orion(inside, corpus, concurrency=50, socket=True, prompts=prompts, prefix=prefix, model_over=slowed)


def _open_browser(url: str) -> None:
    """Show the page, unless the only browser is one that would take over this terminal."""
    with suppress(webbrowser.Error):
        browser = webbrowser.get()
        if Path(getattr(browser, "name", "")).name not in TERMINAL_BROWSERS:
            browser.open(url)


def settings_for(settings: Settings, workspace: LocalWorkspace) -> Settings:
    """The settings of an Orion that lives in this local workspace."""
    return settings.model_copy(
        update={
            "slack_bot_token": SecretStr(workspace.bot_token),
            "slack_app_token": SecretStr(workspace.app_token),
            "slack_signing_secret": SecretStr(workspace.signing_secret),
            "slack_api_url": f"{workspace.url}/api/",
        }
    )


async def _start(workspace: LocalWorkspace, port: int | None) -> None:
    try:
        await workspace.start(port=USUAL_PORT if port is None else port, or_free=port is None)
    except OSError as error:
        message = (
            f"Port {port} cannot be opened: {_why(error)}. Choose another, or 0 for a free one: "
            "orion local --port 0 (or make run PORT=0)."
        )
        raise WrongUse(message) from None


def _why(error: OSError) -> str:
    return "it is taken" if error.errno == errno.EADDRINUSE else os.strerror(error.errno or 0)


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
            message = f"Port {port} on {host} cannot be opened ({_why(error)}). Choose another with --port."
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
