"""The durable per-thread queue: what is in it survives us, and a thread's messages are handled one by one, in order.

Promises: a message is stored when ``enqueue`` returns, and only then may Slack get its ack; a message whose event id
was seen in the last day is stored once (A3). It stays at the head of its thread until ``done`` is accepted, so a worker
that dies loses nothing (H3). A thread has one holder at a time, who proves it with a token; a lease that ran out is
never honoured for a further effect (E5). Must never log a body.

Theory of operation. Per thread there is a list of messages (``mb``) and, while its head was tried, a hash about that
head (``head``: token, until, worker, tries, deaths). A thread with messages is in exactly one of two sorted sets:
``ready`` (score: when it may be claimed) or ``lease`` (score: when the lease ends). All changes are Lua scripts, Redis'
clock is the clock. Every key carries one hash tag per shard; structural keys vanish when empty, all others but the
token counter have a TTL.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from redis.asyncio import Redis
from redis.commands.core import AsyncScript

from agent.thread_store import Fence, hash_tag, shards_of
from bot.redis_url import impatient

Verb = Literal["ok", "retry", "dead", "giveback"]

LEASE_S = 15.0
MAX_TRIES = 5
# A message that was tried too often is handed out a few times more, flagged, so that its person can be told.
FAREWELLS = 3
# The last tries of a message under which workers died are made without another such message beside it.
SOLO_TRIES = 2
SEEN_TTL_S = 24 * 3600
# An effect may be repeated as long as its message can come again: until `done`, and while its event ids are known.
MARK_TTL_S = SEEN_TTL_S
DEAD_TTL_S = 30 * 24 * 3600
DEAD_KEPT = 10_000
BELL_TTL_S = 60

LUA = Path(__file__).parent / "lua"


def now() -> float:
    """Seconds that also pass while the machine sleeps, where the system can tell; never set back."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def heed_cancellation() -> None:
    """Raise a cancellation that was swallowed on its way.

    Seen: of 150 cancellations aimed at a loop over redis-py up to 110 did not come out of its calls (its own
    ``asyncio.timeout(0)`` at the pool is the suspect, not the proven cause). ``cancelling`` still knows.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


class LeaseLost(Exception):  # noqa: N818 (it states a fact: the turn has no right to any effect any more)
    """This thread belongs, or may belong, to somebody else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """One message in our hands. ``id`` is the same on each try; ``tries`` counts this one.

    ``exhausted`` says that it was tried too often (it kills its worker): do not work on it, tell the person and end it
    with ``dead``. ``enqueued_at`` is Redis' time in seconds since 1970, ``leased_until`` is in seconds of ``now()``.
    """

    thread: str
    id: str
    body: str
    tries: int
    enqueued_at: float
    leased_until: float
    exhausted: bool
    fence: Fence


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message that was given up, and why. ``id`` is the message's, ``entry_id`` its place among the dead letters."""

    entry_id: str
    thread: str
    id: str
    body: str
    reason: str
    tries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How much there is to do: messages waiting or in work, threads leased, dead letters."""

    messages: int
    leased: int
    dead: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """A wish that the turn of this message end."""

    thread: str
    reason: str
    message_id: str


class Lease:
    """Our local belief in a lease: its last confirmed beginning plus its length, by a clock that cannot be set back.

    It errs on the safe side: time is taken before Redis was asked. Check it right before each outside effect.
    """

    def __init__(self, until: float) -> None:
        self._until = until
        self._lost = False
        self._stopped: str | None = None

    @property
    def stopped(self) -> str | None:
        """Why a person (by a button, a word, an edit) stopped this turn; None while nobody did."""
        return self._stopped

    def stop(self, reason: str) -> None:
        """Note that a person wants no answer any more."""
        self._stopped = reason

    def held(self) -> bool:
        """Whether nobody else can have the thread yet."""
        return not self._lost and now() < self._until

    def require(self) -> None:
        """Raise ``LeaseLost`` unless the lease is held."""
        if not self.held():
            message = "the lease ran out or was taken over"
            raise LeaseLost(message)

    @property
    def left_s(self) -> float:
        """Seconds until the lease runs out unless it is prolonged; 0 when it is lost."""
        return max(0.0, self._until - now()) if not self._lost else 0.0

    def prolong(self, until: float) -> None:
        """Redis confirmed the lease up to ``until``. A lease once found lost stays lost."""
        self._until = max(self._until, until)

    def lose(self) -> None:
        """Redis refused it."""
        self._lost = True


def split_entry(entry: str) -> tuple[str, float, str]:
    """An entry as stored: message id, time of arrival in seconds, body."""
    message_id, stored_ms, body = entry.split(" ", 2)
    return message_id, int(stored_ms) / 1000, body


class Mailbox:
    """The queue over one Redis. Times in seconds. Every method raises ``RedisError`` when Redis is out of reach."""

    def __init__(
        self,
        redis: Redis,
        *,
        lease_s: float = LEASE_S,
        max_tries: int = MAX_TRIES,
        prefix: str = "orion",
        shards: int | None = None,
    ) -> None:
        self.lease_s = lease_s
        self.max_tries = max_tries
        self._prefix = prefix
        self._shards = shards or shards_of(redis)
        self._redis = redis
        # Beats must be quick or not at all: a client that patiently retries an old beat starves the next one.
        self._beats = impatient(redis, timeout_s=min(1.0, lease_s / 5))
        self._enqueue = self._script("enqueue")
        self._claim = self._script("claim")
        self._done = self._script("done")
        self._mark = self._script("mark")
        self._depth = self._script("depth")
        self._beat = self._beats.register_script((LUA / "beat.lua").read_text())
        self._first_shard = 0

    def _script(self, name: str) -> AsyncScript:
        return self._redis.register_script((LUA / f"{name}.lua").read_text())

    def shard_of(self, thread: str) -> str:
        """The hash tag that all keys of this thread begin with."""
        return hash_tag(thread, prefix=self._prefix, shards=self._shards)

    def _all_shards(self) -> list[str]:
        return [f"{{{self._prefix}:{shard}}}" for shard in range(self._shards)]

    def bells(self) -> list[str]:
        """The lists on which a worker waits for news."""
        return [f"{shard}:bell" for shard in self._all_shards()]

    def cancel_channel(self) -> str:
        """Where wishes to cancel are told to all workers."""
        return f"{self._prefix}:cancel"

    def seen_key(self, thread: str, event_id: str) -> str:
        """Where it stands that this event is known."""
        return f"{self.shard_of(thread)}:seen:{event_id}"

    def fence_key(self, thread: str) -> str:
        """The hash that holds the token of the thread's holder."""
        return f"{self.shard_of(thread)}:head:{thread}"

    def mark_key(self, thread: str, name: str) -> str:
        """Where a mark of this thread stands."""
        return f"{self.shard_of(thread)}:mark:{thread}:{name}"

    async def aclose(self) -> None:
        """Close the client of our own (the one for beats); the caller's stays open."""
        await self._beats.aclose()

    async def enqueue(self, thread: str, body: bytes | str, *, event_ids: Sequence[str]) -> bool:
        """Store a message; False when any of ``event_ids`` was seen in the last 24 h (it is stored already).

        Whatever the answer, all of ``event_ids`` are known afterwards, so a chain of twins stays closed. ``body`` is
        UTF-8.
        """
        ids = dict.fromkeys(event_ids)  # the same id twice in one call is no twin
        # Half an emoji in a cut text has no UTF-8 form; refusing it would have Slack send it for ever.
        text = body.encode("utf-8", "replace") if isinstance(body, str) else body
        arguments: list[str | bytes | int] = [thread, uuid.uuid4().hex, text, SEEN_TTL_S, BELL_TTL_S, *ids]
        return bool(await self._enqueue(keys=[self.shard_of(thread)], args=arguments))

    async def claim(self, worker: str, limit: int) -> list[Claimed]:
        """Up to ``limit`` threads that are due, each with its first message. Also takes over leases that ran out."""
        claimed: list[Claimed] = []
        shards = self._all_shards()
        # Begin somewhere else each time, or the first shard would be served before all others.
        self._first_shard = (self._first_shard + 1) % len(shards)
        for shard in shards[self._first_shard :] + shards[: self._first_shard]:
            if limit > len(claimed):
                claimed += await self._claim_in(shard, worker, limit - len(claimed))
        return claimed

    async def _claim_in(self, shard: str, worker: str, limit: int) -> list[Claimed]:
        asked_at = now()
        last_try, suspect_from = self.max_tries + FAREWELLS, max(1, self.max_tries - SOLO_TRIES)
        lease_ms = round(self.lease_s * 1000)
        arguments: list[str | int] = [worker, lease_ms, limit, last_try, DEAD_KEPT, DEAD_TTL_S, suspect_from]
        rows = await self._claim(keys=[shard], args=arguments)
        return [self._claimed(row, asked_at + self.lease_s) for row in rows]

    def _claimed(self, row: Sequence[Any], leased_until: float) -> Claimed:
        thread, token, tries, entry = row
        message_id, enqueued_at, body = split_entry(entry)
        return Claimed(
            thread=thread,
            id=message_id,
            body=body,
            tries=int(tries),
            enqueued_at=enqueued_at,
            leased_until=leased_until,
            exhausted=int(tries) > self.max_tries,
            fence=Fence(key=self.fence_key(thread), token=token),
        )

    async def beat(self, held: Iterable[tuple[Claimed, Lease]]) -> list[Claimed]:
        """Prolong these leases in Redis and in our belief; returns those that were refused, their leases lost.

        Uses a client of its own, with short time-outs and without retries.
        """
        refused: list[Claimed] = []
        by_shard: dict[str, list[tuple[Claimed, Lease]]] = {}
        for claimed, lease in held:
            by_shard.setdefault(self.shard_of(claimed.thread), []).append((claimed, lease))
        for shard, ours in by_shard.items():
            asked_at = now()
            pairs = [word for claimed, _ in ours for word in (claimed.thread, claimed.fence.token)]
            answers = await self._beat(keys=[shard], args=[round(self.lease_s * 1000), *pairs])
            for (claimed, lease), accepted in zip(ours, answers, strict=True):
                if accepted:
                    lease.prolong(asked_at + self.lease_s)
                else:
                    lease.lose()
                    refused.append(claimed)
        return refused

    async def done(self, claimed: Claimed, verb: Verb, *, after_s: float = 0, reason: str = "") -> bool:
        """End the turn; False when somebody took the thread over (nothing happens then).

        ``ok`` and ``dead`` take the message away (``dead`` keeps it with ``reason``); ``retry`` leaves it where it is
        for ``after_s``; ``giveback`` leaves it for anybody (after ``after_s``), and this try does not count.
        """
        token, shard = claimed.fence.token, self.shard_of(claimed.thread)
        backoff_ms = round(after_s * 1000)
        arguments: list[str | bytes | int] = [
            claimed.thread,
            token,
            verb,
            backoff_ms,
            reason,
            DEAD_KEPT,
            DEAD_TTL_S,
            BELL_TTL_S,
        ]
        return bool(await self._done(keys=[shard], args=arguments))

    async def mark(self, claimed: Claimed, name: str, value: str, *, ttl_s: int = MARK_TTL_S) -> str:
        """Write down once that an effect happened; returns the value that stands, ours or an earlier one.

        ``ttl_s`` is how long it stands: by default as long as a second delivery of the message is known as one.

        Raises ``LeaseLost`` when the lease ran out or was taken over: the effect is not ours to have.
        """
        key = f"{claimed.thread}:{name}"
        arguments: list[str | bytes | int] = [claimed.thread, claimed.fence.token, key, value, ttl_s]
        standing = await self._mark(keys=[self.shard_of(claimed.thread)], args=arguments)
        if standing is None:
            message = f"the mark {name} was refused"
            raise LeaseLost(message)
        return str(standing)

    async def marked(self, thread: str, name: str) -> str | None:
        """The value of a mark, None if there is none."""
        value = await self._redis.get(self.mark_key(thread, name))
        return None if value is None else str(value)

    async def stored_as(self, thread: str, event_id: str) -> str | None:
        """The id of the message that an event was stored as; None if the event is unknown."""
        value = await self._redis.get(self.seen_key(thread, event_id))
        return None if value is None else str(value)

    async def cancel(self, thread: str, reason: str, *, message_id: str = "") -> None:
        """Tell all workers to interrupt the thread's running turn (with ``message_id``: only if it is that message)."""
        # The wish travels while turns come and go: it names what it means, or it would hit the next one.
        message_id = message_id or await self._at_head(thread)
        if message_id:
            wish = json.dumps({"thread": thread, "reason": reason, "message_id": message_id})
            await self._redis.publish(self.cancel_channel(), wish)

    async def _at_head(self, thread: str) -> str:
        """The id of the thread's first message, which is the one that runs if any does; empty when there is none."""
        entry = await self._redis.lindex(f"{self.shard_of(thread)}:mb:{thread}", 0)
        return split_entry(str(entry))[0] if entry else ""

    async def cancellations(self, listening: Callable[[], None]) -> AsyncIterator[Cancellation]:
        """What ``cancel`` said, on whatever worker, from when ``listening`` is called. Raises ``RedisError``."""
        async with self._redis.pubsub(ignore_subscribe_messages=True) as pubsub:
            await pubsub.subscribe(self.cancel_channel())
            listening()
            while True:
                heed_cancellation()
                message = await pubsub.get_message(timeout=1.0)
                if message is not None:
                    yield Cancellation(**json.loads(message["data"]))

    async def wait(self, timeout_s: float) -> None:
        """Return when there may be news, after ``timeout_s`` at the latest."""
        await self._redis.brpop(self.bells(), timeout=timeout_s)

    async def depth(self) -> Depth:
        """How much there is to do, over all shards."""
        rows = [await self._depth(keys=[shard]) for shard in self._all_shards()]
        messages, leased, dead = (sum(column) for column in zip(*rows, strict=True))
        return Depth(messages=messages, leased=leased, dead=dead)

    async def dead_letters(self, limit: int = 100) -> list[DeadLetter]:
        """The messages that were given up, the newest first in each shard."""
        letters: list[DeadLetter] = []
        for shard in self._all_shards():
            rows: Any = await self._redis.xrevrange(f"{shard}:dead", count=limit)
            letters += [dead_letter(entry_id, fields) for entry_id, fields in rows]
        return letters[:limit]


def dead_letter(entry_id: str, fields: dict[str, str]) -> DeadLetter:
    """One entry of the stream of dead letters."""
    message_id, _, body = split_entry(fields["entry"])
    return DeadLetter(
        entry_id=entry_id,
        thread=fields["thread"],
        id=message_id,
        body=body,
        reason=fields["reason"],
        tries=int(fields["tries"]),
    )
