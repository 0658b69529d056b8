"""All stores over one Redis, records of threads, and the facts that a turn begins with.

The facts are read in one round trip and are as old as the turn. A later stop or deletion reaches the running turn as a
cancellation.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, get_args

import structlog
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from agent.json_data import parse_number, parse_record
from agent.thread.conversation import ThreadKey
from agent.thread.state import StateNotSaved, ThreadState
from agent.thread.store import TTL_S, StateFenced, ThreadStore, read_row
from bot.queue.claim import Claimed, LeaseLost
from bot.queue.queue import Mailbox
from bot.slack.directory import CachedDirectory, Person
from bot.slack.history import sort_key
from bot.slack.message import Addressed, Incoming, Kind, ThreadMode
from bot.stores.limits import Budgets, Holder, Limits, Listening, Pause, Pausing, RedisStore, read_pause
from bot.stores.turn_records import read_entry

STRANGER_TTL_S: Final = 3_600  # a lookup uses one of about fifty calls a minute (Tier 3)
LOOKUP_TTL_S: Final = 86_400
MAX_CONTEXT_AGE_S: Final = 1_800
DIRECT_MESSAGE_TTL_S: Final = 86_400
SERVED_TTL_S: Final = 30 * 86_400
MAX_SERVED: Final = 5_000
CANCELLATION_TTL_S: Final = 86_400
# Kinds of message that engage Orion. An edit counts only with a mention: it must not unmute direct messages.
_ENGAGING: Mapping[Addressed, tuple[Kind, ...]] = {
    "mention": ("question", "edit", "unmute"),
    "direct": ("question", "unmute"),
    "follow_up": ("unmute",),
    "overheard": (),
}


class ThreadModes(RedisStore):
    """The mode of each thread.

    It is unknown, addressed before ("engaged"), or told to keep quiet ("muted"). It is kept as long as the thread's
    state, and a mention engages again. A thread that is older than this Redis and not in it may have been lost
    ("lost"): then only Slack knows the mode.

    Kinds: a thread's mode (``standing``), the mode that Slack's history gave before a message (``standing_at``), when
    this Redis was first used (``remembers_since``, without a TTL), a thread in which Orion never spoke (``stranger``),
    the turn that people were asked to answer, and who asked (``handed``).
    """

    async def get(self, thread: ThreadKey) -> ThreadMode:
        """Return the thread's mode and renew its TTL."""
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.getex(self.key("standing", thread), ex=TTL_S)
            pipe.get(self.key("stranger", thread))
            pipe.set(self.key("remembers_since"), self.clock(), nx=True)
            pipe.get(self.key("remembers_since"))
            stored, stranger, _, since = await pipe.execute()
        if stored:
            return "muted" if stored == "muted" else "engaged"
        # Direct messages without threads have no ts, so its start is unknown.
        is_older = thread.thread_ts.replace(".", "", 1).isdecimal() and float(thread.thread_ts) < parse_number(since)
        return "lost" if not stranger and is_older else "unknown"

    def record_message(self, pipe: Pipeline, incoming: Incoming, *, new: bool) -> None:
        """Record the mode that a stored message causes. Called after storing, so a repeated event reads the old mode.

        The second event of one mention may follow a "mute" and must not change a known mode.
        """
        if incoming.refused or incoming.addressed == "overheard":
            return
        key = self.key("standing", incoming.thread)
        if incoming.kind == "mute":
            pipe.set(key, "muted", ex=TTL_S)
        elif incoming.kind in _ENGAGING[incoming.addressed]:
            pipe.set(self.key("remembers_since"), self.clock(), nx=True)
            pipe.set(key, "engaged", nx=not new, ex=TTL_S)

    async def set(self, thread: ThreadKey, mode: ThreadMode, *, if_unknown: bool = False) -> None:
        """Record the mode of a thread; with ``if_unknown``, unless one is known."""
        await self.redis.set(self.key("remembers_since"), self.clock(), nx=True)
        await self.redis.set(self.key("standing", thread), mode, nx=if_unknown, ex=TTL_S)

    async def expect_reply(self, thread: ThreadKey, turn_id: str, askers: Iterable[str]) -> None:
        """Record who asked people here to answer a turn's question."""
        await self.redis.set(self.key("handed", thread), " ".join((turn_id, *askers)), ex=TTL_S)

    async def claim_first_reply(self, thread: ThreadKey, user: str) -> str:
        """Return the id of the turn that this person is the first to answer here; empty for any other reply."""
        key = self.key("handed", thread)
        turn_id, *askers = str(await self.redis.get(key) or "").split(" ")
        return turn_id if turn_id and user not in askers and await self.redis.delete(key) else ""

    async def disengage(self, thread: ThreadKey) -> None:
        """Forget the mode: only a person without access addressed Orion here."""
        await self.redis.delete(self.key("standing", thread))

    async def mark_stranger(self, thread: ThreadKey) -> None:
        """Record that Orion never spoke here, so that Slack is not asked again for an hour."""
        await self.redis.set(self.key("stranger", thread), "1", ex=STRANGER_TTL_S)

    async def load_lookup(self, thread: ThreadKey, ts: str) -> ThreadMode | None:
        """Return the mode that Slack's history gave before the message ``ts``; None if it was not looked up."""
        stored = await self.redis.get(self.key("standing_at", thread, ts))
        return next((thread_mode for thread_mode in get_args(ThreadMode) if thread_mode == stored), None)

    async def save_lookup(self, thread: ThreadKey, ts: str, thread_mode: ThreadMode) -> None:
        """Save a looked-up mode, so that a waiting message looks it up once."""
        await self.redis.set(self.key("standing_at", thread, ts), thread_mode, ex=LOOKUP_TTL_S)


