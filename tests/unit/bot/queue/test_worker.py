"""The worker over a real Valkey: every claimed message ends, whether its handler returns, raises or hangs."""

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from structlog.testing import capture_logs

from bot.queue import worker as turns_module
from bot.queue.claim import OK, Cancellation, Claimed, Ending, Lease, LeaseLost, give_back, give_up, now
from bot.queue.queue import MAX_TRIES, Depth, Mailbox
from bot.queue.worker import Turn, Worker, backoff
from bot.redis.server import connect
from tests.support.waiting import wait_until

THREAD = "T1:C1:1.1"
EMPTY = Depth(messages=0, leased=0, dead=0)

Behaviour = Callable[[Claimed, Lease], Awaitable[Ending]]


@dataclass
class Stage:
    """A handler whose behaviour a test chooses, and all that happened to it."""

    behaviour: Behaviour | None = None
    farewell: Callable[[], None] | None = None
    started: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    told: list[tuple[str, str]] = field(default_factory=list)
    leases: list[Lease] = field(default_factory=list)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, claimed: Claimed, lease: Lease) -> Ending:
        self.started.append(claimed.body)
        self.leases.append(lease)
        if self.behaviour is not None:
            try:
                return await self.behaviour(claimed, lease)
            except asyncio.CancelledError:
                if lease.stopped:
                    return OK
                raise
        self.ended.append(claimed.body)
        return OK

    async def until_told(self, claimed: Claimed, _lease: Lease) -> Ending:
        await self.go.wait()
        self.ended.append(claimed.body)
        return OK

    async def notify_given_up(self, claimed: Claimed, _lease: Lease, reason: str) -> None:
        if self.farewell is not None:
            self.farewell()
        self.told.append((claimed.body, reason))


def waiting_stage() -> Stage:
    """A stage whose turns wait for ``go``."""
    stage = Stage()
    stage.behaviour = stage.until_told
    return stage


async def raise_(error: BaseException) -> Ending:
    raise error


@pytest.fixture
async def mailbox(redis_client: Redis) -> AsyncIterator[Mailbox]:
    box = Mailbox(redis_client)
    yield box
    await box.aclose()


@asynccontextmanager
async def working(mailbox: Mailbox, stage: Stage, **options: Any) -> AsyncIterator[Worker]:
    """A worker that runs while the test does, then drains."""
    worker = Worker(mailbox, stage, **options)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run(), name="worker")
        await wait_until(worker.listening.is_set, "the worker listens")
        try:
            yield worker
        finally:
            worker.stop()


async def enqueue(mailbox: Mailbox, *bodies: str, thread: str = THREAD) -> None:
    for body in bodies:
        assert await mailbox.enqueue(thread, body, event_ids=[f"{thread}/{body}"])


async def hurry(redis: Redis, mailbox: Mailbox) -> None:
    """All backoffs have passed."""
    ready = mailbox.key(THREAD, "ready", THREAD.partition(":")[0])
    for thread in await redis.zrange(ready, 0, -1):
        await redis.zadd(ready, {str(thread): 1}, xx=True)
        await redis.lpush(mailbox.bell, 1)


async def empty(mailbox: Mailbox) -> bool:
    return await mailbox.depth() == EMPTY


async def head(mailbox: Mailbox) -> str:
    """The id of the message whose turn runs."""
    return (await mailbox.list_messages(THREAD))[0].id


async def test_messages_of_a_thread_run_in_order_and_threads_run_in_parallel(mailbox: Mailbox) -> None:
    stage = waiting_stage()
    await enqueue(mailbox, "1", "2", "3")
    await enqueue(mailbox, "a", thread="other")
    await enqueue(mailbox, "b", thread="one more than may run at once")
    async with working(mailbox, stage, concurrency=2) as worker:
        await wait_until(lambda: len(stage.started) == 2, "two threads have a turn")
        assert ("1" in stage.started, worker.in_flight) == (True, 2)
        assert (await mailbox.depth()).leased == 2
        stage.go.set()
        await wait_until(lambda: empty(mailbox), "the mailbox is empty")
    assert [body for body in stage.ended if body not in "ab"] == ["1", "2", "3"]


