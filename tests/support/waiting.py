"""Waiting for something to become true, instead of sleeping and hoping."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

INTERVAL_S = 0.01


async def wait_until(
    predicate: Callable[[], object | Awaitable[object]],
    description: str,
    timeout: float = 30.0,  # noqa: ASYNC109 (the limit belongs to the message of the failure)
) -> None:
    """Return as soon as ``predicate()`` (plain or async) is true; fail with ``description`` after ``timeout`` s."""
    deadline = time.monotonic() + timeout
    while True:
        result = predicate()
        if inspect.isawaitable(result):
            result = await result
        if result:
            return
        if time.monotonic() > deadline:
            message = f"waited {timeout} s in vain until {description}"
            raise AssertionError(message)
        await asyncio.sleep(INTERVAL_S)
