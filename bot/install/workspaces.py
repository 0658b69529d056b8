"""The workspaces that Orion serves, each with its own token.

One by ``SLACK_BOT_TOKEN``, or all that installed it.
Tokens that expire are renewed once, however many processes notice. There is no fallback to another team's token.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import structlog
from redis.asyncio import Redis
from redis.exceptions import LockError, RedisError
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from bot.delivery.delivery import Delivery
from bot.errors import WrongUse
from bot.install.installations import Installation, Installations, Seal
from bot.install.oauth import InstallPages, OAuthCalls, States
from bot.queue.lease import Lease
from bot.queue.queue import OK, Claimed, Ending, retry_uncounted
from bot.queue.worker import Handle, OnGivenUp
from bot.settings import Settings
from bot.slack.client import NotAuthorized, Workspace, copy_client, open_client
from bot.slack.message import BotIdentity
from bot.slack.payload import mapping, string
from bot.slack.web_api import DeliveryFailed

NOT_INSTALLED: Final = "not_installed"
RENEW_BEFORE_S: Final = 2 * 3600.0  # a token that ends within this time is renewed: Slack's live for twelve hours
MIN_REMAINING_S: Final = 60.0  # with less left the token could run out before the answer is posted
RETRY_AFTER_S: Final = 30.0  # a Slack that is away is away for minutes; each try costs one call
_KEYS: Final = (
    "ORION_ENCRYPTION_KEYS {what}. It encrypts the tokens of installed workspaces; make a key with: "
    "python -c 'from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())'. "
    "To change keys, put the new one first and keep the old ones behind it, with commas between."
)
_TEAMS: Final = (
    "ORION_ALLOW_TEAMS is not set: anybody could install this Orion and read its documents. "
    "Name the workspaces that may (T0123ABC,T0456DEF), or set it to * to let every workspace install it."
)
_log = structlog.get_logger()

DeliveryOf = Callable[[str], Awaitable[Delivery]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamBot:
    """All that serves one workspace. ``language_of`` asks what a person (team, user) uses Slack in."""

    workspace: Workspace
    delivery: Delivery
    language_of: Callable[[str, str], Awaitable[str | None]]
    handle: Handle
    notify_given_up: OnGivenUp


OpenTeamBot = Callable[[AsyncWebClient], TeamBot]


@dataclass(frozen=True, slots=True)
class Workspaces:
    """What arrives is handed to the bot of its team; ``of`` raises ``DeliveryFailed`` where that is not served now."""

    of: Callable[[str], Coroutine[Any, Any, TeamBot]]

    async def authorize(self, team: str | None) -> AuthorizeResult | None:
        """Bolt's authorisation; None for a team that is not served. Raises ``NotAuthorized`` to get no ack."""
        try:
            team_bot = await self.of(team or "")
        except DeliveryFailed as failure:
            if failure.reason == NOT_INSTALLED:
                return None
            raise NotAuthorized(failure.reason) from None
        return await team_bot.workspace.authorize()

    async def delivery_of(self, team: str) -> Delivery:
        """Where to post for a team. Raises ``DeliveryFailed``."""
        return (await self.of(team)).delivery

    async def language_of(self, team: str, user: str) -> str | None:
        """What a person of a team uses Slack in. Raises ``DeliveryFailed``."""
        return await (await self.of(team)).language_of(team, user)

    async def handle(self, claimed: Claimed, lease: Lease) -> Ending:
        """Handle a claimed message. One of a workspace that is served no longer is put away."""
        try:
            team_bot = await self._of(claimed)
        except DeliveryFailed as failure:
            return OK if failure.permanent else retry_uncounted(RETRY_AFTER_S)
        return await team_bot.handle(claimed, lease)

    async def notify_given_up(self, claimed: Claimed, lease: Lease, reason: str) -> None:
        """Tell that a message was given up, where it can be told. Raises ``DeliveryFailed`` where Slack is away."""
        try:
            team_bot = await self._of(claimed)
        except DeliveryFailed as failure:
            if not failure.permanent:
                raise  # the message is kept, and its person told by a later try
            return
        await team_bot.notify_given_up(claimed, lease, reason)

    async def _of(self, claimed: Claimed) -> TeamBot:
        try:
            return await self.of(claimed.thread.partition(":")[0])  # no id of a team holds a colon
        except DeliveryFailed as failure:
            _log.warning("workspace_not_served", thread=claimed.thread, reason=failure.reason)
            raise