async def test_on_a_busy_processor_few_messages_are_claimed_and_others_can_overtake(mailbox: Mailbox) -> None:
    stage = Stage()
    most = 0

    async def reckon(_claimed: Claimed, _lease: Lease) -> Ending:
        nonlocal most
        for _ in range(2):
            most = max(most, worker.in_flight)
            time.sleep(0.03)  # noqa: ASYNC251 - work, not waiting
            await asyncio.sleep(0)
        return OK

    stage.behaviour = reckon
    async with working(mailbox, stage) as worker:
        for number in range(30):
            await enqueue(mailbox, str(number), thread=f"thread {number}")
        await wait_until(lambda: empty(mailbox), "the mailbox is empty", 30)
    assert len(stage.started) == 30
    assert most < 20, "turns that wait for nothing but the processor gain nothing by being begun"


async def test_a_message_waiting_for_its_workspaces_share_begins_when_a_turn_ends(
    redis_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns_module, "IDLE_S", 60.0)  # a constant, not a function
    stage = Stage()
    async with aclosing(Mailbox(redis_client, per_team=1)) as box:
        for number in range(4):
            await enqueue(box, str(number), thread=f"T1:{number}")
        async with working(box, stage) as worker:
            await wait_until(lambda: empty(box), "each was claimed without an idle look")
            worker.stop()
            await enqueue(box, "last", thread="T1:last")  # wakes the worker, which sees that it is to end


async def test_a_crash_is_logged_without_its_text_and_tried_again(redis_client: Redis, mailbox: Mailbox) -> None:
    async def crash_once(claimed: Claimed, lease: Lease) -> Ending:
        if claimed.tries == 1:
            secret = "the question's own words"
            raise KeyError(secret)
        return OK

    stage = Stage(crash_once)
    await enqueue(mailbox, "q")
    with capture_logs() as logs:
        async with working(mailbox, stage):
            await wait_until(lambda: any(log["event"] == "turn_ended" for log in logs), "the first try ended")
            await hurry(redis_client, mailbox)
            await wait_until(lambda: empty(mailbox), "the mailbox is empty")
    (crash,) = [log for log in logs if log["event"] == "turn_crashed"]
    assert (crash["error_type"], crash["thread"], crash["tries"]) == ("KeyError", THREAD, 1)
    assert "crash_once" in crash["places"][-1]
    assert "own words" not in str(logs)
    assert [log["verb"] for log in logs if log["event"] == "turn_ended"] == ["retry", "ok"]
    assert stage.told == []


async def test_a_message_that_crashes_each_time_is_given_up_and_the_person_is_told(
    redis_client: Redis, mailbox: Mailbox
) -> None:
    stage = Stage(lambda *_: raise_(ZeroDivisionError()))
    await enqueue(mailbox, "poison")

    async def has_been_told() -> bool:
        await hurry(redis_client, mailbox)
        return bool(stage.told)

    async with working(mailbox, stage):
        await wait_until(has_been_told, "the person was told")
        await wait_until(lambda: empty_but_dead(mailbox), "the message is among the dead letters")
    assert stage.started == ["poison"] * MAX_TRIES
    assert stage.told == [("poison", f"no end after {MAX_TRIES} tries")]
    (incoming,) = await mailbox.list_dead_letters()
    assert (incoming.body, incoming.reason) == ("poison", f"no end after {MAX_TRIES} tries")


async def empty_but_dead(mailbox: Mailbox) -> bool:
    return await mailbox.depth() == Depth(messages=0, leased=0, dead=1)


async def test_a_message_is_finally_given_up_even_if_the_person_cannot_be_told(
    redis_client: Redis, mailbox: Mailbox
) -> None:
    def fail() -> None:
        raise ConnectionResetError

    async def fail_for_good(claimed: Claimed, lease: Lease) -> Ending:
        return give_up("cannot be answered")

    stage = Stage(fail_for_good, fail)
    await enqueue(mailbox, "q")

    async def is_dead() -> bool:
        await hurry(redis_client, mailbox)
        return await empty_but_dead(mailbox)

    async with working(mailbox, stage):
        await wait_until(is_dead, "the message is among the dead letters")
    (incoming,) = await mailbox.list_dead_letters()
    assert incoming.reason == "crashed: ConnectionResetError"


