"""Opens the Redis of the settings. What a person can correct is told in a sentence without the URL's password."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from redis.asyncio import Redis

from bot.errors import WrongUse
from bot.redis.embedded import connect
from bot.redis.url import client_of
from bot.settings import Settings

NO_URL = (
    "REDIS_URL cannot be used: it must look like redis://host:6379/0, rediss://user:password@host:6379, unix:///path, "
    "redis+sentinel://host:26379,host:26379/service/0 or redis+cluster://host:6379,host:6379"
)


@asynccontextmanager
async def open_redis(settings: Settings) -> AsyncIterator[Redis]:
    """A client, not contacted yet where ``REDIS_URL`` names it. Raises ``WrongUse`` and ``EmbeddedRedisError``."""
    url, home = settings.redis_url.get_secret_value(), settings.home
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(client_of(url) if url else connect(home))
        # The URL may hold a password: its text goes into no message.
        except ValueError:
            raise WrongUse(NO_URL) from None
        except OSError as error:
            message = f"Nothing can be kept in {home}: {error.strerror}. Name another folder in ORION_HOME."
            raise WrongUse(message) from None
        yield client
