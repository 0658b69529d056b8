"""The mode of a thread: unknown, addressed before ("engaged"), or told to keep quiet ("muted").

It is kept as long as the thread's state. A mention engages again. A thread that is older than this Redis and not in it
may have been lost ("lost"): then only Slack knows the mode.
"""

import time
from collections.abc import Callable, Iterable, Mapping

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from agent.thread.conversation import ThreadKey
from agent.thread.store import TTL_S
from bot.slack.message import Addressed, Incoming, Kind, ThreadMode

STRANGER_TTL_S = 3_600  # a lookup uses one of about fifty calls a minute (Tier 3)
LOOKUP_TTL_S = 86_400
# Kinds of message that engage Orion. An edit counts only with a mention: it must not unmute a direct chat.
_ENGAGING: Mapping[Addressed, tuple[Kind, ...]] = {
    "mention": ("question", "help", "edit", "unmute"),
    "direct": ("question", "help", "unmute"),
    "follow_up": ("unmute",),
    "overheard": (),
}
_THREAD_MODES: tuple[ThreadMode, ...] = ("unknown", "engaged", "muted")


class ThreadModes:
    """The mode of each thread. ``clock`` gives seconds since 1970, like Slack's timestamps."""

    def __init__(self, redis: Redis, *, prefix: str = "orion", clock: Callable[[], float] = time.time) -> None:
        self._redis = redis
        self._prefix = prefix
        self._clock = clock

    def key(self, thread: ThreadKey) -> str:
        """Redis key of a thread's mode."""
        return f"{self._prefix}:standing:{thread}"

    def since_key(self) -> str:
        """Redis key of the time when this Redis was first used, in seconds since 1970. It has no TTL."""
        return f"{self._prefix}:remembers_since"

    async def get(self, thread: ThreadKey) -> ThreadMode:
        """Return the thread's mode and renew its TTL."""
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.getex(self.key(thread), ex=TTL_S)
            pipe.get(f"{self._prefix}:stranger:{thread}")
            pipe.set(self.since_key(), self._clock(), nx=True)
            pipe.get(self.since_key())
            stored, stranger, _, since = await pipe.execute()
        if stored:
            return "muted" if stored == "muted" else "engaged"
        return "lost" if not stranger and _start_time(thread) < float(since) else "unknown"

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
            pipe.set(self.since_key(), self._clock(), nx=True)
            pipe.set(key, "engaged", nx=not new, ex=TTL_S)

    async def engage(self, thread: ThreadKey) -> None:
        """Record that Orion was addressed here; on first use also the time when this Redis was first used."""
        await self._redis.set(self.since_key(), self._clock(), nx=True)
        await self._redis.set(self.key(thread), "engaged", ex=TTL_S)

    async def confirm(self, thread: ThreadKey) -> None:
        """Record that a permitted person addressed Orion, even if a refused message was withdrawn meanwhile."""
        await self._redis.set(self.key(thread), "engaged", nx=True, ex=TTL_S)

    async def mute(self, thread: ThreadKey) -> None:
        """Record that Orion was told to keep quiet here."""
        await self._redis.set(self.key(thread), "muted", ex=TTL_S)

    async def expect_reply(self, thread: ThreadKey, turn_id: str, askers: Iterable[str]) -> None:
        """Record that people were asked to answer a turn's question here, and who asked."""
        await self._redis.set(self._handed_key(thread), " ".join((turn_id, *askers)), ex=TTL_S)

    async def claim_first_reply(self, thread: ThreadKey, user: str) -> str:
        """Return the id of the turn that this person is the first to answer here; empty for any other reply."""
        turn_id, *askers = str(await self._redis.get(self._handed_key(thread)) or "").split(" ")
        first = turn_id and user not in askers and await self._redis.delete(self._handed_key(thread))
        return turn_id if first else ""

    def _handed_key(self, thread: ThreadKey) -> str:
        return f"{self._prefix}:handed:{thread}"

    async def disengage(self, thread: ThreadKey) -> None:
        """Forget the mode: only a person without access addressed Orion here."""
        await self._redis.delete(self.key(thread))

    async def mark_stranger(self, thread: ThreadKey) -> None:
        """Record that Orion never spoke here, so that Slack is not asked again for an hour."""
        await self._redis.set(f"{self._prefix}:stranger:{thread}", "1", ex=STRANGER_TTL_S)

    async def load_lookup(self, thread: ThreadKey, ts: str) -> ThreadMode | None:
        """Return the mode that Slack's history gave before the message ``ts``; None if it was not looked up."""
        found = await self._redis.get(f"{self._prefix}:standing_at:{thread}:{ts}")
        return next((thread_mode for thread_mode in _THREAD_MODES if thread_mode == str(found)), None)

    async def save_lookup(self, thread: ThreadKey, ts: str, thread_mode: ThreadMode) -> None:
        """Save a looked-up mode, so that a waiting message looks it up once."""
        await self._redis.set(f"{self._prefix}:standing_at:{thread}:{ts}", thread_mode, ex=LOOKUP_TTL_S)


def _start_time(thread: ThreadKey) -> float:
    """Return when a thread began, in seconds since 1970; infinity for a direct chat without threads."""
    ts = thread.thread_ts
    return float(ts) if ts.replace(".", "", 1).isdecimal() else float("inf")
