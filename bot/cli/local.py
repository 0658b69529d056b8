"""`orion local`: opens the page first, and imports the Orion for it afterwards."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import webbrowser
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web
from pydantic import SecretStr

from bot.cli.output import print_text
from bot.cli.signals import handle_signals
from bot.errors import WrongUse
from bot.local.server import LocalWorkspace
from bot.settings import Settings, require_folders

if TYPE_CHECKING:  # importing it takes seconds
    from bot.app import Orion
    from bot.local.page.api import Handler

HANDBOOK: Final = Path(__file__).parents[1] / "local" / "handbook"
EXAMPLES: Final = (
    "How many requests may one API key send per minute?",
    "Who is called first when the database fails over?",
    "What may a dinner cost on a business trip?",
)
DEFAULT_PORT: Final = 8765
TERMINAL_BROWSERS: Final = {"www-browser", "links", "elinks", "lynx", "w3m"}
OWN_PAGES: Final = ("/healthz", "/readyz", "/metrics")
_READING: Final = "Orion is reading the documents. You can ask already; the answer comes in a moment."


@dataclass(slots=True)
class LocalOrion:
    """The Orion in a local workspace, for the workspace's server. It may not have started yet."""

    orion: Orion | None = None
    pages: Mapping[str, Handler] = field(default_factory=dict)

    async def record(self, turn_id: str) -> dict[str, Any] | None:
        """Return a turn's record, or None."""
        return await self.orion.observers.records.load(turn_id) if self.orion else None

    async def page(self, request: web.Request) -> web.StreamResponse:
        """Serve one of Orion's own pages."""
        if show := self.pages.get(request.path):
            return await show(request)
        return web.json_response({"ready": False, "checks": {"started": False}}, status=503)


async def local(settings: Settings, *, port: int | None, docs: Sequence[Path] | None, browser: bool) -> None:
    """Run the local workspace with an Orion in it. Without ``port``: the default one, or a free one if it is taken."""
    folders = tuple(docs or settings.docs or (HANDBOOK,))
    require_folders(folders)
    examples = EXAMPLES if folders == (HANDBOOK,) else ()
    with handle_signals() as stopping:
        async with AsyncExitStack() as stack:
            inside = LocalOrion()
            workspace = LocalWorkspace(docs=folders, turn_record=inside.record, examples=examples, kept=settings.home)
            workspace.routes = [web.get(path, inside.page) for path in OWN_PAGES]
            stack.push_async_callback(workspace.stop)
            await _start(workspace, port)
            workspace.workspace.app_is_starting(_READING)
            print_text(f"Orion's local workspace: {workspace.url}   (Ctrl-C ends it)")
            if browser:
                # A daemon thread: some browsers' commands return only when the person closes the browser.
                threading.Thread(target=_open_browser, args=(workspace.url,), daemon=True).start()
            local_orion = await asyncio.to_thread(import_module, "bot.cli.local_orion")
            await local_orion.run(settings, workspace, inside, folders, stopping)


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
        await workspace.start(port=DEFAULT_PORT if port is None else port, or_free=port is None)
    except OSError as error:
        why = "it is taken" if error.errno == errno.EADDRINUSE else os.strerror(error.errno or 0)
        raise WrongUse(
            why=f"Port {port} cannot be opened: {why}. Choose another, or 0 for a free one: "
            "orion local --port 0 (or make run PORT=0)."
        ) from None


def _open_browser(url: str) -> None:
    """Show the page, unless the only browser is one that would take over this terminal."""
    with suppress(webbrowser.Error):
        browser = webbrowser.get()
        if Path(getattr(browser, "name", "")).name not in TERMINAL_BROWSERS:
            browser.open(url)