class DirectMessages(RedisStore):
    """The threads of direct messages with each person (``direct``), by the time of their last message, for a day."""

    def record(self, pipe: Pipeline, thread: ThreadKey, ts: str) -> None:
        """Record the message ``ts`` of this thread; ignored outside direct messages."""
        if thread.channel.startswith("D"):
            key = self.key("direct", thread.team, thread.channel)
            pipe.zadd(key, {thread.thread_ts: float(ts)})
            pipe.zremrangebyscore(key, 0, float(ts) - DIRECT_MESSAGE_TTL_S)
            pipe.expire(key, DIRECT_MESSAGE_TTL_S)

    async def previous_thread(self, thread: ThreadKey, ts: str) -> ThreadKey | None:
        """Return the thread used last, less than half an hour before ``ts`` opened this one; else None."""
        if not (thread.channel.startswith("D") and thread.thread_ts == ts):
            return None
        key, oldest = self.key("direct", thread.team, thread.channel), float(ts) - MAX_CONTEXT_AGE_S
        threads = await self.redis.zrevrangebyscore(key, f"({float(ts)}", f"({oldest}", start=0, num=1)
        return replace(thread, thread_ts=str(threads[0])) if threads else None

    async def forget(self, thread: ThreadKey, *, chat: bool) -> None:
        """Forget this thread; with ``chat``, all direct messages with that person."""
        key = self.key("direct", thread.team, thread.channel)
        await (self.redis.delete(key) if chat else self.redis.zrem(key, thread.thread_ts))


class Served(RedisStore):
    """The latest places (``served``) in which Orion was asked something, by time."""

    def record(self, pipe: Pipeline, thread: ThreadKey, ts: str = "") -> None:
        """Record where a question was asked. If a direct message ``ts`` opens a thread, record its channel."""
        if thread.channel.startswith("D") and thread.thread_ts == ts:
            thread = replace(thread, thread_ts=thread.channel)
        pipe.zadd(self.key("served"), {str(thread): self.clock()})

    async def trim(self) -> None:
        """Drop the oldest places."""
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.zremrangebyscore(self.key("served"), 0, self.clock() - SERVED_TTL_S)
            pipe.zremrangebyrank(self.key("served"), 0, -MAX_SERVED - 1)
            pipe.expire(self.key("served"), SERVED_TTL_S)
            await pipe.execute()

    async def latest(self, limit: int) -> list[ThreadKey]:
        """Return up to ``limit`` places, the latest first."""
        members = await self.redis.zrevrange(self.key("served"), 0, limit - 1)
        parts = (str(member).split(":", 2) for member in members)
        whole = (place for place in parts if len(place) == 3)  # noqa: PLR2004 - the next line names the three
        return [ThreadKey(team=team, channel=channel, thread_ts=ts) for team, channel, ts in whole]

    async def forget(self, thread: ThreadKey) -> None:
        """Forget this place."""
        await self.redis.zrem(self.key("served"), str(thread))


