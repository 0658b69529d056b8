"""What Redis knows about a message when its turn begins, read in one round trip.

It is as old as the turn. A stop or a deletion that comes later reaches the running turn as a cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from redis.asyncio.cluster import RedisCluster

from agent.thread.state import ThreadState
from agent.thread.store import read_row
from bot.slack.message import Incoming
from bot.slack.users import Person, parse_person
from bot.stores.budgets import Holder
from bot.stores.cancellations import after
from bot.stores.pause import Pause, read_pause
from bot.stores.stores import Stores

MarkName = Literal["outbox", "waits", "streams", "stream", "thread"]
"""What a turn notes: the decided answer, since when its person sees it wait, that a stream may have begun, the stream's
ts, what was read of the thread."""
_MARKS: Final[tuple[MarkName, ...]] = get_args(MarkName)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """``person`` and ``shared`` (whether others read the channel) are None where Slack was not asked lately.

    ``standing`` is where Orion stands in the thread, None where nobody addressed it. ``stopped`` is the ts of a stop
    that came after the message. ``resumed`` is when the last pause ended, in seconds since 1970. ``used_up`` names the
    budget that is. ``outbox`` and what follows are the marks that earlier tries of the turn left (``Job.mark``).
    """

    state: ThreadState = field(default_factory=ThreadState)
    state_schema: int = 0
    standing: str | None = None
    gone: bool = False
    stopped: str = ""
    pause: Pause | None = None
    resumed: float = 0.0
    person: Person | None = None
    shared: bool | None = None
    token: str = ""
    used_up: Holder | None = None
    outbox: str | None = None
    waits: str | None = None
    streams: str | None = None
    stream: str | None = None
    thread: str | None = None

    @property
    def engaged(self) -> bool:
        """Whether Orion was addressed in the thread, and not told to keep quiet since."""
        return self.standing == "engaged"

    @property
    def wanted(self) -> bool:
        """Whether the question still wants an answer."""
        return not (self.gone or self.stopped)


def mark_of(turn_id: str, name: MarkName) -> str:
    """The full name of a turn's mark."""
    return f"{name}:{turn_id}"


async def read_facts(stores: Stores, incoming: Incoming, turn_id: str) -> Facts:
    """The facts about one message. Raises ``RedisError``."""
    keys = _keys(stores, incoming, turn_id)
    clustered = isinstance(stores.redis, RedisCluster)  # one MGET cannot span its nodes
    async with stores.redis.pipeline(transaction=False) as pipe:
        stores.threads.ask(pipe, incoming.thread)
        budgeted = stores.budgets.ask(pipe, incoming)
        if clustered:
            for key in keys.values():
                pipe.get(key)
        else:
            pipe.mget(list(keys.values()))
        row, _, *rest = await pipe.execute()
    used = rest.pop(0) if budgeted else ()
    found = dict(zip(keys, rest if clustered else rest[0], strict=True))
    state, schema = read_row(row)
    marks: dict[str, Any] = {name: found[name] for name in _MARKS}
    return Facts(
        state=state,
        state_schema=schema,
        used_up=stores.budgets.used_up(incoming, used),
        standing=found["standing"],
        gone=found["gone"] is not None,
        stopped=after(found["stop"], incoming),
        pause=read_pause(found["paused"]),
        resumed=float(found["resumed"] or 0),
        person=parse_person(found["person"]),
        shared=None if found["shared"] is None else found["shared"] == "1",
        token=found["token"] or "",
        **marks,
    )


def _keys(stores: Stores, incoming: Incoming, turn_id: str) -> dict[str, str]:
    thread, team = incoming.thread, incoming.thread.team
    marks: dict[str, str] = {name: stores.mailbox.mark_key(str(thread), mark_of(turn_id, name)) for name in _MARKS}
    return {
        "standing": stores.thread_modes.key(thread),
        "gone": stores.cancellations.gone_key(thread, incoming.ts),
        "stop": stores.cancellations.stop_key(thread),
        "paused": stores.pausing.key(),
        "resumed": stores.pausing.resumed_key(),
        "person": stores.people.person_key(team, incoming.user),
        "shared": stores.people.channel_key(team, thread.channel),
        "token": stores.token_key(incoming),
        **marks,
    }
