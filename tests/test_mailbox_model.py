"""The mailbox's scripts against a plain model, in any order of events (A3, E5, H3).

Time is the one thing that is pushed: "the lease ran out" and "the backoff passed" move the very scores that Redis'
clock is compared with into the past. Everything else is what the product does, over a real Valkey.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from redis.asyncio import Redis

from bot.mailbox import FAREWELLS, Claimed, Depth, Lease, LeaseLost, Mailbox, Verb, now

THREADS = ("a", "b", "c")
MAX_TRIES = 1
LAST_TRY = MAX_TRIES + FAREWELLS

T = TypeVar("T")
threads = st.sampled_from(THREADS)


def those(which: Callable[[Modelled], bool]) -> st.SearchStrategy[str]:
    """The threads of the running machine for which this holds. Rules with it need the like precondition."""

    def choose(machine: MailboxMachine) -> st.SearchStrategy[str]:
        return st.sampled_from([thread for thread, m in machine.model.items() if which(m)])

    return st.runner().flatmap(choose)


def held(m: Modelled) -> bool:
    return m.holder is not None


def any_held(machine: MailboxMachine) -> bool:
    return any(held(m) for m in machine.model.values())


@dataclass
class Modelled:
    """What one thread should look like."""

    queue: list[str] = field(default_factory=list)
    tries: int = 0
    deaths: int = 0
    holder: Claimed | None = None
    lapsed: bool = False  # the holder's lease ran out; nobody took over yet
    resting: bool = False  # a backoff that has not passed

    @property
    def suspect(self) -> bool:
        return self.deaths >= 1

    def take_away(self) -> str:
        self.tries = self.deaths = 0
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
                m.holder, m.lapsed, m.deaths = None, False, m.deaths + 1
        alone = not any(held(m) and m.suspect for m in self.model.values())
        claimed = {c.thread: c for c in self.wait(self.mailbox.claim("w", limit))}
        assert set(claimed) <= due
        depth = self.wait(self.mailbox.depth())
        buried_now = depth.dead - self.buried
        assert len(claimed) + buried_now <= limit
        if alone or any(not self.model[thread].suspect for thread in due):
            assert len(claimed) + buried_now >= min(1, len(due)) or limit < len(due)
        if limit >= len(due):
            assert {thread for thread in due if not self.model[thread].suspect} <= set(claimed)
        for thread in due - set(claimed):
            self._buried_in_passing(thread, buried_now > 0)
        assert self.buried == depth.dead
        self._skipped_are_due_again(due - set(claimed))
        for thread, one in claimed.items():
            self._claimed(self.model[thread], one)

    def _buried_in_passing(self, thread: str, possible: bool) -> None:  # noqa: FBT001 (said where it is called)
        m = self.model[thread]
        if possible and m.tries == LAST_TRY and self._stored(thread) < len(m.queue):
            m.take_away()
            self.buried += 1

    def _skipped_are_due_again(self, skipped: set[str]) -> None:
        """A suspect that was passed over waits half a second; it has passed."""
        for thread in skipped:
            ready = f"{self.mailbox.shard_of(thread)}:ready"
            self.wait(self.redis.zadd(ready, {thread: 1}, xx=True))

    def _stored(self, thread: str) -> int:
        return self.wait(self.redis.llen(f"{self.mailbox.shard_of(thread)}:mb:{thread}"))

    def _claimed(self, m: Modelled, claimed: Claimed) -> None:
        m.tries += 1
        m.holder = claimed
        assert (claimed.body, claimed.tries) == (m.queue[0], m.tries)
        assert m.tries <= LAST_TRY
        assert claimed.exhausted == (m.tries > MAX_TRIES)
        assert claimed.fence.token not in {c.fence.token for c in self.former}

    @precondition(any_held)
    @rule(
        thread=those(held),
        verb=st.sampled_from(["ok", "retry", "dead", "giveback"]),
        after_s=st.sampled_from([0, 3600]),
    )
    def holder_is_done(self, thread: str, verb: Verb, after_s: int) -> None:
        m = self.model[thread]
        assert m.holder is not None
        assert self.wait(self.mailbox.done(m.holder, verb, after_s=after_s, reason="r"))
        self.former.append(m.holder)
        m.holder, m.lapsed, m.resting = None, False, verb in ("retry", "giveback") and after_s > 0
        if verb == "giveback":
            m.tries -= 1
        if verb in ("ok", "dead"):
            m.take_away()
            self.buried += verb == "dead"

    @precondition(any_held)
    @rule(thread=those(held))
    def holder_beats(self, thread: str) -> None:
        m = self.model[thread]
        assert m.holder is not None
        lease = Lease(now())
        assert self.wait(self.mailbox.beat([(m.holder, lease)])) == []
        assert lease.held()
        m.lapsed = False

    @precondition(any_held)
    @rule(thread=those(held))
    def holder_marks(self, thread: str) -> None:
        m = self.model[thread]
        assert m.holder is not None
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

    @precondition(any_held)
    @rule(thread=those(held))
    def lease_runs_out(self, thread: str) -> None:
        m = self.model[thread]
        assert m.holder is not None
        shard = self.mailbox.shard_of(thread)
        self.wait(self.redis.zadd(f"{shard}:lease", {thread: 1}, xx=True))
        self.wait(self.redis.hset(self.mailbox.fence_key(thread), "until", "1"))
        m.lapsed = True

    @precondition(lambda self: any(m.resting for m in self.model.values()))
    @rule(thread=those(lambda m: m.resting))
    def backoff_passes(self, thread: str) -> None:
        ready = f"{self.mailbox.shard_of(thread)}:ready"
        self.wait(self.redis.zadd(ready, {thread: 1}, xx=True))
        self.model[thread].resting = False

    @precondition(any_held)
    @rule()
    def all_workers_die(self) -> None:
        for thread, m in self.model.items():
            if held(m):
                self.lease_runs_out(thread)
        self.claim(limit=4)

    @invariant()
    def a_worker_holds_one_suspect_at_most(self) -> None:
        assert sum(held(m) and m.suspect for m in self.model.values()) <= 1

    @invariant()
    def nothing_is_lost_or_left_behind(self) -> None:
        expected = Depth(
            messages=sum(len(m.queue) for m in self.model.values()),
            leased=sum(m.holder is not None for m in self.model.values()),
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
            max_examples=30, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
