"""Redis' records of threads: their mode, their place, and their stops and deletions.

A thread's mode is unknown, addressed before ("engaged"), or told to keep quiet ("muted"). It is kept as long as the
thread's state, and a mention engages again. A thread that is older than this Redis and not in it may have been lost
("lost"): then only Slack knows the mode.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from agent.json_data import parse_number
from agent.thread.conversation import ThreadKey
from agent.thread.store import TTL_S
from bot.slack.history import sort_key
from bot.slack.message import Addressed, Incoming, Kind, ThreadMode

STRANGER_TTL_S: Final = 3_600  # a lookup uses one of about fifty calls a minute (Tier 3)
LOOKUP_TTL_S: Final = 86_400
MAX_CONTEXT_AGE_S: Final = 1_800
DIRECT_CHAT_TTL_S: Final = 86_400
SERVED_TTL_S: Final = 30 * 86_400
MAX_SERVED: Final = 5_000
CANCELLATION_TTL_S: Final = 86_400
# Kinds of message that engage Orion. An edit counts only with a mention: it must not unmute a direct chat.
_ENGAGING: Mapping[Addressed, tuple[Kind, ...]] = {
    "mention": ("question", "help", "edit", "unmute"),
    "direct": ("question", "help", "unmute"),
    "follow_up": ("unmute",),
    "overheard": (),
}
_THREAD_MODES: tuple[ThreadMode, ...] = ("unknown", "engaged", "muted")


@dataclass(frozen=True, slots=True)
class ThreadModes:
    """The mode of each thread. ``clock`` gives seconds since 1970, like Slack's timestamps."""

    redis: Redis
    prefix: str = "orion"
    clock: Callable[[], float] = time.time

    def key(self, thread: ThreadKey) -> str:
        """Redis key of a thread's mode."""
        return f"{self.prefix}:standing:{thread}"  # the old name of a thread's mode, kept in this key and the next

    def since_key(self) -> str:
        """Redis key of the time when this Redis was first used, in seconds since 1970. It has no TTL."""
        return f"{self.prefix}:remembers_since"

    async def get(self, thread: ThreadKey) -> ThreadMode:
        """Return the thread's mode and renew its TTL."""
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.getex(self.key(thread), ex=TTL_S)
            pipe.get(f"{self.prefix}:stranger:{thread}")
            pipe.set(self.since_key(), self.clock(), nx=True)
            pipe.get(self.since_key())
            stored, stranger, _, since = await pipe.execute()
        if stored:
            return "muted" if stored == "muted" else "engaged"
        # A direct chat without threads has no ts, so its start is unknown.
        is_older = thread.thread_ts.replace(".", "", 1).isdecimal() and float(thread.thread_ts) < parse_number(since)
        return "lost" if not stranger and is_older else "unknown"

    def record_message(self, pipe: Pipeline, incoming: Incoming, *, new: bool) -> None:
        """Record the mode that a stored message causes. Called after storing, so a repeated event reads the old mode.

        The second event of one mention may follow a "mute" and must not change a known mode.
        """
        if incoming.refused or incoming.addressed == "overheard":
            return
        key = self.key(incoming.thread)
        if incoming.kind == "mute":
            pipe.set(key, "muted", ex=TTL_S)
        elif incoming.kind in _ENGAGING[incoming.addressed]:
            pipe.set(self.since_key(), self.clock(), nx=True)
            pipe.set(key, "engaged", nx=not new, ex=TTL_S)

    async def engage(self, thread: ThreadKey) -> None:
        """Record that Orion was addressed here."""
        await self.redis.set(self.since_key(), self.clock(), nx=True)
        await self.redis.set(self.key(thread), "engaged", ex=TTL_S)

    async def confirm(self, thread: ThreadKey) -> None:
        """Record that a permitted person addressed Orion, even if a refused message was withdrawn meanwhile."""
        await self.redis.set(self.key(thread), "engaged", nx=True, ex=TTL_S)

    async def mute(self, thread: ThreadKey) -> None:
        """Record that Orion was told to keep quiet here."""
        await self.redis.set(self.key(thread), "muted", ex=TTL_S)

    async def expect_reply(self, thread: ThreadKey, turn_id: str, askers: Iterable[str]) -> None:
        """Record that people were asked to answer a turn's question here, and who asked."""
        await self.redis.set(self._handed_key(thread), " ".join((turn_id, *askers)), ex=TTL_S)

    async def claim_first_reply(self, thread: ThreadKey, user: str) -> str:
        """Return the id of the turn that this person is the first to answer here; empty for any other reply."""
        key = self._handed_key(thread)
        turn_id, *askers = str(await self.redis.get(key) or "").split(" ")
        return turn_id if turn_id and user not in askers and await self.redis.delete(key) else ""

    def _handed_key(self, thread: ThreadKey) -> str:
        return f"{self.prefix}:handed:{thread}"

    async def disengage(self, thread: ThreadKey) -> None:
        """Forget the mode: only a person without access addressed Orion here."""
        await self.redis.delete(self.key(thread))

    async def mark_stranger(self, thread: ThreadKey) -> None:
        """Record that Orion never spoke here, so that Slack is not asked again for an hour."""
        await self.redis.set(f"{self.prefix}:stranger:{thread}", "1", ex=STRANGER_TTL_S)

    async def load_lookup(self, thread: ThreadKey, ts: str) -> ThreadMode | None:
        """Return the mode that Slack's history gave before the message ``ts``; None if it was not looked up."""
        stored = await self.redis.get(f"{self.prefix}:standing_at:{thread}:{ts}")
        return next((thread_mode for thread_mode in _THREAD_MODES if thread_mode == str(stored)), None)

    async def save_lookup(self, thread: ThreadKey, ts: str, thread_mode: ThreadMode) -> None:
        """Save a looked-up mode, so that a waiting message looks it up once."""
        await self.redis.set(f"{self.prefix}:standing_at:{thread}:{ts}", thread_mode, ex=LOOKUP_TTL_S)


