"""Signals end a start, then a run in good order, then at once; our own cancellation stays what it is."""

import asyncio
import os
import signal

import pytest

from bot.cli.signals import SIGNALS, EndedAtOnce, handle_signals


async def never() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("number", SIGNALS)
async def test_first_signal_ends_a_start(number: signal.Signals) -> None:
    closed = []
    with handle_signals():
        try:
            os.kill(os.getpid(), number)
            await never()
        finally:
            closed.append(number)
    assert closed == [number]


async def test_first_signal_asks_what_runs_to_end() -> None:
    with handle_signals() as stopping:
        stopping.running, told = True, list[str]()
        stopping.tell = lambda: told.append("ending")
        os.kill(os.getpid(), signal.SIGTERM)
        await stopping.asked.wait()
        assert told == ["ending"]


async def test_second_signal_ends_at_once() -> None:
    async def asked_twice() -> None:
        with handle_signals() as stopping:
            stopping.running = True
            os.kill(os.getpid(), signal.SIGTERM)
            await stopping.asked.wait()
            os.kill(os.getpid(), signal.SIGINT)
            await never()

    with pytest.raises(EndedAtOnce):
        await asked_twice()


async def test_cancellation_from_elsewhere_stays_one() -> None:
    async def heeded() -> None:
        with handle_signals():
            await never()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(heeded())
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()


def test_signals_are_heeded_inside_a_task_only() -> None:
    with pytest.raises(RuntimeError), handle_signals():
        pass
