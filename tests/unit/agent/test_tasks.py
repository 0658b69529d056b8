import asyncio

import pytest

from agent.tasks import background_tasks


async def test_an_error_in_the_block_is_raised_unchanged_after_the_task_ends() -> None:
    ended = asyncio.Event()
    over = asyncio.Event()

    async def write() -> None:
        await over.wait()
        ended.set()

    async def block() -> None:
        async with background_tasks() as group:
            group.create_task(write())
            over.set()
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await block()
    assert ended.is_set()


async def test_a_task_that_fails_cancels_the_block() -> None:
    async def fails() -> None:
        raise ValueError

    async def block() -> None:
        async with background_tasks() as group:
            group.create_task(fails())
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as raised:
        await block()
    assert [type(error) for error in raised.value.exceptions] == [ValueError]
