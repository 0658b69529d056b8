"""Takes over the keys of the previous version, which began with ``{orion:0}`` or ``orion:`` for every Orion in a Redis.

Stop processes of that version first. Keys that name another workspace stay for the Orion that serves it. A moved thread
loses its lease: its old worker is refused by the fencing token, and the message is claimed again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import structlog
from redis.asyncio import Redis
from redis.exceptions import LockError, NoPermissionError, ResponseError

from agent.thread.store import hash_tag, shards_of, team_of
from bot.queue.queue import DEAD_TTL_S
from bot.redis.cluster import Cluster

LOCK_TTL_S: Final = 600.0
_BATCH: Final = 500
_TEAM: Final = re.compile(r"(?:^|:)([TE][A-Z0-9]{2,})(?=:|$)")
_INSTALL_KINDS: Final = frozenset(
    {"install", "installs", "install_lock", "oauth_state", "oauth_begun", "install_key_check"}
)
# The queue's own structure: rebuilt from the mailboxes, entry by entry.
_STRUCTURE: Final = frozenset({"lease", "teams", "ready", "bell", "fence", "swept", "swept_to", "replicated", "orions"})
log = structlog.get_logger()


async def take_over(redis: Redis, source: str, target: str, team: str = "") -> None:
    """Move the keys of prefix ``source`` to ``target``: those of this ``team`` or, if it is empty, of all teams.

    Raises ``RedisError``.
    """
    try:
        async with redis.lock(f"{target}:taking_over", timeout=LOCK_TTL_S, blocking_timeout=LOCK_TTL_S):
            moves: dict[str, str] = {}
            mailboxes: dict[str, str] = {}
            for pattern in (f"{{{source}:*", f"{source}:*"):
                async for old in redis.scan_iter(match=pattern, count=1_000):
                    if new := _new_name(old, source, target, team):
                        (mailboxes if ":mb:" in new else moves)[old] = new
            await _rename(redis, moves)
            with suppress(NoPermissionError):  # a user that may not see the old keys never had any
                await _move_shared(redis, source, target, team)
            # Mailboxes come last: a thread that is claimed finds its state and marks.
            await _rename(redis, mailboxes)
            await _make_ready(redis, target, mailboxes)
    except LockError:
        log.warning("takeover_runs_elsewhere", prefix=target)
        return
    if moves or mailboxes:
        log.info("keys_taken_over", prefix=target, keys=len(moves) + len(mailboxes), mailboxes=len(mailboxes))


def _new_name(old: str, source: str, target: str, team: str) -> str:
    """Name of a key after the move. Empty if it stays."""
    own = re.escape(source)
    found = re.fullmatch(rf"(?:\{{{own}:([\d/]+)\}}|{own}):(([a-z_]+)(?::(.*))?)", old, re.DOTALL)
    if found is None or found[3] in _STRUCTURE or found[3] in {"dead", "served"}:
        return ""
    named = _TEAM.search(found[4] or "")
    if team and (found[3] in _INSTALL_KINDS or (named is not None and named[1] != team)):
        return ""
    new = f"{target}:{{{found[1]}}}:{found[2]}" if found[1] else f"{target}:{found[2]}"
    return new if new != old else ""


async def _rename(redis: Redis, moves: Mapping[str, str]) -> None:
    if isinstance(redis, Cluster):
        for old, new in moves.items():
            await _copy_across_slots(redis, old, new)
        return
    pairs = list(moves.items())
    for start in range(0, len(pairs), _BATCH):
        async with redis.pipeline(transaction=False) as pipe:
            for old, new in pairs[start : start + _BATCH]:
                pipe.renamenx(old, new)
            await pipe.execute(raise_on_error=False)  # a key can expire meanwhile


async def _copy_across_slots(redis: Redis, old: str, new: str) -> None:
    value, ttl_ms = await redis.dump(old), await redis.pttl(old)
    if value is not None:
        try:
            await redis.restore(new, max(0, ttl_ms), value)
        except ResponseError as error:
            if "BUSYKEY" not in str(error):
                raise
        await redis.delete(old)


async def _move_shared(redis: Redis, source: str, target: str, team: str) -> None:
    """Move this team's members of shared keys: dead letters and served places."""
    places: Any = await redis.zrange(f"{source}:served", 0, -1, withscores=True)
    if own := {place: score for place, score in places if not team or team_of(place) == team}:
        await redis.zadd(f"{target}:served", own, nx=True)
        if target != source:
            await redis.zrem(f"{source}:served", *own)
    shards = shards_of(redis)
    for shard in ["0"] if shards == 1 else [f"{number}/{shards}" for number in range(shards)]:
        old, new = f"{{{source}:{shard}}}:dead", f"{target}:{{{shard}}}:dead"
        letters: Any = await redis.xrange(old)
        for entry_id, fields in letters:
            if not team or team_of(fields["thread"]) == team:
                await redis.xadd(new, fields)
                await redis.expire(new, DEAD_TTL_S)
                await redis.xdel(old, entry_id)


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