class Cancellations(RedisStore):
    """Threads' latest stops (``stop``), deleted messages (``gone``), and which of these were handled (``heard``)."""

    async def was_handled(self, incoming: Incoming) -> bool:
        """Return whether this message was handled before: a repeated stop must not stop a later turn."""
        return await self.redis.get(self._handled_key(incoming)) is not None

    async def mark_handled(self, incoming: Incoming) -> bool:
        """Mark the message as handled and return whether this is the first time. Called last, so a crash repeats it."""
        return bool(await self.redis.set(self._handled_key(incoming), "1", nx=True, ex=CANCELLATION_TTL_S))

    def _handled_key(self, incoming: Incoming) -> str:
        keys = incoming.event_ids or (f"ts:{incoming.thread}:{incoming.event_ts}",)
        return self.key("heard", keys[0])

    async def record_stop(self, incoming: Incoming) -> None:
        """Record that questions asked in this thread before the stop need no answer."""
        await self.redis.set(self.key("stop", incoming.thread), incoming.event_ts or incoming.ts, ex=CANCELLATION_TTL_S)

    async def record_deletion(self, incoming: Incoming) -> None:
        """Record that this question was deleted."""
        await self.redis.set(self.key("gone", incoming.thread, incoming.ts), "1", ex=CANCELLATION_TTL_S)

    async def is_deleted(self, thread: ThreadKey, ts: str) -> bool:
        """Return whether the message with this ts was deleted."""
        return await self.redis.get(self.key("gone", thread, ts)) is not None


def stop_after(stop: str | None, incoming: Incoming) -> str:
    """Return the ts of a thread's latest stop if it came after the message, else an empty string."""
    return stop if stop and sort_key(incoming.event_ts or incoming.ts) < sort_key(stop) else ""


TOKEN_TTL_S = 600  # Slack accepts a search token for a few minutes only
MarkName = Literal["outbox", "waits", "streams", "stream", "thread"]
"""Marks of a turn: its answer, the start of a visible wait, a stream that may exist, its ts, the thread from Slack."""
log = structlog.get_logger()


