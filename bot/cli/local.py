"""`orion local`: opens the page first and then imports its Orion."""

import asyncio
import errno
import os
import threading
import webbrowser
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from aiohttp import web
from pydantic import SecretStr

from bot.cli.output import local_prefix, print_text
from bot.cli.signals import Stopping, handle_signals
from bot.errors import WrongUse
from bot.local.model.roster import ADMIN
from bot.local.server import LocalWorkspace
from bot.settings import Settings, require_folders
from bot.slack.manifest import manifest

if TYPE_CHECKING:  # importing them takes seconds
    from bot.local.page.api import Handler

HANDBOOK: Final = Path(__file__).parents[1] / "local" / "handbook"
EXAMPLES: Final = (
    "How many requests may one API key send per minute?",
    "Who is called first when the database fails over?",
    "What may a dinner cost on a business trip?",
)
TERMINAL_BROWSERS: Final = {"www-browser", "links", "elinks", "lynx", "w3m"}
_READING: Final = "Orion is reading the documents. You can ask already; the answer comes in a moment."
_ENDING: Final = "Orion finishes what it is answering, in {seconds:.0f} s at most. Ctrl-C again ends it now."


class LocalOrion:
    """The Orion in a local workspace. It starts after the page."""

    def __init__(self, settings: Settings, folders: Sequence[Path]) -> None:
        self.settings, self.folders = settings, folders
        examples = EXAMPLES if folders == (HANDBOOK,) else ()
        shortcuts = manifest()["features"]["shortcuts"]
        self.workspace = LocalWorkspace(docs=folders, examples=examples, shortcuts=shortcuts, kept=settings.home)
        self.workspace.routes = [web.get(path, self._page) for path in ("/healthz", "/readyz", "/metrics")]
        self.pages: Mapping[str, Handler] = {}

    async def _page(self, request: web.Request) -> web.StreamResponse:
        if show := self.pages.get(request.path):
            return await show(request)
        return web.json_response({"ready": False, "checks": {"started": False}}, status=503)

    async def run(self, stopping: Stopping) -> None:
        """Answer until ``stopping``, only for this workspace: another one in the same Redis has its own questions."""
        from agent.texts.catalogue import SUGGESTED_PROMPTS
        from bot.app import open_orion
        from bot.cli.serve import run_until_stopped
        from bot.documents.open import local_corpus
        from bot.queue.worker import DRAIN_S
        from bot.servers.http import page_routes

        state, port = self.workspace.workspace, urlsplit(self.workspace.url).port or 0
        shown = {"streams": True, "handoff": self.settings.handoff or "#help", "admins": self.settings.admins | {ADMIN}}
        settings = settings_for(self.settings, self.workspace).model_copy(update=shown)
        opened = open_orion(
            settings, local_corpus(settings, port, self.folders), concurrency=50, socket=True,
            prompts=[{"title": example, "message": example} for example in state.examples] or SUGGESTED_PROMPTS,
            prefix=local_prefix(port),
        )  # fmt: skip
        async with opened as orion:
            state.turn_record = orion.observers.records.load
            self.pages = {route.path: route.handler for route in page_routes(orion)}

            def tell_ending() -> None:
                if orion.worker.in_flight:
                    print_text(_ENDING.format(seconds=DRAIN_S))

            stopping.tell = tell_ending
            await run_until_stopped(orion, stopping, work=True)


async def local(settings: Settings, *, port: int | None, docs: Sequence[Path] | None, browser: bool) -> None:
    """Run the local workspace with an Orion in it. ``port`` None: the default one, or a free one if it is in use."""
    folders = tuple(docs or settings.docs or (HANDBOOK,))
    require_folders(folders)
    inside = LocalOrion(settings, folders)
    workspace = inside.workspace
    with handle_signals() as stopping:
        try:
            await _start(workspace, port)
            workspace.workspace.app_is_starting(_READING)
            print_text(f"Orion's local workspace: {workspace.url}   (Ctrl-C ends it)")
            if browser:
                # A daemon thread: some browsers' commands return only when the person closes the browser.
                threading.Thread(target=_open_browser, args=(workspace.url,), daemon=True).start()
            await asyncio.to_thread(import_module, "bot.app")  # takes seconds, while the page is already open
            await inside.run(stopping)
        finally:
            await workspace.stop()


def settings_for(settings: Settings, workspace: LocalWorkspace) -> Settings:
    """Return the settings of the Orion in this local workspace."""
    # People who try Orion out edit a page and ask again; web sites are not read every minute.
    soon = not settings.web_docs and "sync_minutes" not in settings.model_fields_set
    return settings.model_copy(
        update={
            "sync_minutes": 1.0 if soon else settings.sync_minutes,
            "slack_bot_token": SecretStr(workspace.bot_token),
            "slack_app_token": SecretStr(workspace.app_token),
            "slack_signing_secret": SecretStr(workspace.signing_secret),
            "slack_api_url": f"{workspace.url}/api/",
        }
    )


async def _start(workspace: LocalWorkspace, port: int | None) -> None:
    try:
        await workspace.start(port=8765 if port is None else port, or_free=port is None)
    except OSError as error:
        why = "it is taken" if error.errno == errno.EADDRINUSE else os.strerror(error.errno or 0)
        raise WrongUse(
            why=f"Port {port} cannot be opened: {why}. Choose another, or 0 for a free one: "
            "orion local --port 0 (or make run PORT=0)."
        ) from None


def _open_browser(url: str) -> None:
    """Show the page, unless the only browser would take over this terminal."""
    with suppress(webbrowser.Error):
        browser = webbrowser.get()
        if Path(getattr(browser, "name", "")).name not in TERMINAL_BROWSERS:
            browser.open(url)
