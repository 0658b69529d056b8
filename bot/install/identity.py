"""The identity of this Orion among those that share a Redis: its key prefix, the list of all Orions, and older keys.

The prefix names the workspace and the bot user, or the OAuth app, so that no Orion reads or claims another one's work.
The list remembers each token's owner, so that Orion can start while Slack is down. Keys of the previous version began
with ``{orion:0}`` or ``orion:`` for every Orion in a Redis; they are taken over once its processes are stopped.
"""

import hashlib
import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

import structlog
from redis.asyncio import Redis
from redis.exceptions import LockError, NoPermissionError, ResponseError

from agent.json_data import parse_record, string
from agent.thread.store import hash_tag, shards_of, team_of
from bot.errors import WrongUse
from bot.queue.queue import DEAD_TTL_S
from bot.redis.client import Cluster
from bot.settings import Settings
from bot.slack.client import open_client, try_token
from bot.slack.manifest import REQUIRED_SCOPES, UPDATE_APP

LOCK_TTL_S: Final = 600.0
_TEAM: Final = re.compile(r"(?:^|:)([TE][A-Z0-9]{2,})(?=:|$)")
_OLD_KEY: Final = re.compile(r"(?:\{orion:([\d/]+)\}|orion):(([a-z_]+)(?::(.*))?)", re.DOTALL)
_INSTALL_KINDS: Final = frozenset(
    {"install", "installs", "install_lock", "oauth_state", "oauth_begun", "install_key_check"}
)
# The queue's own structure, which is rebuilt from the mailboxes entry by entry.
_STRUCTURE: Final = frozenset({"lease", "teams", "ready", "bell", "fence", "swept", "swept_to", "replicated", "orions"})
DEFAULT_PREFIX: Final = "orion"
ORIONS_KEY: Final = "orion:orions"
_REFUSED: Final = "Slack refused SLACK_BOT_TOKEN ({reason}). Reinstall the app and copy its bot token (xoxb-…)."
_SEVERAL: Final = (
    "Several Orions use this Redis: {names}. Set SLACK_BOT_TOKEN, or SLACK_CLIENT_ID and SLACK_CLIENT_SECRET, to say "
    "which one is meant."
)
log = structlog.get_logger()


async def _take_over(redis: Redis, target: str, team: str) -> None:
    """Move an older version's keys to prefix ``target``: those of this ``team`` or, if it is empty, of all teams."""
    try:
        async with redis.lock(f"{target}:taking_over", timeout=LOCK_TTL_S, blocking_timeout=LOCK_TTL_S):
            moves: dict[str, str] = {}
            mailboxes: dict[str, str] = {}
            for pattern in (f"{{{DEFAULT_PREFIX}:*", f"{DEFAULT_PREFIX}:*"):
                async for old in redis.scan_iter(match=pattern, count=1_000):
                    if new := _new_name(old, target, team):
                        (mailboxes if ":mb:" in new else moves)[old] = new
            await _rename(redis, moves)
            with suppress(NoPermissionError):  # a Redis user without access to the old keys never had any
                await _move_shared(redis, target, team)
                # Mailboxes come last, so that a claimed thread finds its state and marks.
                await _rename(redis, mailboxes)
                await _make_ready(redis, target, mailboxes)
    except LockError:
        log.warning("takeover_runs_elsewhere", prefix=target)
        return
    if moves or mailboxes:
        log.info("keys_taken_over", prefix=target, keys=len(moves) + len(mailboxes), mailboxes=len(mailboxes))


def _new_name(old: str, target: str, team: str) -> str:
    """Name of a key after the move. Empty if it stays."""
    found = _OLD_KEY.fullmatch(old)
    if found is None or found[3] in _STRUCTURE or found[3] in {"dead", "served"}:
        return ""
    named = _TEAM.search(found[4] or "")
    if team and (found[3] in _INSTALL_KINDS or (named is not None and named[1] != team)):
        return ""
    return f"{target}:{{{found[1]}}}:{found[2]}" if found[1] else f"{target}:{found[2]}"


