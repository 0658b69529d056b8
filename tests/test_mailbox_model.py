"""The mailbox's scripts against a plain model, in any order of events (A3, E5, H3).

Time is the one thing that is pushed: "the lease ran out" and "the backoff passed" move the very scores that Redis'
clock is compared with into the past. Everything else is what the product does, over a real Valkey.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from redis.asyncio import Redis

from bot.mailbox import Claimed, Depth, Lease, LeaseLost, Mailbox, Verb, now

THREADS = ("a", "b", "c")
MAX_TRIES = 2
LAST_TRY = MAX_TRIES + 3

T = TypeVar("T")
threads = st.sampled_from(THREADS)


@dataclass
class Modelled:
    """What one thread should look like."""

    queue: list[str] = field(default_factory=list)
    tries: int = 0
    holder: Claimed | None = None
    lapsed: bool = False  # the holder's lease ran out; nobody took over yet
    resting: bool = False  # a backoff that has not passed

    def take_away(self) -> str:
        self.tries = 0
        return self.queue.pop(0)


class MailboxMachine(RuleBasedStateMachine):
    """Rules do the same to both; whatever the mailbox answers must be what the model says."""

    socket: Path

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.redis = Redis(unix_socket_path=str(self.socket), decode_responses=True)
        self.wait(self.redis.flushall())
        self.mailbox = Mailbox(self.redis, max_tries=MAX_TRIES)
        self.model = {thread: Modelled() for thread in THREADS}
        self.known: set[str] = set()
        self.former: list[Claimed] = []
        self.buried = 0
        self.sent = 0

    def wait(self, answer: Awaitable[T]) -> T:
        async def awaited() -> T:
            return await answer

        return self.runner.run(awaited())

    def teardown(self) -> None:
        self.wait(self.mailbox.aclose())
        self.wait(self.redis.aclose())
        self.runner.close()

    @rule(thread=threads, ids=st.lists(st.integers(0, 30).map(str), min_size=1, max_size=2))
    def enqueue(self, thread: str, ids: list[str]) -> None:
        self.sent += 1
        body = f"message {self.sent}"
        stored = self.wait(self.mailbox.enqueue(thread, body, event_ids=ids))
        assert stored == (not self.known.intersection(ids))
        self.known.update(ids)
        if stored:
            self.model[thread].queue.append(body)

    @rule(limit=st.integers(1, 4))
    def claim(self, limit: int) -> None:
        due = {thread for thread, m in self.model.items() if m.queue and not m.resting and (m.lapsed or not m.holder)}
        for m in self.model.values():
            if m.lapsed:
                assert m.holder is not None
                self.former.append(m.holder)
                m.holder, m.lapsed = None, False
        claimed = {c.thread: c for c in self.wait(self.mailbox.claim("w", limit))}
        assert set(claimed) <= due
        depth = self.wait(self.mailbox.depth())
        buried_now = depth.dead - self.buried
        assert len(claimed) + buried_now == min(limit, len(due))
        for thread in due - set(claimed):
            self._buried_in_passing(thread, buried_now > 0)
        assert self.buried == depth.dead
        for thread, one in claimed.items():
            self._claimed(self.model[thread], one)

    def _buried_in_passing(self, thread: str, possible: bool) -> None:  # noqa: FBT001 (said where it is called)
        m = self.model[thread]
        if possible and m.tries == LAST_TRY and self._stored(thread) < len(m.queue):
            m.take_away()
            self.buried += 1

    def _stored(self, thread: str) -> int:
        return self.wait(self.redis.llen(f"{self.mailbox.shard_of(thread)}:mb:{thread}"))

    def _claimed(self, m: Modelled, claimed: Claimed) -> None:
        m.tries += 1
        m.holder = claimed
        assert (claimed.body, claimed.tries) == (m.queue[0], m.tries)
        assert claimed.exhausted == (m.tries > MAX_TRIES)
        assert claimed.fence.token not in {c.fence.token for c in self.former}

    @rule(thread=threads, verb=st.sampled_from(["ok", "retry", "dead", "giveback"]))
    def holder_is_done(self, thread: str, verb: Verb) -> None:
        m = self.model[thread]
        if m.holder is None:
            return
        assert self.wait(self.mailbox.done(m.holder, verb, after_s=3600, reason="r"))
        self.former.append(m.holder)
        m.holder, m.lapsed, m.resting = None, False, verb == "retry"
        if verb == "giveback":
            m.tries -= 1
        if verb in ("ok", "dead"):
            m.take_away()
            self.buried += verb == "dead"

    @rule(thread=threads)
    def holder_beats(self, thread: str) -> None:
        m = self.model[thread]
        if m.holder is None:
            return
        lease = Lease(now())
        assert self.wait(self.mailbox.beat([(m.holder, lease)])) == []
        assert lease.held()
        m.lapsed = False

    @rule(thread=threads)
    def holder_marks(self, thread: str) -> None:
        m = self.model[thread]
        if m.holder is None:
            return
        if m.lapsed:
            with pytest.raises(LeaseLost):
                self.wait(self.mailbox.mark(m.holder, "late", "1"))
        else:
            assert self.wait(self.mailbox.mark(m.holder, m.holder.fence.token, "1")) == "1"

    @precondition(lambda self: self.former)
    @rule(data=st.data(), verb=st.sampled_from(["ok", "retry", "dead", "giveback"]))
    def former_holder_wakes_up(self, data: st.DataObject, verb: Verb) -> None:
        old = data.draw(st.sampled_from(self.former))
        lease = Lease(old.leased_until)
        assert not self.wait(self.mailbox.done(old, verb))
        assert self.wait(self.mailbox.beat([(old, lease)])) == [old]
        assert not lease.held()
        with pytest.raises(LeaseLost):
            self.wait(self.mailbox.mark(old, "stale", "1"))

    @rule(thread=threads)
    def lease_runs_out(self, thread: str) -> None:
        m = self.model[thread]
        if m.holder is None:
            return
        shard = self.mailbox.shard_of(thread)
        self.wait(self.redis.zadd(f"{shard}:lease", {thread: 1}, xx=True))
        self.wait(self.redis.hset(self.mailbox.fence_key(thread), "until", "1"))
        m.lapsed = True

    @rule(thread=threads)
    def backoff_passes(self, thread: str) -> None:
        m = self.model[thread]
        if m.resting:
            ready = f"{self.mailbox.shard_of(thread)}:ready"
            self.wait(self.redis.zadd(ready, {thread: 1}, xx=True))
            m.resting = False

    @invariant()
    def nothing_is_lost_or_left_behind(self) -> None:
        expected = Depth(
            messages=sum(len(m.queue) for m in self.model.values()),
            leased=sum(m.holder is not None for m in self.model.values()),
            delayed=0,
            dead=self.buried,
        )
        assert self.wait(self.mailbox.depth()) == expected
        for thread, m in self.model.items():
            if not m.queue:
                assert self.wait(self.redis.exists(self.mailbox.fence_key(thread))) == 0


def test_e5_h3_the_mailbox_agrees_with_its_model(redis_socket: Path) -> None:
    MailboxMachine.socket = redis_socket
    run_state_machine_as_test(
        MailboxMachine,
        settings=settings(
            max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
