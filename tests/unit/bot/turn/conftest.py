"""The scene that most tests of turns share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tests.support.team_bot import GOOD, TeamBot, team_bot


@pytest.fixture
async def at(tmp_path: Path, redis_client: Redis) -> AsyncIterator[TeamBot]:
    """A bot whose model writes one good answer."""
    async with team_bot(tmp_path, redis_client, [GOOD]) as bot:
        yield bot