async def _rename(redis: Redis, moves: Mapping[str, str]) -> None:
    """Rename keys. Skip a key that has expired, whose new name is taken, or that we may not see.

    A mailbox whose new name is taken has later messages of the same thread.
    """
    for old, new in moves.items():
        try:
            if ":mb:" in new and await redis.exists(new):
                entries: Any = await redis.lrange(old, 0, -1)
                for entry in entries:  # one by one: the older version may still add and remove some
                    await redis.rpush(new, entry)
                    await redis.lrem(old, 1, entry)
            elif not isinstance(redis, Cluster):
                await redis.renamenx(old, new)
            elif (value := await redis.dump(old)) is not None:  # its nodes cannot rename a key across slots
                await redis.restore(new, max(0, await redis.pttl(old)), value)
                await redis.delete(old)
        except ResponseError as error:
            left_out = isinstance(error, NoPermissionError) or "BUSYKEY" in str(error) or "no such key" in str(error)
            if not left_out:
                raise


async def _move_shared(redis: Redis, target: str, team: str) -> None:
    """Move this team's members of shared keys: dead letters and served places."""
    served = f"{DEFAULT_PREFIX}:served"
    places: Any = await redis.zrange(served, 0, -1, withscores=True)
    if own := {place: score for place, score in places if not team or team_of(place) == team}:
        await redis.zadd(f"{target}:served", own, nx=True)
        await redis.zrem(served, *own)
    for shard in _old_shards(redis):
        old, new = f"{{{DEFAULT_PREFIX}:{shard}}}:dead", f"{target}:{{{shard}}}:dead"
        letters: Any = await redis.xrange(old)
        for entry_id, fields in letters:
            if not team or team_of(fields["thread"]) == team:
                await redis.xadd(new, fields)
                await redis.expire(new, DEAD_TTL_S)
                await redis.xdel(old, entry_id)


def _old_shards(redis: Redis) -> list[str]:
    shards = shards_of(redis)
    return ["0"] if shards == 1 else [f"{number}/{shards}" for number in range(shards)]


async def _has_old_work(redis: Redis) -> bool:
    """Return whether messages wait under older names, as after an upgrade that was undone and then repeated."""
    with suppress(NoPermissionError):
        tags = (f"{{{DEFAULT_PREFIX}:{shard}}}" for shard in _old_shards(redis))
        return any([await redis.exists(f"{tag}:teams", f"{tag}:lease") for tag in tags])
    return False


async def _make_ready(redis: Redis, target: str, mailboxes: Mapping[str, str]) -> None:
    for old, new in mailboxes.items():
        thread, old_tag = new.partition(":mb:")[2], old.partition(":mb:")[0]
        tag, team = hash_tag(thread, prefix=target, shards=shards_of(redis)), team_of(thread)
        await redis.hdel(f"{tag}:head:{thread}", "token", "until", "worker")
        await redis.zadd(f"{tag}:ready:{team}", {thread: round(time.time() * 1000)}, nx=True)
        await redis.zadd(f"{tag}:teams", {team: 0}, nx=True)
        await redis.zrem(f"{old_tag}:lease", thread)
        await redis.delete(f"{old_tag}:ready:{team}")
        await redis.zrem(f"{old_tag}:teams", team)


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
    if tried.state == "unreachable":
        log.warning("slack_unreachable", reason=tried.reason)
        return None
    team, user = string(tried.reply, "team_id"), string(tried.reply, "user_id")
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
    """Add this Orion to the list, take over keys of an older version, log other Orions. Raises ``RedisError``."""
    known = {one.prefix: one.name for one in await list_orions(redis)}
    if identity.prefix not in known or await _has_old_work(redis):
        await _take_over(redis, identity.prefix, identity.team)
    written: Any = redis.hset(ORIONS_KEY, identity.prefix, json.dumps(asdict(identity)))
    await written
    if others := [name for prefix, name in known.items() if prefix != identity.prefix]:
        log.warning("redis_is_shared", own_prefix=identity.prefix, others=others)


async def find_prefix(redis: Redis, settings: Settings) -> str:
    """Find the key prefix for a command. Raises ``WrongUse`` if it is ambiguous, and ``RedisError``."""
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
