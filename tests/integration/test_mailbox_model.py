"""The mailbox's scripts against a plain model, in any order of events.

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

from agent.thread.store import team_of
from bot.queue.claim import Claimed, Lease, LeaseLost, Verb, now
from bot.queue.queue import EXTRA_NOTIFY_TRIES, Depth, Fate, Mailbox

THREADS = ("T1:a", "T1:b", "T1:c", "T2:d", "T2:e")
PER_TEAM = 2
MAX_TRIES = 1
LAST_TRY = MAX_TRIES + EXTRA_NOTIFY_TRIES

T = TypeVar("T")
threads = st.sampled_from(THREADS)
saids = st.sampled_from(["", "1700000000.000001", "1700000000.000002", "1700000001.000000"])


def those(which: Callable[[Modelled], bool]) -> st.SearchStrategy[str]:
    """The threads of the running machine for which this holds. Rules with it need the like precondition."""

    def choose(machine: MailboxMachine) -> st.SearchStrategy[str]:
        return st.sampled_from([thread for thread, m in machine.model.items() if which(m)])

    return st.runner().flatmap(choose)


def is_held(m: Modelled) -> bool:
    return m.holder is not None


def any_held(machine: MailboxMachine) -> bool:
    return any(is_held(m) for m in machine.model.values())


@dataclass
class Modelled:
    """The expected state of one thread."""

    queue: list[str] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)
    tried: bool = False  # a worker may have the head: nothing goes before it
    tries: int = 0
    deaths: int = 0
    holder: Claimed | None = None
    lapsed: bool = False  # the holder's lease ran out; no worker has taken over yet
    resting: bool = False  # a backoff that has not passed

    @property
    def suspect(self) -> bool:
        return self.deaths >= 1

    @property
    def due(self) -> bool:
        return bool(self.queue) and not self.resting and (self.lapsed or not self.holder)

    def store(self, body: str, said: str) -> None:
        place = len(self.queue)
        while said and place > self.tried and self.said[self.queue[place - 1]] > said:
            place -= 1
        self.queue.insert(place, body)
        self.said[body] = said

    def take_away(self) -> str:
        self.tries, self.deaths, self.tried = 0, 0, False
        return self.queue.pop(0)


class MailboxMachine(RuleBasedStateMachine):
    """Each rule does the same to both, and the mailbox must answer as the model does."""

    socket: Path

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.redis = Redis(unix_socket_path=str(self.socket), decode_responses=True)
        self.wait(self.redis.flushall())
        self.mailbox = Mailbox(self.redis, max_tries=MAX_TRIES, per_team=PER_TEAM)
        self.model = {thread: Modelled() for thread in THREADS}
        self.known: set[str] = set()
        self.former: list[Claimed] = []
        self.buried = 0
        self.passed_over = dict.fromkeys(map(team_of, THREADS), 0)
        self.sent = 0

    def wait(self, answer: Awaitable[T]) -> T:
        async def run() -> T:
            return await answer

        return self.runner.run(run())

    def teardown(self) -> None:
        self.wait(self.mailbox.aclose())
        self.wait(self.redis.aclose())
        self.runner.close()

    @rule(thread=threads, ids=st.lists(st.integers(0, 30).map(str), min_size=1, max_size=2), said=saids)
    def enqueue(self, thread: str, ids: list[str], said: str) -> None:
        self.sent += 1
        body = f"message {self.sent}"
        stored = self.wait(self.mailbox.enqueue(thread, body, event_ids=ids, slack_ts=said))
        assert stored == (not self.known.intersection(ids))
        self.known.update(ids)
        if stored:
            self.model[thread].store(body, said)

    @rule(limit=st.sampled_from([1, 1, 2, 4]))
    def claim(self, limit: int) -> None:
        due = {thread for thread, m in self.model.items() if m.due}
        for m in self.model.values():
            if m.lapsed:
                assert m.holder is not None
                self.former.append(m.holder)
                m.holder, m.lapsed, m.deaths = None, False, m.deaths + 1
        claimed = self.wait(self.mailbox.claim("w", limit))
        assert len(claimed) <= limit
        buried = {thread for thread in due if self._is_given_up(thread)}
        waiting = {thread for thread in due - buried if not self.model[thread].suspect}
        for one in claimed:
            assert one.thread in due
            self._check_turns(one, waiting)
        self._check_none_forgotten(due - buried - {one.thread for one in claimed}, full=len(claimed) == limit)

    def _check_turns(self, one: Claimed, waiting: set[str]) -> None:
        """Workspaces take turns: none is passed over twice while it could be served."""
        waiting.discard(one.thread)
        team = team_of(one.thread)
        for other in self.passed_over:
            could = other != team and not self._at_its_limit(other) and other in set(map(team_of, waiting))
            self.passed_over[other] = self.passed_over[other] + 1 if could else 0
            assert self.passed_over[other] <= 1
        self._begin_try(self.model[one.thread], one)

    def _at_its_limit(self, team: str) -> bool:
        return sum(is_held(m) for thread, m in self.model.items() if team_of(thread) == team) >= PER_TEAM

    def _check_none_forgotten(self, skipped: set[str], *, full: bool) -> None:
        """Check that each due message left unclaimed had a reason. A suspect has waited its half second."""
        suspect_held = any(is_held(m) and m.suspect for m in self.model.values())
        for thread in skipped:
            assert full or self._at_its_limit(team_of(thread)) or (self.model[thread].suspect and suspect_held)
            self.wait(self.redis.zadd(self.mailbox.key(thread, "ready", team_of(thread)), {thread: 1}, xx=True))

    def _is_given_up(self, thread: str) -> bool:
        """Return True if this claim gave up the head, because it was tried too often."""
        m = self.model[thread]
        if self._count_stored(thread) == len(m.queue):
            return False
        assert m.tries == LAST_TRY
        m.take_away()
        self.buried += 1
        return True

    def _count_stored(self, thread: str) -> int:
        return self.wait(self.redis.llen(f"{self.mailbox.shard_of(thread)}:mb:{thread}"))

    def _begin_try(self, m: Modelled, claimed: Claimed) -> None:
        m.tries += 1
        m.holder, m.tried = claimed, True
        assert (claimed.body, claimed.tries) == (m.queue[0], m.tries)
        assert m.tries <= LAST_TRY
        assert claimed.fence.token not in {c.fence.token for c in self.former}

    @precondition(any_held)
    @rule(
        thread=those(is_held),
        verb=st.sampled_from(["ok", "retry", "dead", "give_back"]),
        after_s=st.sampled_from([0, 300]),
    )
    def holder_is_done(self, thread: str, verb: Verb, after_s: int) -> None:
        m = self.model[thread]
        assert m.holder is not None
        assert self.wait(self.mailbox.finish(m.holder, verb, after_s=after_s, reason="r"))
        self.former.append(m.holder)
        m.holder, m.lapsed, m.resting = None, False, verb in ("retry", "give_back") and after_s > 0
        if verb == "give_back":
            m.tries -= 1
        if verb in ("ok", "dead"):
            m.take_away()
            self.buried += verb == "dead"

    @precondition(any_held)
    @rule(thread=those(is_held))
    def holder_beats(self, thread: str) -> None:
        m = self.model[thread]
        assert m.holder is not None
        lease = Lease(now())
        self.wait(self.mailbox.renew_leases([(m.holder, lease)]))
        assert lease.is_held()
        assert lease.is_held()
        m.lapsed = False

    @precondition(any_held)
    @rule(thread=those(is_held))
    def holder_marks(self, thread: str) -> None:
        m = self.model[thread]
        assert m.holder is not None
        if m.lapsed:
            with pytest.raises(LeaseLost):
                self.wait(self.mailbox.mark(m.holder, "late", "1"))
        else:
            assert self.wait(self.mailbox.mark(m.holder, m.holder.fence.token, "1")) == "1"

    @precondition(lambda self: self.former)
    @rule(data=st.data(), verb=st.sampled_from(["ok", "retry", "dead", "give_back"]))
    def former_holder_wakes_up(self, data: st.DataObject, verb: Verb) -> None:
        old = data.draw(st.sampled_from(self.former))
        lease = Lease(old.leased_until)
        assert not self.wait(self.mailbox.finish(old, verb))
        self.wait(self.mailbox.renew_leases([(old, lease)]))
        assert not lease.is_held()
        assert not lease.is_held()
        with pytest.raises(LeaseLost):
            self.wait(self.mailbox.mark(old, "stale", "1"))

    @precondition(any_held)
    @rule(thread=those(is_held))
    def lease_runs_out(self, thread: str) -> None:
        m = self.model[thread]
        assert m.holder is not None
        shard = self.mailbox.shard_of(thread)
        self.wait(self.redis.zadd(f"{shard}:lease", {thread: 1}, xx=True))
        self.wait(self.redis.hset(self.mailbox.key(thread, "head", thread), "until", "1"))
        m.lapsed = True

    @precondition(lambda self: any(m.resting for m in self.model.values()))
    @rule(thread=those(lambda m: m.resting))
    def backoff_passes(self, thread: str) -> None:
        self.wait(self.redis.zadd(self.mailbox.key(thread, "ready", team_of(thread)), {thread: 1}, xx=True))
        self.model[thread].resting = False

    @precondition(lambda self: self.buried)
    @rule(data=st.data(), fate=st.sampled_from(["retry", "retry", "drop"]))
    def operator_decides(self, data: st.DataObject, fate: Fate) -> None:
        """Once, even if asked twice. A retried message goes to the end of its thread, no matter when it was written."""
        incoming = data.draw(st.sampled_from(self.wait(self.mailbox.list_dead_letters())))
        assert self.wait(self.mailbox.end_dead_letter(incoming.entry_id, fate))
        assert not self.wait(self.mailbox.end_dead_letter(incoming.entry_id, fate))
        self.buried -= 1
        if fate == "retry":
            self.model[incoming.thread].queue.append(incoming.body)

    @precondition(any_held)
    @rule()
    def all_workers_die(self) -> None:
        for thread, m in self.model.items():
            if is_held(m):
                self.lease_runs_out(thread)
        self.claim(limit=4)

    @invariant()
    def a_worker_holds_one_suspect_at_most(self) -> None:
        assert sum(is_held(m) and m.suspect for m in self.model.values()) <= 1

    @invariant()
    def no_workspace_has_more_than_its_share(self) -> None:
        for team in self.passed_over:
            assert sum(is_held(m) for thread, m in self.model.items() if team_of(thread) == team) <= PER_TEAM

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
                assert self.wait(self.redis.exists(self.mailbox.key(thread, "head", thread))) == 0


def test_the_mailbox_agrees_with_its_model(redis_socket: Path) -> None:
    MailboxMachine.socket = redis_socket
    run_state_machine_as_test(
        MailboxMachine,
        settings=settings(
            max_examples=30, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