@dataclass(frozen=True, slots=True)
class InstalledWorkspaces:
    """Every workspace with an installation. ``client`` is copied for each, its connections are shared."""

    installations: Installations
    oauth: OAuthCalls
    client: AsyncWebClient
    open_team_bot: OpenTeamBot
    _team_bots: dict[str, TeamBot] = field(default_factory=dict)

    async def of(self, team: str) -> TeamBot:
        """The team's bot, with its token in Redis. Raises ``DeliveryFailed``: ``not_installed``, or not renewable."""
        found = await self.installations.find(team) if team else None
        if found is None:
            # What served a workspace that is gone must not live on with its token.
            self._team_bots.pop(team, None)
            raise DeliveryFailed(NOT_INSTALLED, permanent=True)
        found = await self._with_fresh_token(found)
        if team not in self._team_bots:
            self._team_bots[team] = self.open_team_bot(copy_client(self.client, found.bot_token))
        team_bot = self._team_bots[team]
        team_bot.workspace.adopt(found.bot_token, BotIdentity(user=found.bot_user, bot=found.bot_id, team=team))
        return team_bot

    async def _with_fresh_token(self, found: Installation) -> Installation:
        """The installation with a token that still lives for a while."""
        if not _expires_within(found, RENEW_BEFORE_S):
            return found
        try:
            # A refresh token works once: whoever is cancelled meanwhile must not take the new one along.
            return await asyncio.shield(self._refresh_once(found.team)) or found
        except (DeliveryFailed, LockError) as error:
            reason = error.reason if isinstance(error, DeliveryFailed) else "refresh_locked"
            _log.warning("token_not_refreshed", team=found.team, reason=reason)
            if _expires_within(found, MIN_REMAINING_S):
                permanent = isinstance(error, DeliveryFailed) and error.refused
                raise DeliveryFailed(reason, permanent=permanent) from None
            return found

    async def _refresh_once(self, team: str) -> Installation | None:
        """Under the lock: renew, unless another process just did. What was installed anew meanwhile counts."""
        async with self.installations.refresh_lock(team):
            found = await self.installations.find(team)
            if found is None or not _expires_within(found, RENEW_BEFORE_S):
                return found
            renewed = await self.oauth.refresh(found)
            _log.info("token_refreshed", team=team)
            return await self.installations.replace(found, renewed) or await self.installations.find(team)


def _expires_within(found: Installation, within_s: float) -> bool:
    return 0 < found.expires_at < time.time() + within_s


def register_uninstall_listeners(app: AsyncApp, installations: Installations) -> None:
    """Delete a workspace's tokens when it revokes or uninstalls. Must be registered before the other listeners."""

    async def on_uninstall(body: dict[str, object]) -> None:
        team, when = string(body, "team_id"), body.get("event_time")
        if team:
            gone = await installations.delete(team, as_of=float(when) if isinstance(when, int | float) else None)
            _log.info("workspace_uninstalled", team=team, tokens_deleted=gone)

    async def on_revoke(body: dict[str, object]) -> None:
        if mapping(body, "event", "tokens").get("bot"):  # people revoking their own tokens are none of ours
            await on_uninstall(body)

    app.event("app_uninstalled")(on_uninstall)
    app.event("tokens_revoked")(on_revoke)


class Slack(NamedTuple):
    """The workspaces, and a client without a place of its own for what is common to all."""

    client: AsyncWebClient
    workspaces: Workspaces
    installing: InstallPages | None = None


@asynccontextmanager
async def open_slack(
    settings: Settings, redis: Redis, open_team_bot: OpenTeamBot, *, prefix: str
) -> AsyncIterator[Slack]:
    """What ``SLACK_BOT_TOKEN`` opens, else what workspaces installed. Raises ``WrongUse``."""
    if not settings.many_workspaces:
        token = settings.slack_bot_token.get_secret_value()
        async with open_client(token, api_url=settings.slack_api_url) as client:
            only = open_team_bot(client)

            async def of(_team: str) -> TeamBot:
                return only

            yield Slack(client, Workspaces(of))
        return
    teams = teams_of(settings)
    installations = Installations(redis, seal_of(settings), prefix=prefix)
    await _reseal_all(installations)
    secret = settings.slack_client_secret.get_secret_value()
    async with open_client("", api_url=settings.slack_api_url) as client:
        calls = OAuthCalls(client, client_id=settings.slack_client_id, client_secret=secret)
        of_installed = InstalledWorkspaces(installations, calls, client, open_team_bot).of
        pages = InstallPages(calls, States(redis, prefix=prefix), installations, teams)
        yield Slack(client, Workspaces(of_installed), pages)


def teams_of(settings: Settings) -> frozenset[str]:
    """The workspaces that may install Orion; none named means all. Raises ``WrongUse`` where nobody decided."""
    if not settings.allow_teams:
        raise WrongUse(_TEAMS)
    return frozenset() if "*" in settings.allow_teams else settings.allow_teams


def seal_of(settings: Settings) -> Seal:
    """The configured keys. Raises ``WrongUse`` with what to do."""
    if not settings.fernet_keys:
        raise WrongUse(_KEYS.format(what="is not set"))
    try:
        return Seal(settings.fernet_keys)
    except ValueError:
        raise WrongUse(_KEYS.format(what="cannot be used: each key must be 32 bytes in url-safe base64")) from None


async def _reseal_all(installations: Installations) -> None:
    """After a change of keys everything is sealed with the new one, by being read, so that the old one can go."""
    try:
        found = [await installations.find(team) for team in await installations.teams()]
    except RedisError as error:
        _log.warning("installations_not_looked_at", reason=type(error).__name__)
        return
    _log.info("workspaces_installed", count=len(found) - found.count(None), unreadable=found.count(None))