@pytest.mark.parametrize("where", ["here", "on another worker"])
async def test_stop_ends_the_running_turn_and_the_thread_continues(mailbox: Mailbox, where: str) -> None:
    stage = waiting_stage()
    await enqueue(mailbox, "long", "next")
    async with working(mailbox, stage) as worker:
        await wait_until(lambda: worker.listening.is_set() and stage.started == ["long"], "the turn runs")
        cancel = worker.cancel if where == "here" else mailbox.cancel
        running, following = [one.id for one in await mailbox.list_messages(THREAD)]
        await cancel(Cancellation(thread=THREAD, reason="deleted", message_id=following))
        assert worker.in_flight == 1, "it means one message only"
        with capture_logs() as logs:
            await cancel(Cancellation(thread=THREAD, reason="stop", message_id=running))
            await wait_until(lambda: stage.started == ["long", "next"], "the thread goes on")
            stage.go.set()
            await wait_until(lambda: empty(mailbox), "the mailbox is empty")
    assert [line["reason"] for line in logs if line["event"] == "turn_stopped"] == ["stop"]
    assert stage.ended == ["next"]
    assert [lease.stopped for lease in stage.leases] == ["stop", None]


async def test_a_stop_before_the_handler_can_confirm_it_is_confirmed_by_the_next_try(mailbox: Mailbox) -> None:
    tries: list[int] = []

    class Starting(Stage):
        async def handle(self, claimed: Claimed, _lease: Lease) -> Ending:
            tries.append(claimed.tries)
            if len(tries) == 1:
                await asyncio.Event().wait()
            return OK

    await enqueue(mailbox, "q")
    async with working(mailbox, Starting()) as worker:
        await wait_until(lambda: worker.in_flight == 1, "the workspace's bot is opened")
        await worker.cancel(Cancellation(thread=THREAD, reason="stopped", message_id=await head(mailbox)))
        await wait_until(lambda: empty(mailbox), "the next try has ended the message")
    assert tries == [1, 1]


async def test_an_unreadable_cancellation_does_not_end_a_worker(redis_client: Redis, mailbox: Mailbox) -> None:
    """A newer version may say more, and anybody may say nonsense."""
    stage = waiting_stage()
    await enqueue(mailbox, "q")
    async with working(mailbox, stage):
        await wait_until(lambda: stage.started == ["q"], "the turn runs")
        wish = {"thread": THREAD, "reason": "stopped", "message_id": await head(mailbox), "by": "U1"}
        for told in ("garbage", "[]", '{"thread": "T1"}', json.dumps(wish)):
            await redis_client.publish(mailbox.cancel_channel, told)
        await wait_until(lambda: empty(mailbox), "what was understood is obeyed")
    assert [lease.stopped for lease in stage.leases] == ["stopped"]


async def test_a_stopped_handler_may_clean_up_and_choose_its_ending(mailbox: Mailbox) -> None:
    stage = Stage()

    async def clean_up(claimed: Claimed, lease: Lease) -> Ending:
        try:
            await stage.go.wait()
        except asyncio.CancelledError:
            assert lease.stopped == "stop"
            lease.require()
        return give_up("stopped, and said so")

    stage.behaviour = clean_up
    await enqueue(mailbox, "q")
    async with working(mailbox, stage) as worker:
        await wait_until(lambda: worker.in_flight == 1, "the turn runs")
        await worker.cancel(Cancellation(thread=THREAD, reason="stop", message_id=await head(mailbox)))
        await wait_until(lambda: empty_but_dead(mailbox), "the turn ended its own way")


async def test_a_turn_is_interrupted_when_another_worker_took_its_thread(redis_client: Redis) -> None:
    mailbox = Mailbox(redis_client, lease_s=0.4)
    stage = waiting_stage()
    await enqueue(mailbox, "q")
    with capture_logs() as logs:
        async with working(mailbox, stage) as worker:
            await wait_until(lambda: worker.in_flight == 1, "the turn runs")
            await redis_client.hset(mailbox.key(THREAD, "head", THREAD), "token", "somebody else's")
            await wait_until(lambda: worker.in_flight == 0, "the turn was interrupted")
    assert not stage.leases[0].is_held()
    assert stage.ended == []
    assert "turn_lost" in [log["event"] for log in logs]
    assert await redis_client.hget(mailbox.key(THREAD, "head", THREAD), "token") == "somebody else's"
    await mailbox.aclose()


async def test_a_turn_longer_than_its_lease_runs_once(redis_client: Redis) -> None:
    mailbox = Mailbox(redis_client, lease_s=0.4)
    stage = waiting_stage()
    await enqueue(mailbox, "q")
    async with working(mailbox, stage), working(mailbox, stage):
        await wait_until(lambda: stage.started == ["q"], "the turn runs")
        asyncio.get_running_loop().call_later(1.3, stage.go.set)
        await wait_until(lambda: empty(mailbox), "the mailbox is empty")
    assert stage.started == ["q"]
    assert stage.ended == ["q"]
    await mailbox.aclose()


