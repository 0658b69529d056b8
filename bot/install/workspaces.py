"""The workspaces that Orion serves, each with its own token: one by ``SLACK_BOT_TOKEN``, or all that installed it.

An expiring token is refreshed once across processes. A team without a token never falls back to another team's.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import structlog
from redis.asyncio import Redis
from redis.exceptions import LockError, RedisError
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from agent.json_data import mapping, string
from agent.thread.store import team_of
from bot.delivery.delivery import Delivery
from bot.errors import WrongUse
from bot.install.installations import (
    Installation,
    Installations,
    InstallPages,
    OAuthCalls,
    Seal,
    States,
    UnreadableInstallation,
)
from bot.queue.claim import OK, Claimed, Ending, Lease, give_back
from bot.queue.worker import Handler
from bot.settings import Settings
from bot.slack.client import NotAuthorized, copy_client, open_client
from bot.slack.directory import SlackDirectory
from bot.slack.manifest import INSTALL_EVENTS
from bot.slack.message import BotIdentity
from bot.slack.web_api import DeliveryFailed

NOT_INSTALLED: Final = "not_installed"
OTHER_TEAM: Final = "other_team"
# a token that expires within this time is refreshed; Slack's tokens live for twelve hours
RENEW_BEFORE_S: Final = 2 * 3600.0
MIN_REMAINING_S: Final = 60.0  # with less time the token could expire before the answer is posted
RETRY_AFTER_S: Final = 30.0  # Slack's outages last minutes; each try costs one call
_KEYS: Final = (
    "ORION_ENCRYPTION_KEYS {what}. It encrypts the tokens of installed workspaces; make a key with: "
    "openssl rand -base64 32 | tr '+/' '-_'. "
    "To change keys, put the new one first and keep the old ones after it, separated by commas."
)
_WRONG_KEY: Final = (
    "None of ORION_ENCRYPTION_KEYS is the key under which workspaces installed Orion: their tokens cannot be read. "
    "Nothing was changed. Put the earlier key back (after the new one, separated by a comma) and start again. "
    "If it is lost, delete the keys {keys} in Redis and let every workspace install Orion again."
)
_TEAMS: Final = (
    "ORION_ALLOW_TEAMS is not set: anyone could install this Orion and read its documents. "
    "Name the workspaces that may (T0123ABC,T0456DEF), or set it to * to let every workspace install it."
)
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamBot:
    """The parts that serve one workspace."""

    delivery: Delivery
    people: SlackDirectory
    handler: Handler


MakeBot = Callable[[AsyncWebClient], TeamBot]
"""Makes the bot of one workspace's client (``bot.app``)."""


class Workspaces(ABC):
    """Routes each event and message to the bot of its team."""

    @abstractmethod
    async def of(self, team: str) -> TeamBot:
        """Return the team's bot. Raises ``DeliveryFailed`` if none serves it."""

    @abstractmethod
    async def teams(self) -> Sequence[str]:
        """Return the ids of all workspaces. Raises ``RedisError``."""

    async def authorize(self, team: str | None) -> AuthorizeResult | None:
        """Authorize an event for Bolt. None if the team is not served. Raises ``NotAuthorized`` to withhold the ack."""
        try:
            team_bot = await self.of(team or "")
        except DeliveryFailed as failure:
            if failure.reason == NOT_INSTALLED:
                return None
            raise NotAuthorized(failure.reason) from None
        return await team_bot.delivery.workspace.authorize()

    async def handle(self, claimed: Claimed, lease: Lease) -> Ending:
        """Handle a claimed message. Drop one of a workspace that is no longer served."""
        try:
            team_bot = await self.of(team_of(claimed.thread))
        except DeliveryFailed as failure:
            log.warning("workspace_not_served", thread=claimed.thread, reason=failure.reason)
            return OK if failure.permanent else give_back(RETRY_AFTER_S)
        return await team_bot.handler.handle(claimed, lease)

    async def notify_given_up(self, claimed: Claimed, lease: Lease, reason: str) -> None:
        """Notify the person of a message that was given up. Raises ``DeliveryFailed`` if Slack is down."""
        try:
            team_bot = await self.of(team_of(claimed.thread))
        except DeliveryFailed as failure:
            log.warning("workspace_not_served", thread=claimed.thread, reason=failure.reason)
            if not failure.permanent:
                raise  # the message is kept, and a later try notifies the person
            return
        await team_bot.handler.notify_given_up(claimed, lease, reason)


@dataclass(frozen=True)
class OneWorkspace(Workspaces):
    """The workspace of ``SLACK_BOT_TOKEN``."""

    team_bot: TeamBot

    async def of(self, team: str) -> TeamBot:
        """Return its bot. Raises ``DeliveryFailed`` for work of another Orion or for another workspace's token."""
        own = await self.team_bot.delivery.workspace.identity()
        if team and own.team not in {"", team}:
            raise DeliveryFailed(OTHER_TEAM, permanent=False)
        return self.team_bot

    async def teams(self) -> Sequence[str]:
        """Return one empty id, for which no call to Slack is needed."""
        return ("",)


