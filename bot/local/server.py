"""A Slack-compatible server on this machine, and the page it serves. Orion talks to it as if it were Slack."""

import asyncio
import errno
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from aiohttp import web

from bot.local.api.router import handle
from bot.local.documents import POLICY as PAGE_POLICY
from bot.local.documents import show_document
from bot.local.model.roster import Json
from bot.local.page.api import MAX_BODY_BYTES, Handler, PageApi
from bot.local.page.people import PersonActions
from bot.local.workspace import WorkspaceState, load, save

HOST: Final = "127.0.0.1"
STATIC: Final = Path(__file__).parent / "static"
POLICY: Final = f"{PAGE_POLICY}; connect-src 'self' ws:"
# A stream changes the workspace many times a second. In a crash a visitor may lose three seconds.
_KEEP_S: Final = 3.0
_FOR_APPS: Final = ("/api/", "/link/", "/files-pri/")
"""Paths for apps. A token, a ticket or a secret key protects them, and apps may use any host name of this machine."""


class LocalWorkspace(PersonActions):
    """One workspace with its server. People's actions come from ``PersonActions``."""

    def __init__(self, **settings: Any) -> None:
        """``settings`` are fields of ``WorkspaceState``."""
        super().__init__(WorkspaceState(**settings))
        self.bot_token, self.app_token = self.workspace.bot_token, self.workspace.app_token
        self.signing_secret = self.workspace.signing_secret
        self.faults, self.http = self.workspace.faults, self.workspace.http
        self.calls = self.workspace.calls
        self.wait_for = self.workspace.feed.wait_for
        self._stack = AsyncExitStack()
        self.routes: Sequence[web.RouteDef] = ()
        """The app's own pages that this server also serves; set before ``start``."""

    @property
    def url(self) -> str:
        """Address of the page, without a slash at the end; empty before ``start``."""
        return self.workspace.url

    @property
    def api_url(self) -> str:
        """The base URL for a Slack client."""
        return f"{self.url}/api/"

    @property
    def connections(self) -> int:
        """Open Socket Mode connections."""
        return len(self.workspace.sockets.connections)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int = 0, *, or_free: bool = False) -> None:
        """Open the port (0: a free one; with ``or_free`` also if it is in use) and begin to deliver events."""
        group = await self._stack.enter_async_context(asyncio.TaskGroup())
        self.workspace.deliveries.group = group
        runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        try:
            await web.TCPSite(runner, HOST, port).start()
        except OSError as error:
            if not or_free or error.errno != errno.EADDRINUSE:
                raise
            await web.TCPSite(runner, HOST, 0).start()
        bound = runner.addresses[0]
        self.workspace.url = f"http://{HOST}:{bound[1]}"
        if folder := self.workspace.kept:
            file = folder / f"workspace-{bound[1]}.json"
            load(self.workspace, file)
            keeper = group.create_task(self._keep(file), name="keep-conversations")
            self._stack.callback(save, self.workspace, file)
            self._stack.callback(keeper.cancel)

    async def stop(self) -> None:
        """Close sockets and the port, and stop running work."""
        self.workspace.faults.clear()
        self.workspace.feed.close()
        self.workspace.threads.close()
        self.workspace.deliveries.stop()
        await self.workspace.sockets.close()
        await self._stack.aclose()

    async def _keep(self, file: Path) -> None:
        """Save the conversations after changes, at most every few seconds."""
        written = self.workspace.feed.seq
        while True:
            await asyncio.sleep(_KEEP_S)
            if self.workspace.feed.seq != written:
                written = self.workspace.feed.seq
                await asyncio.to_thread(save, self.workspace, file)

    def messages(self, channel: str, thread_ts: str | None = None) -> list[Json]:
        """The messages of a channel (oldest first) or of a whole thread, with their metadata."""
        place, log = self.channel(channel), self.workspace.log
        found = log.thread(place.id, thread_ts) if thread_ts else log.timeline(place.id)
        return [log.payload_of(one, metadata=True) for one in found]

    def ephemerals(self, channel: str) -> list[Json]:
        """The messages that only one person sees, with ``ephemeral_for``."""
        everything = self.workspace.log.everything_in(self.channel(channel).id)
        return [{**one.payload(), "ephemeral_for": one.ephemeral_for} for one in everything if one.ephemeral_for]

    def _application(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[self._guard])
        app.add_routes(
            [
                web.route("*", "/api/{method}", partial(handle, self.workspace)),
                web.get("/link/", self.workspace.sockets.handle),
                web.get("/files-pri/{file}/{name}", self._download),
                web.get("/docs/{path:.+}", partial(show_document, self.workspace.docs)),
                web.get(r"/static/{name:\w+\.(?:css|js|svg)}", _file),
                web.get("/", _file),
                web.get("/archives/{channel}/{message}", _file),
                *PageApi(self).routes(),
                *self.routes,
            ]
        )
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse requests to another host name, and actions that another page sends."""
        headers, own, port = request.headers, f"http://{request.host}", self.url.rpartition(":")[2]
        names = {f"{HOST}:{port}", f"localhost:{port}"}
        # A site whose name points to this machine must not read documents through a visitor's browser.
        if not request.path.startswith(_FOR_APPS) and request.host not in names:
            raise web.HTTPForbidden(text="not by this name")
        elsewhere = headers.get("Sec-Fetch-Site") == "cross-site" or headers.get("Origin", own) != own
        if request.path.startswith("/ui") and elsewhere:
            raise web.HTTPForbidden(text="not from this page")
        return await handler(request)

    async def _download(self, request: web.Request) -> web.Response:
        """Serve a private file: its bytes with the bot's token, otherwise the sign-in page, as Slack does."""
        if request.headers.get("Authorization") != f"Bearer {self.bot_token}":
            raise web.HTTPFound(location="/")
        if stored := self.workspace.files.get(request.match_info["file"].rpartition("-")[2]):
            return web.Response(body=stored.content, content_type=stored.payload["mimetype"])
        raise web.HTTPNotFound(text="no such file")


async def _file(request: web.Request) -> web.FileResponse:
    name, headers = request.match_info.get("name"), {"X-Content-Type-Options": "nosniff"}
    page = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
    return web.FileResponse(
        STATIC / (name or "index.html"), headers=headers | ({"Cache-Control": "no-cache"} if name else page)
    )