async def test_a_handler_whose_lease_is_lost_does_not_touch_the_message(mailbox: Mailbox) -> None:
    stage = Stage(lambda *_: raise_(LeaseLost()))
    await enqueue(mailbox, "q")
    async with working(mailbox, stage) as worker:
        await wait_until(lambda: stage.started == ["q"] and worker.in_flight == 0, "the turn is over")
        assert await mailbox.depth() == Depth(messages=1, leased=1, dead=0)


async def test_a_lease_renewed_by_a_late_heartbeat_costs_no_try(mailbox: Mailbox) -> None:
    await enqueue(mailbox, "q")
    (claimed,) = await mailbox.claim("worker", 1)
    lease = Lease(now())
    async with asyncio.TaskGroup() as group:
        turn = Turn(claimed, lease, group.create_task(Stage().until_told(claimed, lease)))
        turn.watch()
        await asyncio.wait({turn.task})
    lease.until = claimed.leased_until
    assert turn.ending(stopping=False) == give_back()


async def test_a_handler_that_cancels_itself_counts_as_crashed(mailbox: Mailbox) -> None:
    stage = Stage(lambda *_: raise_(asyncio.CancelledError()))
    await enqueue(mailbox, "q")
    with capture_logs() as logs:
        async with working(mailbox, stage) as worker:
            await wait_until(lambda: stage.started == ["q"] and worker.in_flight == 0, "the turn is over")
    assert [log["verb"] for log in logs if log["event"] == "turn_ended"] == ["retry"]


async def test_drain_finishes_what_it_can_and_gives_back_the_rest(mailbox: Mailbox) -> None:
    stage, successor = Stage(), Stage()
    quick = asyncio.Event()

    async def quick_or_slow(claimed: Claimed, lease: Lease) -> Ending:
        await (quick if claimed.body == "quick" else stage.go).wait()
        stage.ended.append(claimed.body)
        return OK

    stage.behaviour = quick_or_slow
    await enqueue(mailbox, "quick", thread="1")
    await enqueue(mailbox, "slow", thread="2")
    async with working(mailbox, stage, drain_s=0.3) as worker:
        await wait_until(lambda: worker.in_flight == 2, "both turns run")
        worker.stop()
        await enqueue(mailbox, "new", thread="3")
        quick.set()
    assert stage.ended == ["quick"]
    assert "new" not in stage.started
    assert await mailbox.depth() == Depth(messages=2, leased=0, dead=0)
    async with working(mailbox, successor):
        await wait_until(lambda: empty(mailbox), "the successor finished")
    assert sorted(successor.ended) == ["new", "slow"]


async def test_an_immediate_end_still_gives_the_message_back(mailbox: Mailbox) -> None:
    await enqueue(mailbox, "q")
    worker = Worker(mailbox, waiting_stage())
    async with asyncio.TaskGroup() as group:
        run = group.create_task(worker.run(), name="worker")
        await wait_until(lambda: worker.in_flight == 1, "the turn runs")
        run.cancel()
    (claimed,) = await mailbox.claim("another", 1)
    assert (claimed.body, claimed.tries) == ("q", 1)


async def test_a_handler_that_resists_an_immediate_end_keeps_its_lease(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns_module, "SHUTDOWN_REPORT_TIMEOUT_S", 0.05)  # a constant, not a function
    stage = Stage()

    async def resist(claimed: Claimed, lease: Lease) -> Ending:
        try:
            await stage.go.wait()
        except asyncio.CancelledError:
            await stage.go.wait()
        return OK

    stage.behaviour = resist
    await enqueue(mailbox, "q")
    worker = Worker(mailbox, stage)
    with capture_logs() as logs:
        async with asyncio.TaskGroup() as group:
            run = group.create_task(worker.run(), name="worker")
            await wait_until(lambda: worker.in_flight == 1, "the turn runs")
            run.cancel()
            await wait_until(lambda: any(log["event"] == "turn_lost" for log in logs), "it was left alone")
            stage.go.set()
    assert await mailbox.depth() == Depth(messages=1, leased=1, dead=0)


async def test_a_cancellation_that_was_swallowed_is_repeated(mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module, "CANCEL_AGAIN_S", 0.05)  # a constant, not a function
    stage = Stage()

    async def swallow_once(claimed: Claimed, lease: Lease) -> Ending:
        with suppress(asyncio.CancelledError):
            await stage.go.wait()
        await stage.go.wait()
        return OK

    stage.behaviour = swallow_once
    await enqueue(mailbox, "q")
    async with working(mailbox, stage) as worker:
        await wait_until(lambda: worker.in_flight == 1, "the turn runs")
        await worker.cancel(Cancellation(thread=THREAD, reason="stop", message_id=await head(mailbox)))
        await wait_until(lambda: empty(mailbox), "the turn was stopped")