class Stores:
    """``mailbox``: waiting messages; ``threads``: their state; ``thread_modes``: whether Orion follows each thread."""

    def __init__(self, redis: Redis, mailbox: Mailbox, limits: Limits | None = None, *, prefix: str = "orion") -> None:
        self.redis, self.prefix, self.mailbox = redis, prefix, mailbox
        self.threads = ThreadStore(redis, prefix=prefix)
        self.thread_modes = ThreadModes(redis, prefix=prefix)
        self.cancellations = Cancellations(redis, prefix=prefix)
        self.direct_messages = DirectMessages(redis, prefix=prefix)
        self.served = Served(redis, prefix=prefix)
        self.listening = Listening(redis, prefix=prefix)
        self.pausing = Pausing(redis, prefix=prefix)
        self.budgets = Budgets(redis, limits or Limits(), prefix=prefix)
        self.people = CachedDirectory(redis, prefix=prefix)

    def token_key(self, incoming: Incoming) -> str:
        """Redis key of the token with which Orion may search Slack for this version of a message."""
        return f"{self.prefix}:action_token:{incoming.thread}:{incoming.ts}:{incoming.edited_ts}"

    async def save_token(self, incoming: Incoming) -> None:
        """Save the search token of an event, if it has one. Raises ``RedisError``."""
        if incoming.action_token:
            await self.redis.set(self.token_key(incoming), incoming.action_token, ex=TOKEN_TTL_S)

    async def save(self, claimed: Claimed, thread: ThreadKey, state: ThreadState) -> None:
        """Save the thread's state. A failure is only logged, because it is no reason to answer again.

        Raises ``LeaseLost`` if another worker has the thread.
        """
        try:
            await self.threads.save(thread, state, fence=claimed.fence)
        except StateFenced:
            raise LeaseLost from None
        except StateNotSaved as error:
            log.warning("state_save_failed", thread=str(thread), reason=type(error).__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts about one message.

    ``person`` and ``shared`` (other organisations can read the channel) come from a cache and may be missing;
    ``thread_mode`` is missing if Orion was never addressed there. ``stop_ts`` is the ts of a stop after the message.
    ``resumed`` is the end of the last pause, in seconds since 1970. ``has_notice``: its author was shown its place in
    the queue, less than ``bot.turn.status.NOTICE_AGAIN_S`` ago. ``exhausted`` names an exhausted budget.

    The last five are marks of earlier tries of the turn (``Mailbox.mark``): the decided answer, the time in seconds
    since 1970 at which a service first failed, that a stream was begun, the ts of that stream, and the conversation
    as read from Slack.
    """

    state: ThreadState = field(default_factory=ThreadState)
    state_schema: int = 0
    thread_mode: str | None = None
    is_deleted: bool = False
    stop_ts: str = ""
    pause: Pause | None = None
    resumed: float = 0.0
    has_notice: bool = False
    person: Person | None = None
    shared: bool | None = None
    token: str = ""
    exhausted: Holder | None = None
    outbox: str | None = None
    failed_since: str | None = None
    stream_begun: str | None = None
    stream_ts: str | None = None
    conversation: str | None = None

    @property
    def is_wanted(self) -> bool:
        """True if the question was neither deleted nor stopped."""
        return not (self.is_deleted or self.stop_ts)


def mark_of(turn_id: str, name: MarkName) -> str:
    """Return the full name of a turn's mark."""
    return f"{name}:{turn_id}"


async def read_facts(stores: Stores, incoming: Incoming, turn_id: str, message_id: str = "") -> Facts:
    """Read the facts about one message. Raises ``RedisError``."""
    thread, team, where = incoming.thread, incoming.thread.team, str(incoming.thread)
    keys: dict[str, str] = {
        "thread_mode": stores.thread_modes.key("standing", thread),
        "gone": stores.cancellations.key("gone", thread, incoming.ts),
        "stop": stores.cancellations.key("stop", thread),
        "paused": stores.pausing.key("paused"),
        "resumed": stores.pausing.key("resumed"),
        "notice": stores.mailbox.key(where, "told", message_id),
        "person": stores.people.key("person", team, incoming.user),
        "shared": stores.people.key("shared", team, thread.channel),
        "token": stores.token_key(incoming),
        **{name: stores.mailbox.key(where, "mark", where, mark_of(turn_id, name)) for name in get_args(MarkName)},
    }
    async with stores.redis.pipeline(transaction=False) as pipe:
        stores.threads.ask(pipe, thread)
        budgeted = stores.budgets.queue_read(pipe, incoming)
        for key in keys.values():  # not MGET, which hides a key of a wrong type
            pipe.get(key)
        row, _, *replies = await pipe.execute()
    used, *found = replies if budgeted else [None, *replies]
    values = dict(zip(keys, found, strict=True))
    state, schema = read_row(stores.threads.key(thread), row)
    person = parse_record(Person, values["person"], complete=True)
    for name, read in (("person", person), ("outbox", read_entry(values["outbox"]))):
        if values[name] and read is None:
            log.warning("damaged_value_ignored", key=keys[name])
    return Facts(
        state=state, state_schema=schema, thread_mode=values["thread_mode"], token=values["token"] or "",
        exhausted=stores.budgets.find_exhausted(incoming, used) if budgeted else None,
        is_deleted=values["gone"] is not None, stop_ts=stop_after(values["stop"], incoming),
        pause=read_pause(values["paused"]), resumed=parse_number(values["resumed"]),
        has_notice=values["notice"] is not None, person=person,
        shared=None if values["shared"] is None else values["shared"] == "1",
        outbox=values["outbox"], failed_since=values["waits"], stream_begun=values["streams"],
        stream_ts=values["stream"], conversation=values["thread"],
    )  # fmt: skip
