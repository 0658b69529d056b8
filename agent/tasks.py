"""Tasks that run beside a block and end with it.

Promises: what the block raises comes out as it was raised; a plain ``TaskGroup`` would wrap it and cut its tasks off.
Must never outlive the block: whoever starts a task here sees to it that it ends when the block does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def beside() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group for the tasks beside the block; leaving it waits for them. A task that fails cancels the block."""
    group = asyncio.TaskGroup()
    await group.__aenter__()
    try:
        yield group
    finally:
        await group.__aexit__(None, None, None)  # it gets to see no error of the block
