"""Real processes, really killed: nothing is lost, reordered or worked on by two at once.

Small and bounded; each worker is ``worker.py`` beside this file over the embedded server.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from bot.queue.queue import Mailbox
from bot.redis.server import connect
from tests.support.dead_letters import dead_letters
from tests.support.waiting import wait_until

pytestmark = pytest.mark.chaos

WORKER = Path(__file__).with_name("worker.py")
LEASE_S = 1.5


class Fleet:
    """Worker processes over one home. A worker that died is replaced by ``tend``."""

    def __init__(
        self, home: Path, log: Path, *, max_tries: float = 50, drain_s: float = 0, lease_s: float = LEASE_S
    ) -> None:
        self._command = [sys.executable, str(WORKER), str(home), str(lease_s), str(int(max_tries)), str(drain_s)]
        self._log = log
        self.processes: list[subprocess.Popen[bytes]] = []
        self.deaths = 0

    def start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            process = subprocess.Popen(self._command, stdout=log, stderr=log, cwd=WORKER.parents[2])
        self.processes.append(process)
        return process

    def tend(self) -> None:
        for process in [p for p in self.processes if p.poll() is not None]:
            self.processes.remove(process)
            self.deaths += 1
            self.start()

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@contextmanager
def fleet(home: Path, size: int, **how: float) -> Iterator[Fleet]:
    workers = Fleet(home, home / "workers.log", **how)
    try:
        for _ in range(size):
            workers.start()
        yield workers
    finally:
        workers.end()


@pytest.fixture
async def redis(tmp_path: Path) -> AsyncIterator[Redis]:
    async with connect(tmp_path) as client:
        yield client


@pytest.fixture
async def mailbox(redis: Redis) -> AsyncIterator[Mailbox]:
    box = Mailbox(redis)
    yield box
    await box.aclose()


async def lines(redis: Redis, name: str) -> list[list[str]]:
    return [str(line).split(" ") for line in await redis.lrange(name, 0, -1)]


def overlaps(log: list[list[str]]) -> int:
    """Attempts that began while an earlier attempt on the same thread was still to end (not: had died)."""
    ends = {(thread, token): place for place, (what, thread, _, token) in enumerate(log) if what == "end"}
    began: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, (what, thread, _, token) in enumerate(log):
        if what == "start" and (thread, token) in ends:
            began[thread].append((place, ends[thread, token]))
    return sum(later[0] < earlier[1] for spans in began.values() for earlier, later in pairwise(sorted(spans)))


async def idle(mailbox: Mailbox) -> bool:
    try:
        return (await mailbox.depth()).messages == 0
    except RedisError:
        return False


async def send_all(mailbox: Mailbox, dice: random.Random, *, threads: int, each: int) -> None:
    """All messages, the threads interleaved, 30 % of the events sent again at some later time."""
    sent: list[tuple[str, str, str]] = []
    for number in range(each):
        for thread in dice.sample(range(threads), threads):
            sent.append((f"t{thread}", f"{number}", f"Ev{thread}.{number}"))
            assert await mailbox.enqueue(sent[-1][0], sent[-1][1], event_ids=[sent[-1][2]])
            if dice.random() < 0.3:
                thread_again, body, event = dice.choice(sent)
                assert not await mailbox.enqueue(thread_again, body, event_ids=[event])


async def test_kills_do_not_lose_reorder_or_overlap_anything(redis: Redis, mailbox: Mailbox, tmp_path: Path) -> None:
    dice = random.Random(2)
    # A dead server has started again before the lease runs out, on a busy machine too.
    with fleet(tmp_path, 2, lease_s=2 * LEASE_S) as workers:
        await wait_until(lambda: redis.llen("workers"), "a worker runs", 30)
        await send_all(mailbox, dice, threads=10, each=6)
        for _ in range(5):
            before = await redis.llen("log")

            async def progress(before: int = before) -> bool:
                return await redis.llen("log") >= before + 4 or await idle(mailbox)

            await wait_until(progress, "some work was done", 30)
            dice.choice(workers.processes).kill()
            await wait_until(lambda: any(p.poll() is not None for p in workers.processes), "the worker is dead")
            workers.tend()
        # The server is killed too. The first process that needs it starts it again.
        os.kill(int((await redis.info("server"))["process_id"]), signal.SIGKILL)
        await wait_until(lambda: idle(mailbox), "all is done", 60)
    log = await lines(redis, "log")
    ended = Counter((thread, number) for what, thread, number, _ in log if what == "end")
    expected = {(f"t{thread}", f"{number}") for thread in range(10) for number in range(6)}
    assert set(ended) == expected, "lost"
    assert overlaps(log) == 0
    effects = [(thread, number) for thread, number, _ in dict.fromkeys(map(tuple, await lines(redis, "effects")))]
    # A worker killed between a mark and its line leaves the mark alone: never twice, always in order is what holds.
    assert max(Counter(effects).values()) == 1
    for thread in {thread for thread, _ in expected}:
        numbers = [int(number) for t, number in effects if t == thread]
        assert numbers == sorted(numbers), "out of order"
    assert workers.deaths == 5


async def test_a_message_that_kills_its_workers_becomes_a_dead_letter(
    redis: Redis, mailbox: Mailbox, tmp_path: Path
) -> None:
    await mailbox.enqueue("t", "0 die", event_ids=["a"])
    await mailbox.enqueue("t", "1", event_ids=["b"])
    await mailbox.enqueue("other", "2", event_ids=["c"])
    with fleet(tmp_path, 1, max_tries=2) as workers:

        async def over() -> bool:
            workers.tend()
            return await idle(mailbox)

        await wait_until(over, "the poison is gone and the rest answered", 60)
        assert workers.deaths == 2
    ended = {f"{thread} {number}" for what, thread, number, _ in await lines(redis, "log") if what == "end"}
    assert ended == {"other 2", "t 1"}
    assert await redis.lrange("told", 0, -1) == ["0 die: no end after 2 tries"]
    (incoming,) = await dead_letters(mailbox)
    assert (incoming.body, incoming.tries) == ("0 die", 3)


async def test_a_frozen_worker_that_wakes_has_no_further_effect(redis: Redis, mailbox: Mailbox, tmp_path: Path) -> None:
    await mailbox.enqueue("t", "0 freeze", event_ids=["a"])
    with fleet(tmp_path, 1) as workers:
        await wait_until(lambda: redis.llen("log"), "the first worker began", 30)
        frozen = workers.processes[0]
        workers.start()
        await wait_until(lambda: redis.llen("effects"), "the second worker took over", 30)
        frozen.send_signal(signal.SIGCONT)
        frozen.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(frozen.wait, 10) == 0
        await wait_until(lambda: idle(mailbox), "all is done")
    log = await lines(redis, "log")
    assert [what for what, *_ in log] == ["start", "start", "end"]
    assert log[2][3] == log[1][3] != log[0][3]
    assert [line[:2] for line in await lines(redis, "effects")] == [["t", "0"]]