async def kill_server(redis: Redis) -> None:
    os.kill(int((await redis.info("server"))["process_id"]), signal.SIGKILL)


@contextmanager
def away(directory: Path) -> Iterator[None]:
    """While inside, the embedded server is dead and cannot be started again."""
    manifest = next((directory / "redis" / "appendonlydir").glob("*.manifest"))
    written = manifest.read_text()
    manifest.write_text("garbage\n")
    yield
    manifest.write_text(written)


async def test_an_outage_longer_than_a_lease_ends_the_turn_and_another_try_answers(tmp_path: Path) -> None:
    stage = waiting_stage()
    async with connect(tmp_path) as redis:
        mailbox = Mailbox(redis, lease_s=0.5)
        await enqueue(mailbox, "q")
        with capture_logs() as logs:
            async with working(mailbox, stage) as worker:
                await wait_until(lambda: worker.in_flight == 1, "the turn runs")
                with away(tmp_path):
                    await kill_server(redis)
                    await wait_until(lambda: worker.in_flight == 0, "the lease ran out")

                    def is_noticed() -> bool:
                        return {"redis_unavailable", "beat_failed"} <= {log["event"] for log in logs}

                    await wait_until(is_noticed, "the outage is noticed")
                stage.go.set()
                await wait_until(lambda: stage.ended == ["q"], "the next try answered")
                await wait_until(lambda: empty(mailbox), "the mailbox is empty")
        await mailbox.aclose()
    assert {"turn_lost", "redis_back"} <= {log["event"] for log in logs}
    assert stage.started == ["q", "q"]


async def test_stopping_while_redis_is_down_does_not_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module, "SHUTDOWN_REPORT_TIMEOUT_S", 0.1)  # a constant, not a function
    stage = waiting_stage()
    async with connect(tmp_path) as redis:
        mailbox = Mailbox(redis)
        await enqueue(mailbox, "q")
        with capture_logs() as logs:
            async with asyncio.timeout(15):
                async with working(mailbox, stage, drain_s=0) as worker:
                    await wait_until(lambda: worker.in_flight == 1, "the turn runs")
                    stuck = away(tmp_path)
                    stuck.__enter__()
                    await kill_server(redis)
                    worker.stop()
        stuck.__exit__(None, None, None)
        assert "turn_not_reported" in [log["event"] for log in logs]
        assert (await mailbox.depth()).messages == 1
        await mailbox.aclose()


def test_backoff_doubles_up_to_a_minute() -> None:
    assert [backoff(tries) for tries in (1, 2, 3, 7, 50)] == [1, 2, 4, 60, 60]


async def test_a_failing_helper_task_never_ends_the_turns(mailbox: Mailbox) -> None:
    stage, sweeps = Stage(), [ZeroDivisionError("secret text"), RedisConnectionError("away")]

    class Failing:
        async def sweep(self) -> None:
            if sweeps:
                raise sweeps.pop()

    with capture_logs() as logs:
        async with working(mailbox, stage, sweep=Failing().sweep, sweep_s=0.01):
            await wait_until(lambda: not sweeps, "both failed")
            await enqueue(mailbox, "q")
            await wait_until(lambda: stage.ended == ["q"], "it was handled")
    told = [log for log in logs if log["event"].startswith("sweep")]
    assert [(log["event"], log["error_type"]) for log in told] == [
        ("sweep_failed", "ConnectionError"),
        ("sweep_crashed", "ZeroDivisionError"),
    ]
    assert "secret" not in str(told)


async def test_a_redis_outage_during_a_turn_uses_up_no_try(redis_client: Redis, mailbox: Mailbox) -> None:
    stage = Stage()
    tries: list[int] = []

    async def fails_first(claimed: Claimed, _lease: Lease) -> Ending:
        tries.append(claimed.tries)
        if len(tries) <= MAX_TRIES:
            raise RedisConnectionError
        return OK

    stage.behaviour = fails_first
    async with working(mailbox, stage):
        await enqueue(mailbox, "q")
        while len(tries) <= MAX_TRIES:
            await hurry(redis_client, mailbox)
            await asyncio.sleep(0)
    assert tries == [1] * (MAX_TRIES + 1)
    assert await mailbox.depth() == EMPTY
