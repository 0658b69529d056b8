"""What Orion needs of a Redis: commands that came with 6.2, and questions that are not evicted."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

EVICTS: Final = "throws questions away when its memory is full (maxmemory-policy {policy})"
EVICTS_REMEDY: Final = "Set `maxmemory-policy noeviction`."
_OLD: Final = (
    "this Redis ({version}) lacks {command}: Orion needs Redis 6.2 or newer, or Valkey. Install one of these and name "
    "it in REDIS_URL, or leave REDIS_URL away: Orion brings a private server."
)
_PROBE: Final = "orion:no_such_key"


async def too_old(redis: Redis) -> str:
    """What is wrong with a server that lacks a command, and what to do; else empty. Raises ``RedisError``."""
    # Both came with 6.2; Ubuntu 22.04 and Debian 11 ship 6.0.
    for command, probe in {"GETEX": redis.getex, "GETDEL": redis.getdel}.items():
        try:
            await probe(_PROBE)
        except ResponseError as error:
            if "unknown command" not in str(error).lower():
                raise
            version = "unknown version"
            with suppress(RedisError):
                version = (await redis.info("server")).get("redis_version", version)
            return _OLD.format(version=version, command=command)
    return ""


async def eviction_policy(redis: Redis) -> str:
    """The policy by which the server may throw keys away; empty where it keeps them, or does not tell."""
    try:
        policy = (await redis.config_get("maxmemory-policy")).get("maxmemory-policy", "noeviction")
    except RedisError:
        return ""
    return "" if policy == "noeviction" else str(policy)
