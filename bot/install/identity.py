"""The identity of this Orion among those that share a Redis: its key prefix, and the list of all of them.

The prefix names the workspace and the bot user, or the OAuth app, so that no Orion reads or claims another one's work.
The list remembers each token's owner, for a start while Slack is down.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from typing import Any, Final

import structlog
from redis.asyncio import Redis

from agent.packing import parse_record
from agent.payload import string
from bot.errors import WrongUse
from bot.install.takeover import take_over
from bot.settings import Settings
from bot.slack.client import open_client, try_token
from bot.slack.manifest import REQUIRED_SCOPES, UPDATE_APP

DEFAULT_PREFIX: Final = "orion"
ORIONS_KEY: Final = "orion:orions"
_REFUSED: Final = "Slack refused SLACK_BOT_TOKEN: {reason}. Reinstall the app and copy its bot token (xoxb-…)."
_SEVERAL: Final = (
    "Several Orions use this Redis: {names}. Set SLACK_BOT_TOKEN, or SLACK_CLIENT_ID and SLACK_CLIENT_SECRET, to say "
    "which one is meant."
)
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One Orion: ``prefix`` of its keys, ``name`` for people, its ``team`` (empty: many), digest of its ``token``."""

    prefix: str
    name: str
    team: str = ""
    token: str = ""


async def identify(settings: Settings) -> Identity | None:
    """Ask Slack to identify the token. None while Slack is down. Raises ``WrongUse`` if it refuses the token."""
    if settings.many_workspaces:
        app = settings.slack_client_id
        return Identity(prefix=f"{DEFAULT_PREFIX}:app-{_safe(app)}", name=f"the app {app}")
    token = settings.slack_bot_token.get_secret_value()
    async with open_client(token, api_url=settings.slack_api_url) as client:
        tried = await try_token(client)
    if tried.state == "refused":
        raise WrongUse(_REFUSED.format(reason=tried.reason))
    team, user = string(tried.reply, "team_id"), string(tried.reply, "user_id")
    if tried.state == "unreachable" or not (team and user):
        log.warning("slack_unreachable", reason=tried.reason or "auth.test named no team")
        return None
    if tried.scopes and (missing := sorted(REQUIRED_SCOPES - tried.scopes)):
        log.warning("scopes_missing", scopes=missing, remedy=UPDATE_APP)
    return Identity(
        prefix=f"{DEFAULT_PREFIX}:{_safe(team)}:{_safe(user)}",
        name=f"{string(tried.reply, 'team') or team} as {string(tried.reply, 'user') or user}",
        team=team,
        token=_digest(settings),
    )


async def recall_identity(redis: Redis, settings: Settings) -> Identity | None:
    """Find the Orion that started with this token before. Raises ``RedisError``."""
    digest = _digest(settings)
    return next((one for one in await list_orions(redis) if one.token == digest), None)


async def list_orions(redis: Redis) -> list[Identity]:
    """List the Orions that have started over this Redis. Raises ``RedisError``."""
    entries: Any = redis.hgetall(ORIONS_KEY)
    found = (parse_record(Identity, text, complete=True) for _, text in sorted((await entries).items()))
    return [one for one in found if one is not None]


async def join_redis(redis: Redis, identity: Identity) -> None:
    """Enter this Orion in the list, take over keys of an older version, warn of the others. Raises ``RedisError``."""
    known = {one.prefix: one.name for one in await list_orions(redis)}
    if identity.prefix not in known:
        await take_over(redis, DEFAULT_PREFIX, identity.prefix, identity.team)
    written: Any = redis.hset(ORIONS_KEY, identity.prefix, json.dumps(asdict(identity)))
    await written
    if others := [name for prefix, name in known.items() if prefix != identity.prefix]:
        log.warning("redis_is_shared", own_prefix=identity.prefix, others=others)


async def find_prefix(redis: Redis, settings: Settings) -> str:
    """Find the key prefix that a command means. Raises ``WrongUse`` if it is ambiguous, ``RedisError``."""
    if settings.many_workspaces or settings.slack_bot_token.get_secret_value():
        identity = await recall_identity(redis, settings) or await identify(settings)
        if identity is not None:
            return identity.prefix
    known = await list_orions(redis)
    if len(known) > 1:
        raise WrongUse(_SEVERAL.format(names=", ".join(one.name for one in known)))
    return known[0].prefix if known else DEFAULT_PREFIX


def _digest(settings: Settings) -> str:
    return hashlib.sha256(settings.slack_bot_token.get_secret_value().encode()).hexdigest()[:16]


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", name)