@dataclass(frozen=True)
class InstalledWorkspaces(Workspaces):
    """All installed workspaces. The client of ``oauth`` is copied for each and shares its connections."""

    installations: Installations
    oauth: OAuthCalls
    make_bot: MakeBot
    allowed_teams: frozenset[str] = frozenset()  # none named: all
    _team_bots: dict[str, TeamBot] = field(default_factory=dict)

    async def of(self, team: str) -> TeamBot:
        """Return the team's bot with its stored token. Raises ``DeliveryFailed`` (``not_installed``, no refresh)."""
        found = await self.installations.find(team) if team and self._allows(team) else None
        if found is None:
            # The bot of a workspace that uninstalled must not keep its token.
            self._team_bots.pop(team, None)
            raise DeliveryFailed(NOT_INSTALLED, permanent=True)
        found = await self._with_fresh_token(found)
        if team not in self._team_bots:
            self._team_bots[team] = self.make_bot(copy_client(self.oauth.client, found.bot_token))
        team_bot, own = self._team_bots[team], BotIdentity(user=found.bot_user, bot=found.bot_id, team=team)
        team_bot.delivery.workspace.use_installation(found.bot_token, own)
        return team_bot

    async def teams(self) -> Sequence[str]:
        """Return the workspaces that installed Orion and are allowed."""
        return [team for team in await self.installations.teams() if self._allows(team)]

    def _allows(self, team: str) -> bool:  # a team may have been taken off the list since it installed Orion
        return not self.allowed_teams or team in self.allowed_teams

    async def _with_fresh_token(self, found: Installation) -> Installation:
        if not _expires_within(found, RENEW_BEFORE_S):
            return found
        try:
            # A refresh token works once: a cancelled caller must not lose the new one.
            return await asyncio.shield(self._refresh_once(found.team)) or found
        except (DeliveryFailed, LockError) as error:
            reason = error.reason if isinstance(error, DeliveryFailed) else "refresh_locked"
            log.warning("token_not_refreshed", team=found.team, reason=reason)
            if _expires_within(found, MIN_REMAINING_S):
                permanent = isinstance(error, DeliveryFailed) and error.is_refused
                raise DeliveryFailed(reason, permanent=permanent) from None
            return found

    async def _refresh_once(self, team: str) -> Installation | None:
        """Refresh under the lock, unless another process has just done so. A new installation takes precedence."""
        async with self.installations.refresh_lock(team):
            found = await self.installations.find(team)
            if found is None or not _expires_within(found, RENEW_BEFORE_S):
                return found
            renewed = await self.oauth.refresh(found)
            log.info("token_refreshed", team=team)
            return await self.installations.replace(found, renewed) or await self.installations.find(team)


def _expires_within(found: Installation, within_s: float) -> bool:
    return 0 < found.expires_at < time.time() + within_s


def register_uninstall_listeners(app: AsyncApp, installations: Installations) -> None:
    """Delete a workspace's tokens when it revokes or uninstalls."""

    async def on_uninstall(body: dict[str, object]) -> None:
        team, when, event = string(body, "team_id"), body.get("event_time"), mapping(body, "event")
        # People may revoke their own tokens.
        if team and (string(event, "type") == "app_uninstalled" or mapping(event, "tokens").get("bot")):
            gone = await installations.delete(team, as_of=float(when) if isinstance(when, int | float) else None)
            log.info("workspace_uninstalled", team=team, tokens_deleted=gone)

    for kind in INSTALL_EVENTS:
        app.event(kind)(on_uninstall)


class Slack(NamedTuple):
    """The workspaces, and a client for calls that belong to no workspace."""

    client: AsyncWebClient
    workspaces: Workspaces
    installing: InstallPages | None = None


@asynccontextmanager
async def open_slack(settings: Settings, redis: Redis, make_bot: MakeBot, *, prefix: str) -> AsyncIterator[Slack]:
    """Open the workspace of ``SLACK_BOT_TOKEN``, or all installed ones. Raises ``WrongUse``."""
    if not settings.many_workspaces:
        token = settings.slack_bot_token.get_secret_value()
        async with open_client(token, api_url=settings.slack_api_url) as client:
            yield Slack(client, OneWorkspace(make_bot(client)))
        return
    teams = teams_of(settings)
    installations = Installations(redis, seal_of(settings), prefix=prefix)
    await _check_keys(installations)
    secret = settings.slack_client_secret.get_secret_value()
    async with open_client("", api_url=settings.slack_api_url) as client:
        calls = OAuthCalls(client, client_id=settings.slack_client_id, client_secret=secret)
        pages = InstallPages(calls, States(redis, prefix=prefix), installations, teams)
        yield Slack(client, InstalledWorkspaces(installations, calls, make_bot, teams), pages)


def teams_of(settings: Settings) -> frozenset[str]:
    """Return the workspaces that may install Orion; empty means all. Raises ``WrongUse`` if the setting is missing."""
    if not settings.allow_teams:
        raise WrongUse(_TEAMS)
    return frozenset() if "*" in settings.allow_teams else settings.allow_teams


def seal_of(settings: Settings) -> Seal:
    """Return the seal of the configured keys. Raises ``WrongUse`` with what to do."""
    if not settings.fernet_keys:
        raise WrongUse(_KEYS.format(what="is not set"))
    try:
        return Seal(settings.fernet_keys)
    except ValueError:
        raise WrongUse(_KEYS.format(what="cannot be used: each key must be 32 bytes in url-safe base64")) from None


async def require_right_key(installations: Installations) -> None:
    """Raise ``WrongUse`` with what to do if no key is the one with which workspaces installed Orion."""
    if not await installations.has_right_key():
        raise WrongUse(_WRONG_KEY.format(keys=installations.key("").rstrip(":") + "*"))


async def _check_keys(installations: Installations) -> None:
    """Raise ``WrongUse`` if the keys are wrong. Else read all installations, which encrypts them with the first key."""
    readable, teams = 0, tuple[str, ...]()
    try:
        await require_right_key(installations)
        await installations.keep_known_text()
        teams = await installations.teams()
        for team in teams:
            with suppress(UnreadableInstallation):
                readable += await installations.find(team) is not None
    except RedisError as error:
        log.warning("installations_not_looked_at", reason=type(error).__name__)
        return
    log.info("workspaces_installed", count=readable, unreadable=len(teams) - readable)
