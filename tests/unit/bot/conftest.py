"""The server that most tests of the bot share."""

from collections.abc import AsyncIterator

import pytest

from tests.support.local_slack import Slack, local_slack


@pytest.fixture
async def slack() -> AsyncIterator[Slack]:
    """A local workspace and Orion's side of it."""
    async with local_slack() as opened:
        yield opened
