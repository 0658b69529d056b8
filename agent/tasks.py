"""Runs tasks beside a block and ends them with it. Unlike with a ``TaskGroup`` the block's own exception stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def background_tasks() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group for the tasks beside the block; leaving it waits for them. A task that fails cancels the block."""
    group = asyncio.TaskGroup()
    await group.__aenter__()
    try:
        yield group
    finally:
        await group.__aexit__(None, None, None)  # it gets to see no error of the block
