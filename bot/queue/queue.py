"""The durable queue: one mailbox per thread, whose messages are handled one by one, in order.

A message is stored when ``enqueue`` returns. Only then may Slack get its ack. It stays at the head of its thread until
``finish`` is accepted, so a worker that dies loses nothing. One worker at a time has the thread's fencing token.

Theory of operation. Each thread has a list of messages (``mb``) and, once its head was tried, a hash about that head
(``head``: token, until, worker, tries, deaths). A thread with messages is in exactly one sorted set: its workspace's
``ready`` (score: when it may be claimed) or ``lease`` (score: when the lease ends). All changes are Lua scripts that
use Redis' clock. A workspace's keys have one hash tag, so that one script sees all of its work, even in a cluster.
Structural keys disappear when empty. All others except the token counter have a TTL.
"""

import json
import re
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from redis.asyncio import Redis
from redis.commands.core import AsyncScript
from redis.exceptions import RedisError

from agent.json_data import parse_number, parse_record
from agent.thread.store import LeaseFence, hash_tag, shard_tag, shards_of, team_of
from bot.queue.claim import Cancellation, Claimed, Lease, LeaseLost, Verb, now, raise_if_cancelled
from bot.redis.client import Replication, impatient

LUA = Path(__file__).parent / "lua"
BELL_TTL_S = 60
UNREADABLE_ID = "unreadable"
MAX_BELL_ENTRIES = 64
LEASE_S = 15.0
MAX_TRIES = 5
# A message that was tried too often is claimed a few more times, only to notify the person who asked.
EXTRA_NOTIFY_TRIES = 3
# A message that workers died on gets its last tries on a worker without another such message.
SOLO_TRIES = 2
SEEN_TTL_S = 24 * 3600
# an effect can be repeated as long as its message can return, that is, while its event ids are known
MARK_TTL_S = SEEN_TTL_S
DEAD_TTL_S = 30 * 24 * 3600
MAX_DEAD_LETTERS = 10_000
KeyKind = Literal["mb", "head", "mark", "ready", "seen", "told"]
"""``mb`` and ``head`` exist per thread, ``ready`` per workspace, ``mark`` per thread and name, ``seen`` per event.

``told`` exists if the author of a waiting message (its id) was shown its place in the queue.
"""
_MILLISECONDS = re.compile("[0-9]{1,15}")
_ENTRY_ID = re.compile(r"(?:(?P<shard>\d{1,4})/)?(?P<place>\d{1,20}-\d{1,20})")
Fate = Literal["retry", "drop"]  # of a dead letter
_SLACK_TS = re.compile(r"\d{10}\.\d{6}")


def load_script(redis: Redis, name: str) -> AsyncScript:
    """Register a script, prefixed with the part that all scripts share."""
    return redis.register_script((LUA / "ready.lua").read_text() + (LUA / f"{name}.lua").read_text())


class MailboxEntry(NamedTuple):
    """A message in a mailbox, as stored. ``enqueued_at`` is Redis' time in seconds since 1970."""

    id: str
    enqueued_at: float
    body: str


def split_entry(entry: str) -> MailboxEntry:
    """Split a stored entry. A damaged one has no body."""
    message_id, _, rest = entry.partition(" ")
    stored_ms, _, body = rest.partition(" ")
    if not (message_id and _MILLISECONDS.fullmatch(stored_ms)):
        return MailboxEntry(UNREADABLE_ID, 0.0, "")
    return MailboxEntry(message_id, int(stored_ms) / 1000, body)


