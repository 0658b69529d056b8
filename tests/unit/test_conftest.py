"""The guards of the tests themselves: they must bite, and must not bite what is allowed."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from threading import Event, Thread

import pytest
from redis.asyncio import Redis

from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def speak_from_earlier() -> Iterator[Callable[[], None]]:
    """A thread begun before any test of this file; whoever calls it hears it speak."""
    wanted = Event()

    def speak() -> None:
        wanted.wait()
        logging.getLogger("langfuse").error("from an earlier test")

    thread = Thread(target=speak)
    thread.start()

    def ended() -> None:
        wanted.set()
        thread.join()

    yield ended
    ended()


def test_thread_of_an_earlier_test_says_nothing_in_a_later_one(
    speak_from_earlier: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    speak_from_earlier()
    own = Thread(target=logging.getLogger("langfuse").error, args=("from this test",))
    own.start()
    own.join()
    assert caplog.messages == ["from this test"]


async def test_redis_client_starts_empty_and_answers_str(redis_client: Redis) -> None:
    assert await redis_client.dbsize() == 0
    await redis_client.set("a", "ä")
    assert await redis_client.get("a") == "ä"


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1"])
def test_no_test_leaves_this_machine(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as outward, pytest.raises(RuntimeError, match="stay on this machine"):
        outward.connect((host, 80))


async def test_no_test_asks_a_name_server() -> None:
    with pytest.raises(RuntimeError, match="stay on this machine"):
        await asyncio.get_running_loop().getaddrinfo("example.invalid", 80)


async def test_loopback_is_open() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "localhost", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        await writer.wait_closed()


async def test_wait_until_returns_when_true_and_names_what_it_waited_for() -> None:
    happened = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, happened.set)
    await wait_until(happened.is_set, "the event is set")
    with pytest.raises(AssertionError, match=r"waited 0\.01 s in vain until pigs fly"):
        await wait_until(lambda: False, "pigs fly", timeout=0.01)