@dataclass(frozen=True, slots=True)
class DirectChats:
    """The threads of each direct chat by the time of their last message, kept for a day."""

    redis: Redis
    prefix: str = "orion"

    def key(self, thread: ThreadKey) -> str:
        """Redis key of the threads of this thread's direct chat."""
        return f"{self.prefix}:direct:{thread.team}:{thread.channel}"

    def record(self, pipe: Pipeline, thread: ThreadKey, ts: str) -> None:
        """Record the message ``ts`` of this thread; ignored outside direct chats."""
        if thread.channel.startswith("D"):
            key = self.key(thread)
            pipe.zadd(key, {thread.thread_ts: float(ts)})
            pipe.zremrangebyscore(key, 0, float(ts) - DIRECT_CHAT_TTL_S)
            pipe.expire(key, DIRECT_CHAT_TTL_S)

    async def previous_thread(self, thread: ThreadKey, ts: str) -> ThreadKey | None:
        """Return the thread used last, less than half an hour before ``ts`` opened this one; else None."""
        if not (thread.channel.startswith("D") and thread.thread_ts == ts):
            return None
        oldest, latest = f"({float(ts) - MAX_CONTEXT_AGE_S}", f"({float(ts)}"
        threads = await self.redis.zrevrangebyscore(self.key(thread), latest, oldest, start=0, num=1)
        return replace(thread, thread_ts=str(threads[0])) if threads else None

    async def forget(self, thread: ThreadKey, *, chat: bool) -> None:
        """Forget this thread; with ``chat``, all threads of its direct chat."""
        if chat:
            await self.redis.delete(self.key(thread))
        else:
            await self.redis.zrem(self.key(thread), thread.thread_ts)


@dataclass(frozen=True, slots=True)
class Served:
    """The latest threads and direct chats in which Orion was asked something, by time."""

    redis: Redis
    prefix: str = "orion"
    clock: Callable[[], float] = time.time

    @property
    def key(self) -> str:
        """Redis key of the places."""
        return f"{self.prefix}:served"

    def record(self, pipe: Pipeline, thread: ThreadKey, ts: str = "") -> None:
        """Record a place of a question. For a message ``ts`` that opens a thread in a direct chat, record the chat."""
        if thread.channel.startswith("D") and thread.thread_ts == ts:
            thread = replace(thread, thread_ts=thread.channel)
        pipe.zadd(self.key, {str(thread): self.clock()})

    async def trim(self) -> None:
        """Drop the oldest places."""
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.zremrangebyscore(self.key, 0, self.clock() - SERVED_TTL_S)
            pipe.zremrangebyrank(self.key, 0, -MAX_SERVED - 1)
            pipe.expire(self.key, SERVED_TTL_S)
            await pipe.execute()

    async def latest(self, limit: int) -> list[ThreadKey]:
        """Return up to ``limit`` places, the latest first."""
        members = await self.redis.zrevrange(self.key, 0, limit - 1)
        parts = [str(member).split(":", 2) for member in members]
        return [ThreadKey(team=team, channel=channel, thread_ts=ts) for team, channel, ts in parts]

    async def forget(self, thread: ThreadKey) -> None:
        """Forget this place."""
        await self.redis.zrem(self.key, str(thread))


@dataclass(frozen=True, slots=True)
class Cancellations:
    """Stops and deletions, by thread."""

    redis: Redis
    prefix: str = "orion"

    def stop_key(self, thread: ThreadKey) -> str:
        """Redis key of a thread's latest stop."""
        return f"{self.prefix}:stop:{thread}"

    def deleted_key(self, thread: ThreadKey, ts: str) -> str:
        """Redis key that marks a deleted message."""
        return f"{self.prefix}:gone:{thread}:{ts}"

    async def was_handled(self, incoming: Incoming) -> bool:
        """Return whether this message was handled before: a repeated stop must not stop a later turn."""
        return bool(await self.redis.exists(self._handled_key(incoming)))

    async def mark_handled(self, incoming: Incoming) -> bool:
        """Mark the message as handled and return whether this is the first time. Called last, so a crash repeats it."""
        return bool(await self.redis.set(self._handled_key(incoming), "1", nx=True, ex=CANCELLATION_TTL_S))

    def _handled_key(self, incoming: Incoming) -> str:
        keys = incoming.event_ids or (f"ts:{incoming.thread}:{incoming.event_ts}",)
        return f"{self.prefix}:heard:{keys[0]}"

    async def record_stop(self, incoming: Incoming) -> None:
        """Record that questions asked in this thread before the stop need no answer."""
        await self.redis.set(self.stop_key(incoming.thread), incoming.event_ts or incoming.ts, ex=CANCELLATION_TTL_S)

    async def record_deletion(self, incoming: Incoming) -> None:
        """Record that this question was deleted."""
        await self.redis.set(self.deleted_key(incoming.thread, incoming.ts), "1", ex=CANCELLATION_TTL_S)

    async def is_deleted(self, thread: ThreadKey, ts: str) -> bool:
        """Return whether the message with this ts was deleted."""
        return bool(await self.redis.exists(self.deleted_key(thread, ts)))


def stop_after(stop: str | None, incoming: Incoming) -> str:
    """Return the ts of a thread's latest stop if it came after the message, else an empty string."""
    return stop if stop and sort_key(incoming.event_ts or incoming.ts) < sort_key(stop) else ""