class Depth(NamedTuple):
    """Size of the queue: messages waiting or being handled, leased threads, dead letters."""

    messages: int
    leased: int
    dead: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message that was given up, with the reason. ``id`` is the message's id, ``entry_id`` that of its stream entry.

    ``died_at`` and ``enqueued_at`` are seconds since 1970 by Redis' clock.
    """

    entry_id: str
    thread: str
    id: str
    body: str
    reason: str
    tries: int
    enqueued_at: float
    died_at: float


class Waiting(NamedTuple):
    """A message that has waited for a while, and its place in the queue (0: its thread's turn is running)."""

    thread: str
    entry: MailboxEntry
    place: int


class Mailbox:
    """The mailboxes of all threads in one Redis. Times are in seconds. Every method raises ``RedisError`` in an outage.

    ``per_team`` is how many turns a workspace may have at once across all workers. 0 means no limit.
    """

    def __init__(  # noqa: PLR0913 - each has a default, and callers name those they change
        self,
        redis: Redis,
        *,
        lease_s: float = LEASE_S,
        max_tries: int = MAX_TRIES,
        prefix: str = "orion",
        shards: int | None = None,
        per_team: int = 0,
    ) -> None:
        self.lease_s = lease_s
        self.max_tries = max_tries
        self._per_team = per_team
        self.cancel_channel = f"{prefix}:cancel"  # all workers get cancellations on it
        self._prefix, self._redis = prefix, redis
        self._shards = shards or shards_of(redis)
        # A beat (of all leases) must be quick: retrying an old one would delay the next.
        self._beats = impatient(redis, timeout_s=min(1.0, lease_s / 5))
        names = ("enqueue", "claim", "finish", "mark", "depth", "waiting", "probe", "decide")
        scripts = (load_script(redis, name) for name in names)
        self._enqueue, self._claim, self._finish, self._mark, self._depth, self._waiting, self._probe, self._decide = (
            scripts
        )
        self._beat = load_script(self._beats, "beat")
        self._tags = [shard_tag(number, prefix=prefix, shards=self._shards) for number in range(self._shards)]
        # Idle workers block on this list. With one shard the scripts push to it in the same step as the change. One
        # command cannot block on lists of several nodes, so several shards share a list, pushed to after the script.
        self._is_bell_shared = self._shards > 1
        self.bell = f"{prefix}:{{{'bell' if self._is_bell_shared else 0}}}:bell"
        self._bell_ttl_in_scripts = 0 if self._is_bell_shared else BELL_TTL_S  # 0: the script must not ring it
        self._replication = Replication(redis)
        self._first_shard = 0

    def shard_of(self, thread: str) -> str:
        """Hash tag with which all keys of this thread begin."""
        return hash_tag(thread, prefix=self._prefix, shards=self._shards)

    def key(self, thread: str, kind: KeyKind, *parts: str) -> str:
        """Redis key in the shard of this thread."""
        return ":".join((self.shard_of(thread), kind, *parts))

    async def aclose(self) -> None:
        """Close the client for beats. The caller's client stays open."""
        await self._beats.aclose()

    async def _ring_if_asked(self, answer: int) -> bool:
        """Wake a worker if the script's reply is 2 or -2. Return whether the reply is above 0."""
        if self._is_bell_shared and abs(answer) > 1:
            with suppress(RedisError):
                await self._ring()
        return answer > 0

    async def _ring(self) -> None:
        """Wake one waiting worker. Raises ``RedisError``."""
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.lpush(self.bell, 1)
            pipe.ltrim(self.bell, 0, MAX_BELL_ENTRIES - 1)
            pipe.expire(self.bell, BELL_TTL_S)
            await pipe.execute()

    async def enqueue(  # noqa: PLR0913 - each has a default, and callers name those they change
        self,
        thread: str,
        body: str,
        *,
        event_ids: Sequence[str],
        slack_ts: str = "",
        hold_s: float = 0.0,
        fuller: bool = False,
    ) -> bool:
        """Store a message. Return False if any of ``event_ids`` was seen in the last 24 h, so it is already stored.

        In either case all of ``event_ids`` count as seen afterwards. After an error the message may be stored too.
        ``slack_ts`` puts the message before later ones. No worker claims it for ``hold_s``, unless a ``fuller`` event
        about the same message arrives: its body then replaces the stored one.
        """
        ids = dict.fromkeys(event_ids)  # the same id twice in one call is not a duplicate
        # Half an emoji in a cut text has no UTF-8 form. If it were refused, Slack would send it again and again.
        text = body.encode("utf-8", "replace")
        unique = uuid.uuid4().hex
        message_id = f"{slack_ts}/{unique[:12]}" if _SLACK_TS.fullmatch(slack_ts) else unique
        how = [SEEN_TTL_S, self._bell_ttl_in_scripts, round(hold_s * 1000), "1" if fuller else ""]
        arguments = [thread, message_id, text, *how, *ids]
        stored = await self._ring_if_asked(await self._enqueue(keys=[self.shard_of(thread)], args=arguments))
        await self._replication.confirm(self.shard_of(thread))
        return stored

    async def claim(self, worker: str, limit: int) -> list[Claimed]:
        """Claim up to ``limit`` threads that are due, each with its first message. Expired leases are taken over.

        Workspaces take turns. An unreachable shard is skipped if another one had something to claim.
        """
        claimed: list[Claimed] = []
        missed: RedisError | None = None
        lease_ms, last_try = round(self.lease_s * 1000), self.max_tries + EXTRA_NOTIFY_TRIES
        limits = [last_try, MAX_DEAD_LETTERS, DEAD_TTL_S, max(1, self.max_tries - SOLO_TRIES), self._per_team]
        # Start with a different shard each time, or the first one would always be served first.
        self._first_shard = (self._first_shard + 1) % len(self._tags)
        for shard in self._tags[self._first_shard :] + self._tags[: self._first_shard]:
            if limit <= len(claimed):
                break
            asked_at = now()
            try:
                rows = await self._claim(keys=[shard], args=[worker, lease_ms, limit - len(claimed), *limits])
            except RedisError as error:
                missed = error
                continue
            claimed += [
                Claimed(
                    thread=thread, tries=int(tries), leased_until=asked_at + self.lease_s,
                    fence=LeaseFence(key=self.key(thread, "head", thread), token=token),
                    **split_entry(entry)._asdict(),
                )
                for thread, token, tries, entry in rows
            ]  # fmt: skip
        if missed is not None and not claimed:
            raise missed
        return claimed

    async def renew_leases(self, held: Iterable[tuple[Claimed, Lease]]) -> None:
        """Renew these leases in Redis and locally. Those that Redis refuses are lost. Each shard is independent."""
        missed: RedisError | None = None
        by_shard: dict[str, list[tuple[Claimed, Lease]]] = {}
        for claimed, lease in held:
            by_shard.setdefault(self.shard_of(claimed.thread), []).append((claimed, lease))
        for shard, ours in by_shard.items():
            asked_at = now()
            pairs = [word for claimed, _ in ours for word in (claimed.thread, claimed.fence.token)]
            try:
                answers = await self._beat(keys=[shard], args=[round(self.lease_s * 1000), *pairs])
            except RedisError as error:
                missed = error
                continue
            for (_, lease), accepted in zip(ours, answers, strict=True):
                lease.lost |= not accepted
                lease.until = asked_at + self.lease_s
        if missed is not None:
            raise missed

    async def finish(
        self, claimed: Claimed, verb: Verb, *, after_s: float = 0, reason: str = "", deletes_mark: str = ""
    ) -> bool:
        """End the turn with this ``Ending``. Return False and change nothing if another worker took over.

        ``ok`` and ``dead`` remove the message (``dead`` keeps it with ``reason``). ``retry`` leaves it in place for
        ``after_s``. ``give_back`` leaves it for any worker (after ``after_s``) and does not count this try.
        """
        thread, mark = claimed.thread, f"{claimed.thread}:{deletes_mark}" if deletes_mark else ""
        ending: list[str | int] = [verb, round(after_s * 1000), reason]
        limits = [MAX_DEAD_LETTERS, DEAD_TTL_S, self._bell_ttl_in_scripts]
        arguments = [thread, claimed.fence.token, *ending, *limits, mark]
        return await self._ring_if_asked(await self._finish(keys=[self.shard_of(thread)], args=arguments))

    async def mark(self, claimed: Claimed, name: str, value: str, *, ttl_s: int = MARK_TTL_S) -> str:
        """Record once that an effect happened. Return the recorded value, which may be an earlier one.

        Raises ``LeaseLost`` when the lease expired or was taken over: this worker may not cause the effect.
        """
        arguments: list[str | int] = [claimed.thread, claimed.fence.token, f"{claimed.thread}:{name}", value, ttl_s]
        recorded = await self._mark(keys=[self.shard_of(claimed.thread)], args=arguments)
        if recorded is None:
            raise LeaseLost
        return str(recorded)

    async def has_mark(self, thread: str, name: str) -> bool:
        """Return whether a mark is set."""
        return await self._redis.get(self.key(thread, "mark", thread, name)) is not None

    async def cancel(self, wish: Cancellation) -> None:
        """Ask all workers to interrupt the turn of this message, but no later turn of its thread."""
        await self._redis.publish(self.cancel_channel, json.dumps(asdict(wish)))

    async def make_due_now(self, thread: str) -> None:
        """Make a message of this thread that waits for a retry due now, because a person withdrew it."""
        if await self._redis.zadd(self.key(thread, "ready", team_of(thread)), {thread: 1}, xx=True, lt=True, ch=True):
            await self._ring()

    async def is_waiting(self, thread: str) -> bool:
        """Return True if this thread has messages and no worker."""
        return await self._redis.zscore(self.key(thread, "ready", team_of(thread)), thread) is not None

    async def cancellations(self, listening: Callable[[], None]) -> AsyncIterator[Cancellation]:
        """Yield what any worker passes to ``cancel``, from the call of ``listening`` on. Raises ``RedisError``."""
        await self._redis.initialize()  # a cluster's client must know its nodes before it can subscribe to one
        async with self._redis.pubsub(ignore_subscribe_messages=True) as pubsub:
            await pubsub.subscribe(self.cancel_channel)
            listening()
            while True:
                raise_if_cancelled()
                message = await pubsub.get_message(timeout=1.0)
                if message is not None and (wish := parse_record(Cancellation, message["data"])) is not None:
                    yield wish

    async def wait(self, timeout_s: float) -> None:
        """Block until there may be something to claim, for ``timeout_s`` at most."""
        await self._redis.brpop([self.bell], timeout=timeout_s)

    async def list_waiting(self, *, for_s: float, again_s: float, limit: int, each_s: float = 0) -> list[Waiting]:
        """List messages that have waited for ``for_s``, to be claimed or for their thread's running turn.

        Each is listed once per ``again_s``. Only one process gets a list per ``each_s``.
        """
        found: list[Waiting] = []
        for shard in self._tags:
            limits = [round(for_s * 1000), round(again_s * 1000), limit - len(found), round(each_s * 1000)]
            rows = await self._waiting(keys=[shard], args=limits)
            found += [Waiting(thread, split_entry(stored), int(place)) for thread, stored, place in rows]
        return found

    async def list_messages(self, thread: str) -> list[MailboxEntry]:
        """List a thread's messages in order. A running turn belongs to the first."""
        entries = await self._redis.lrange(self.key(thread, "mb", thread), 0, -1)
        return [split_entry(str(entry)) for entry in entries]

    async def list_dead_letters(self, limit: int = 100) -> list[DeadLetter]:
        """List the messages that were given up, newest first. They expire after 30 days."""
        letters: list[DeadLetter] = []
        for number, tag in enumerate(self._tags):
            rows: Any = await self._redis.xrevrange(f"{tag}:dead", count=limit)
            # Two shards can use the same entry id.
            shard = f"{number}/" if len(self._tags) > 1 else ""
            letters += [
                DeadLetter(
                    entry_id=f"{shard}{entry_id}", thread=fields.get("thread", ""), reason=fields.get("reason", ""),
                    tries=int(parse_number(fields.get("tries"))), died_at=int(entry_id.partition("-")[0]) / 1000,
                    **split_entry(fields.get("entry", ""))._asdict(),
                )
                for entry_id, fields in rows
            ]  # fmt: skip
        return sorted(letters, key=lambda letter: -letter.died_at)[:limit]

    async def end_dead_letter(self, entry_id: str, fate: Fate) -> bool:
        """Retry this dead letter (once) or drop it. Return False if no such entry exists."""
        found = _ENTRY_ID.fullmatch(entry_id)
        shard = int(found["shard"] or 0) if found else len(self._tags)
        if found is None or shard >= len(self._tags):
            return False
        arguments = [found["place"], fate, self._bell_ttl_in_scripts]
        return await self._ring_if_asked(await self._decide(keys=[self._tags[shard]], args=arguments))

    async def probe(self) -> bool:
        """Try all commands that the queue needs, on test keys. Return True, or raise ``RedisError``."""
        self._first_shard = (self._first_shard + 1) % len(self._tags)
        shard = self._tags[self._first_shard]
        await self._probe(keys=[shard])
        await self._redis.brpop([f"{shard}:probe"], timeout=0.01)
        await self._redis.publish(self.cancel_channel, "")  # not a cancellation: workers ignore it
        return True

    async def depth(self) -> Depth:
        """Return the size of the queue over all shards."""
        rows = [await self._depth(keys=[shard]) for shard in self._tags]
        return Depth(*(sum(column) for column in zip(*rows, strict=True)))
