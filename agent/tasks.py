"""Runs tasks in the background of a block. Unlike a ``TaskGroup`` it does not wrap the block's own exception."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def background_tasks() -> AsyncIterator[asyncio.TaskGroup]:
    """Open a task group for the block. On leaving, wait for its tasks; a task that fails cancels the block."""
    group = asyncio.TaskGroup()
    await group.__aenter__()
    try:
        yield group
    finally:
        await group.__aexit__(None, None, None)  # without the block's error, which would be wrapped
