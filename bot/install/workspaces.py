"""The workspaces that Orion serves, each with its own token.

One by ``SLACK_BOT_TOKEN``, or all that installed it (H2, I5).
Tokens that expire are renewed once, however many processes notice. There is no fallback to another team's token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

import structlog
from redis.exceptions import LockError
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from bot.delivery.delivery import Delivery
from bot.install.installations import Installation, Installations, Kept, now
from bot.install.oauth import OAuthCalls, OAuthFailed
from bot.queue.ending import OK, Ending, later
from bot.queue.lease import Lease
from bot.queue.queue import Claimed
from bot.queue.worker import Handle, OnDead
from bot.slack.client import Identity, NotAuthorized, Workspace
from bot.slack.message import Own
from bot.slack.payload import mapping, string
from bot.slack.web_api import DeliveryFailed

NOT_INSTALLED: Final = "not_installed"
RENEW_BEFORE_S: Final = 2 * 3600.0
"""A token that ends within this time is renewed: Slack's live for twelve hours."""
# With less left the token could run out before the answer is posted.
LEAST_LEFT_S: Final = 60.0
# A Slack that is away is away for minutes; each try costs one call.
AGAIN_S: Final = 30.0
_log = structlog.get_logger()


LanguageOf = Callable[[str, str], Awaitable[str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamBot:
    """All that serves one workspace. ``language_of`` asks what a person (team, user) uses Slack in."""

    workspace: Workspace
    delivery: Delivery
    language_of: LanguageOf
    handle: Handle
    tell_dead: OnDead


OpenTeamBot = Callable[[AsyncWebClient], TeamBot]


class Workspaces(Protocol):
    """Finds the desk of a team."""

    async def of(self, team: str) -> TeamBot:
        """The team's desk. Raises ``DeliveryFailed`` when the team is not served, or cannot be right now."""

    async def authorize(self, team: str | None) -> AuthorizeResult | None:
        """Bolt's authorisation; None for a team that is not served. Raises ``NotAuthorized`` to get no ack."""


class OneWorkspace:
    """The workspace that ``SLACK_BOT_TOKEN`` belongs to."""

    def __init__(self, team_bot: TeamBot) -> None:
        self._team_bot = team_bot

    async def of(self, team: str) -> TeamBot:  # noqa: ARG002 - there is but one
        """The one desk."""
        return self._team_bot

    async def authorize(self, team: str | None = None) -> AuthorizeResult:
        """As its token says."""
        return await self._team_bot.workspace.authorize(team)


class InstalledWorkspaces:
    """Every workspace with an installation. ``client`` is copied for each, its connections are shared."""

    def __init__(
        self, installations: Installations, oauth: OAuthCalls, client: AsyncWebClient, open_team_bot: OpenTeamBot
    ) -> None:
        self._installations = installations
        self._oauth = oauth
        self._client = client
        self._open_team_bot = open_team_bot
        self._team_bots: dict[str, TeamBot] = {}

    async def of(self, team: str) -> TeamBot:
        """The team's desk, with the token that stands in Redis right now.

        Raises ``DeliveryFailed``: ``not_installed``, or the token ran out and cannot be renewed.
        """
        kept = await self._installations.find(team) if team else None
        if kept is None:
            # What served a workspace that is gone must not live on with its token.
            self._team_bots.pop(team, None)
            raise DeliveryFailed(NOT_INSTALLED, permanent=True)
        found = (await self._fresh(kept)).installation
        team_bot = self._team_bots.get(team) or self._team_bots.setdefault(
            team, self._open_team_bot(self._client_for(found))
        )
        own = Own(user=found.bot_user, bot=found.bot_id)
        team_bot.workspace.adopt(found.bot_token, Identity(team=team, own=own))
        return team_bot

    async def authorize(self, team: str | None) -> AuthorizeResult | None:
        """As the team's installation says."""
        try:
            team_bot = await self.of(team or "")
        except DeliveryFailed as failure:
            if failure.reason == NOT_INSTALLED:
                return None
            raise NotAuthorized(failure.reason) from None
        return await team_bot.workspace.authorize(team)

    def _client_for(self, found: Installation) -> AsyncWebClient:
        shared = self._client
        # Without the SDK's retries: ours count every try, and two kinds of them would multiply.
        client = AsyncWebClient(
            token=found.bot_token,
            base_url=shared.base_url,
            session=shared.session,
            logger=shared._logger,  # noqa: SLF001 - the SDK keeps it nowhere else, and its own would quote payloads
            retry_handlers=[],
        )
        client.proxy = shared.proxy
        return client

    async def _fresh(self, kept: Kept) -> Kept:
        """The installation with a token that still lives for a while."""
        if not _ending(kept.installation, RENEW_BEFORE_S):
            return kept
        try:
            # A refresh token works once: whoever is cancelled meanwhile must not take the new one along.
            return await asyncio.shield(self._renewed(kept.installation.team)) or kept
        except (OAuthFailed, LockError) as error:
            reason = error.reason if isinstance(error, OAuthFailed) else "refresh_locked"
            _log.warning("token_not_refreshed", team=kept.installation.team, reason=reason)
            if _ending(kept.installation, LEAST_LEFT_S):
                permanent = isinstance(error, OAuthFailed) and error.permanent
                raise DeliveryFailed(reason, permanent=permanent) from None
            return kept

    async def _renewed(self, team: str) -> Kept | None:
        """Under the lock: renew, unless another process just did. What was installed anew meanwhile counts."""
        async with self._installations.refreshing(team):
            thread_mode = await self._installations.find(team)
            if thread_mode is None or not _ending(thread_mode.installation, RENEW_BEFORE_S):
                return thread_mode
            renewed = await self._oauth.refreshed(thread_mode.installation)
            _log.info("token_refreshed", team=team)
            return await self._installations.replace(thread_mode, renewed) or await self._installations.find(team)


def _ending(found: Installation, within_s: float) -> bool:
    return 0 < found.expires_at < now() + within_s


class Reading:
    """Hands each claimed message to the desk of its team."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    async def handle(self, claimed: Claimed, lease: Lease) -> Ending:
        """As the desk does. A message of a workspace that is served no longer is put away."""
        try:
            team_bot = await self._workspaces.of(team_of(claimed))
        except DeliveryFailed as failure:
            _log.warning("workspace_not_served", thread=claimed.thread, reason=failure.reason)
            return OK if failure.permanent else later(AGAIN_S)
        return await team_bot.handle(claimed, lease)

    async def tell_dead(self, claimed: Claimed, lease: Lease, reason: str) -> None:
        """As the desk does, where there is one. Raises ``DeliveryFailed`` where Slack is away."""
        try:
            team_bot = await self._workspaces.of(team_of(claimed))
        except DeliveryFailed as failure:
            _log.warning("workspace_not_served", thread=claimed.thread, reason=failure.reason)
            if not failure.permanent:
                raise  # the message is kept, and its person told by a later try
            return
        await team_bot.tell_dead(claimed, lease, reason)


def team_of(claimed: Claimed) -> str:
    """The team in a message's thread: the part before the first colon, which no id holds."""
    return claimed.thread.partition(":")[0]


def heed_uninstalling(app: AsyncApp, installations: Installations) -> None:
    """Delete a workspace's tokens when it revokes or uninstalls. Must be registered before the other listeners."""

    async def uninstalled(body: dict[str, object]) -> None:
        await _forget(installations, body)

    async def revoked(body: dict[str, object]) -> None:
        bots = mapping(body, "event", "tokens").get("bot")
        if isinstance(bots, list) and bots:  # people revoking their own tokens are none of ours
            await _forget(installations, body)

    app.event("app_uninstalled")(uninstalled)
    app.event("tokens_revoked")(revoked)


async def _forget(installations: Installations, body: dict[str, object]) -> None:
    team, when = string(body, "team_id"), body.get("event_time")
    if team:
        gone = await installations.delete(team, as_of=float(when) if isinstance(when, int | float) else None)
        _log.info("workspace_uninstalled", team=team, tokens_deleted=gone)


DeliveryOf = Callable[[str], Awaitable[Delivery]]


def delivery_of(workspaces: Workspaces) -> DeliveryOf:
    """Where to post for a team. Raises ``DeliveryFailed`` when called for one that is not served."""

    async def found(team: str) -> Delivery:
        return (await workspaces.of(team)).delivery

    return found


def language_of(workspaces: Workspaces) -> LanguageOf:
    """What a person of a team uses Slack in. Raises ``DeliveryFailed`` where that cannot be found out."""

    async def found(team: str, user: str) -> str | None:
        return await (await workspaces.of(team)).language_of(team, user)

    return found
