"""Slack's side of installing the app in one more workspace: the page that asks, the code, and the token for it."""

import html
import secrets
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

from bot.local.documents import simple_page
from bot.local.model.errors import ApiError
from bot.local.model.roster import BOT_USER, Json
from bot.local.workspace import WorkspaceState

AUTHORIZE_PATH: Final = "/oauth/v2/authorize"
EXCHANGE: Final = "oauth.v2.access"
CLIENT_ID: Final = "10000.20000"


@dataclass(slots=True)
class Consent:
    """The consent page for ``workspace`` and the others of the same Slack."""

    workspace: WorkspaceState
    client_secret: str = field(default_factory=lambda: secrets.token_hex(16))
    redirect_url: str = ""  # the app's redirect URL, from its manifest
    _codes: dict[str, WorkspaceState] = field(default_factory=dict)

    async def ask(self, request: web.Request) -> web.StreamResponse:
        """The page; each of its links leads back to the app, with a code or a refusal."""
        query = dict(request.query)
        chosen = query.pop("choose", None)
        if chosen is None:
            return simple_page("Install Orion?", "", self._question(query))
        answer = {"error": "access_denied"}
        for workspace in self.workspace.all:
            if workspace.setup.team == chosen:
                answer = {"code": secrets.token_hex(8)}
                self._codes[answer["code"]] = workspace
        location = f"{self.redirect_url}?{urlencode({**answer, 'state': query.get('state', '')})}"
        return web.Response(status=302, headers={"Location": location})

    def _question(self, query: dict[str, str]) -> str:
        def link(label: str, choose: str) -> str:
            address = f"{AUTHORIZE_PATH}?{urlencode({**query, 'choose': choose})}"
            return f'<p><a class="btn" href="{html.escape(address)}">{html.escape(label)}</a></p>'

        wanted = "".join(f"<li><code>{html.escape(one)}</code></li>" for one in query.get("scope", "").split(","))
        # Workspaces that already have the app come last: most people click the first link.
        offered = sorted(self.workspace.all, key=lambda one: one.installed)
        allow = [link(f"Allow {'again ' * one.installed}in {one.setup.name}", one.setup.team) for one in offered]
        return (
            f"<h1>Orion asks to be installed</h1><p>It would be allowed to use:</p><ul>{wanted}</ul>"
            f"{''.join(allow)}{link('Cancel', '')}"
        )

    def exchange(self, authorization: str, code: str) -> Json:
        """``oauth.v2.access``: the bot's token of the workspace that consented; a code works once."""
        if authorization != aiohttp.encode_basic_auth(CLIENT_ID, self.client_secret):
            raise ApiError(error="bad_client_secret")
        workspace = self._codes.pop(code, None)
        if workspace is None:
            raise ApiError(error="invalid_code")
        workspace.install()
        return {
            "access_token": workspace.bot_token,
            "token_type": "bot",
            "scope": ",".join(workspace.setup.scopes),
            "bot_user_id": BOT_USER,
            "team": {"id": workspace.setup.team, "name": workspace.setup.name},
            "is_enterprise_install": False,
        }
