"""All stores over one Redis for all workspaces, the facts that a turn begins with, and the outbox of decided answers.

The facts are read in one round trip and are as old as the turn. A later stop or deletion reaches the running turn as a
cancellation. An answer is in the outbox before it is posted, so that a crash repeats the delivery and not the turn.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, get_args

import structlog
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster

from agent.json_data import compact_json, parse_json, parse_number
from agent.outcome import OutcomeName
from agent.thread.conversation import ThreadKey
from agent.thread.state import StateNotSaved, ThreadState, from_json, to_json
from agent.thread.store import StateFenced, ThreadStore, read_row
from agent.tools.builtin.knowledge import without_slack_text
from bot.queue.lease import Claimed, LeaseLost
from bot.queue.queue import Mailbox
from bot.slack.directory import CachedDirectory, Person, parse_person
from bot.slack.message import Incoming
from bot.stores.limits import Budgets, Holder, Limits, Listening, Pause, Pausing, read_pause
from bot.stores.threads import Cancellations, DirectChats, Served, ThreadModes, stop_after
from verification.types import Answer, Repair, Source, Violation

NO_LIMITS = Limits()
TOKEN_TTL_S = 600  # Slack accepts a search token for a few minutes only
MarkName = Literal["outbox", "waits", "streams", "stream", "thread"]
"""Marks of a turn: the decided answer, the start of a visible wait, that a stream may have begun, the stream's ts,
the thread's messages as read from Slack."""
_MARKS: Final[tuple[MarkName, ...]] = get_args(MarkName)
_ROW, _USED = 0, 2  # replies by their place: the thread's row, its new life time, the budgets' counters, the keys
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEntry:
    """One turn's outcome, the answer that goes with it, and the thread's state afterwards."""

    outcome: OutcomeName
    answer: Answer
    state: ThreadState

    def to_json(self) -> str:
        """One line that ``read_entry`` reads back."""
        answer = replace(self.answer, sources=tuple(map(without_slack_text, self.answer.sources)), claims=())
        return compact_json({"outcome": self.outcome, "answer": answer, "state": to_json(self.state)})


def read_entry(stored: str | None) -> OutboxEntry | None:
    """Read an entry; None if it is missing or unreadable."""
    if not stored:
        return None
    try:
        fields = parse_json(stored)
        kept = fields["answer"]
        answer = Answer(**{
            **kept, "chunks": tuple(kept["chunks"]), "claims": (),
            "sources": tuple(Source(**source) for source in kept["sources"]),
            "repairs": tuple(Repair(**repair) for repair in kept["repairs"]),
            "violations": tuple(Violation(**violation) for violation in kept["violations"]),
        })  # fmt: skip
        return OutboxEntry(outcome=fields["outcome"], answer=answer, state=from_json(fields["state"]))
    except (ValueError, KeyError, TypeError):
        return None


class Stores:
    """``mailbox``: waiting messages; ``threads``: their state; ``thread_modes``: engaged, muted or unknown."""

    def __init__(self, redis: Redis, mailbox: Mailbox, limits: Limits = NO_LIMITS, *, prefix: str = "orion") -> None:
        self.redis, self.prefix, self.mailbox = redis, prefix, mailbox
        self.threads = ThreadStore(redis, prefix=prefix)
        self.thread_modes = ThreadModes(redis, prefix=prefix)
        self.cancellations = Cancellations(redis, prefix=prefix)
        self.direct_chats = DirectChats(redis, prefix=prefix)
        self.served = Served(redis, prefix=prefix)
        self.listening = Listening(redis, prefix=prefix)
        self.pausing = Pausing(redis, prefix=prefix)
        self.budgets = Budgets(redis, limits, prefix=prefix)
        self.people = CachedDirectory(redis, prefix=prefix)

    def token_key(self, incoming: Incoming) -> str:
        """Redis key of the token with which Orion may search Slack for this version of a message."""
        return f"{self.prefix}:action_token:{incoming.thread}:{incoming.ts}:{incoming.edited_ts}"

    async def save_token(self, incoming: Incoming) -> None:
        """Save the search token of an event, if it has one. Raises ``RedisError``."""
        if incoming.action_token:
            await self.redis.set(self.token_key(incoming), incoming.action_token, ex=TOKEN_TTL_S)

    async def save(self, claimed: Claimed, thread: ThreadKey, state: ThreadState) -> None:
        """Save the thread's state. A failure is logged and never a reason to answer again.

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

    ``person`` and ``shared`` (other organisations read the channel) come from a cache and may be missing;
    ``thread_mode`` is missing if Orion was never addressed there. ``stop_ts`` is the ts of a stop after the message.
    ``resumed`` is the end of the last pause, in seconds since 1970. ``exhausted`` names an exhausted budget. ``outbox``
    and the fields after it are the marks that earlier tries of the turn left (``Mailbox.mark``).
    """

    state: ThreadState = field(default_factory=ThreadState)
    state_schema: int = 0
    thread_mode: str | None = None
    is_deleted: bool = False
    stop_ts: str = ""
    pause: Pause | None = None
    resumed: float = 0.0
    person: Person | None = None
    shared: bool | None = None
    token: str = ""
    exhausted: Holder | None = None
    outbox: str | None = None
    waits: str | None = None
    streams: str | None = None
    stream: str | None = None
    thread: str | None = None

    @property
    def is_wanted(self) -> bool:
        """True if the question was neither deleted nor stopped."""
        return not (self.is_deleted or self.stop_ts)


def mark_of(turn_id: str, name: MarkName) -> str:
    """Return the full name of a turn's mark."""
    return f"{name}:{turn_id}"


async def read_facts(stores: Stores, incoming: Incoming, turn_id: str) -> Facts:
    """Read the facts about one message. Raises ``RedisError``."""
    thread, team = incoming.thread, incoming.thread.team
    keys: dict[str, str] = {
        "thread_mode": stores.thread_modes.key(thread),
        "gone": stores.cancellations.deleted_key(thread, incoming.ts),
        "stop": stores.cancellations.stop_key(thread),
        "paused": stores.pausing.key(),
        "resumed": stores.pausing.resumed_key(),
        "person": stores.people.person_key(team, incoming.user),
        "shared": stores.people.channel_key(team, thread.channel),
        "token": stores.token_key(incoming),
        **{name: stores.mailbox.mark_key(str(thread), mark_of(turn_id, name)) for name in _MARKS},
    }
    async with stores.redis.pipeline(transaction=False) as pipe:
        stores.threads.ask(pipe, thread)
        budgeted = stores.budgets.queue_read(pipe, incoming)
        if clustered := isinstance(stores.redis, RedisCluster):  # one MGET cannot span its nodes
            for key in keys.values():
                pipe.get(key)
        else:
            pipe.mget(list(keys.values()))
        replies = await pipe.execute()
    values = dict(zip(keys, replies[-len(keys) :] if clustered else replies[-1], strict=True))
    state, schema = read_row(replies[_ROW])
    marks: dict[str, Any] = {name: values[name] for name in _MARKS}
    return Facts(
        state=state, state_schema=schema, thread_mode=values["thread_mode"], token=values["token"] or "",
        exhausted=stores.budgets.find_exhausted(incoming, replies[_USED] if budgeted else ()),
        is_deleted=values["gone"] is not None, stop_ts=stop_after(values["stop"], incoming),
        pause=read_pause(values["paused"]), resumed=parse_number(values["resumed"]),
        person=parse_person(values["person"]),
        shared=None if values["shared"] is None else values["shared"] == "1", **marks,
    )  # fmt: skip
