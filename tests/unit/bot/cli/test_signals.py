"""Signals end a start, then a run in good order, then at once; our own cancellation stays what it is."""

import asyncio

from bot.cli.signals import handle_signals


async def never() -> None:
    await asyncio.Event().wait()


async def test_an_outside_cancellation_remains_a_cancellation() -> None:
    async def wait_for_signals() -> None:
        with handle_signals():
            await never()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(wait_for_signals())
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()
