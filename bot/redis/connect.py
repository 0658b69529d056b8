"""Opens the Redis of the settings and checks that it has what Orion needs: the commands of 6.2, and no eviction.

A fault that a person can correct becomes a sentence without the URL's password.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from bot.errors import WrongUse
from bot.redis.embedded import connect
from bot.redis.url import client_of
from bot.settings import Settings

NO_URL = (
    "REDIS_URL cannot be used: it must look like redis://host:6379/0, rediss://user:password@host:6379, unix:///path, "
    "redis+sentinel://host:26379,host:26379/service/0 or redis+cluster://host:6379,host:6379"
)
EVICTS: Final = "throws questions away when its memory is full (maxmemory-policy {policy})"
EVICTS_REMEDY: Final = "Set `maxmemory-policy noeviction`."
_OLD: Final = (
    "this Redis ({version}) lacks {command}: Orion needs Redis 6.2 or newer, or Valkey. Install one of these and name "
    "it in REDIS_URL, or leave REDIS_URL away: Orion brings a private server."
)
_PROBE: Final = "orion:no_such_key"


@asynccontextmanager
async def open_redis(settings: Settings) -> AsyncIterator[Redis]:
    """Open a client, not yet connected if ``REDIS_URL`` is set. Raises ``WrongUse`` and ``EmbeddedRedisError``."""
    url, home = settings.redis_url.get_secret_value(), settings.home
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(client_of(url) if url else connect(home))
        # The URL may hold a password, so its text is not in the message.
        except ValueError:
            raise WrongUse(NO_URL) from None
        except OSError as error:
            message = f"Nothing can be kept in {home}: {error.strerror}. Name another folder in ORION_HOME."
            raise WrongUse(message) from None
        yield client


async def missing_command(redis: Redis) -> str:
    """Sentence about a command that the server lacks and what to do, or an empty string. Raises ``RedisError``."""
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
    """Policy by which the server may evict keys. Empty if it keeps them or does not say."""
    try:
        policy = (await redis.config_get("maxmemory-policy")).get("maxmemory-policy", "noeviction")
    except RedisError:
        return ""
    return "" if policy == "noeviction" else str(policy)
