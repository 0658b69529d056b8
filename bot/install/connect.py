"""Opens Slack's side of the settings.

One workspace by its token, or all that installed Orion. Does not contact Slack.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import WrongUse
from bot.install.installations import BadKey, Installations, Seal
from bot.install.oauth import InstallPages, OAuthCalls, States
from bot.install.workspaces import InstalledWorkspaces, OpenTeamBot, TeamBot, Workspaces
from bot.settings import Settings
from bot.slack.client import open_client

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
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

            yield Slack(client=client, workspaces=Workspaces(of))
        return
    teams = teams_of(settings)
    installations = Installations(redis, seal_of(settings), prefix=prefix)
    await _seal_anew(installations)
    secret = settings.slack_client_secret.get_secret_value()
    async with open_client("", api_url=settings.slack_api_url) as client:
        calls = OAuthCalls(client, client_id=settings.slack_client_id, client_secret=secret)
        yield Slack(
            client=client,
            workspaces=Workspaces(InstalledWorkspaces(installations, calls, client, open_team_bot).of),
            installing=InstallPages(
                calls=calls, states=States(redis, prefix=prefix), installations=installations, teams=teams
            ),
        )


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
    except BadKey as error:
        raise WrongUse(_KEYS.format(what=f"cannot be used: {error}")) from None


async def _seal_anew(installations: Installations) -> None:
    """After a change of keys everything is sealed with the new one, so that the old one can go."""
    try:
        readable, known = await installations.seal_anew(), len(await installations.teams())
    except RedisError as error:
        _log.warning("installations_not_looked_at", reason=type(error).__name__)
        return
    _log.info("workspaces_installed", count=readable, unreadable=known - readable)
