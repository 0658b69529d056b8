"""The scene that most tests of the gates share."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from tests.support.gates import GateScene, gates


@pytest.fixture
async def at(redis_client: Redis) -> AsyncIterator[GateScene]:
    """The gates before an answerer that notes what came through."""
    async with gates(redis_client) as scene:
        yield scene
