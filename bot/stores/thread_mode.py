"""Where Orion stands in a thread: unknown, addressed before ("engaged"), or told to keep quiet ("muted").

Kept as long as the thread's state; a mention engages again. A thread older than this memory and not in it may have
been lost with an earlier Redis ("lost"): then only Slack can tell.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

from agent.thread.conversation import ThreadKey
from bot.slack.message import Addressed, Incoming, Kind, ThreadMode

KEPT_S = 30 * 86_400  # as long as the thread's state
STRANGER_S = 3_600  # a look is one of some fifty readings a minute that Slack allows (Tier 3)
AT_S = 86_400
# What addresses Orion: an edit only where it mentions, for one in a muted direct chat unmutes nothing.
_ENGAGING: Mapping[Addressed, tuple[Kind, ...]] = {
    "mention": ("question", "help", "edit", "unmute"),
    "direct": ("question", "help", "unmute"),
    "follow_up": ("unmute",),
}
_THREAD_MODES: tuple[ThreadMode, ...] = ("unknown", "engaged", "muted")


class ThreadModes:
    """The standing of each thread. ``clock`` gives seconds since 1970, as threads' timestamps do."""

    def __init__(self, redis: Redis, *, prefix: str = "orion", clock: Callable[[], float] = time.time) -> None:
        self._redis = redis
        self._prefix = prefix
        self._clock = clock

    def key(self, thread: ThreadKey) -> str:
        """Where one thread's standing lies."""
        return f"{self._prefix}:standing:{thread}"

    def since_key(self) -> str:
        """Where it stands since when this Redis remembers, in seconds since 1970. It stays for ever."""
        return f"{self._prefix}:remembers_since"

    async def of(self, thread: ThreadKey) -> ThreadMode:
        """The thread's standing; reading it is use, so it lives on."""
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.getex(self.key(thread), ex=KEPT_S)
            pipe.get(f"{self._prefix}:stranger:{thread}")
            pipe.set(self.since_key(), self._clock(), nx=True)
            pipe.get(self.since_key())
            stored, stranger, _, since = await pipe.execute()
        if stored:
            return "muted" if stored == "muted" else "engaged"
        return "lost" if not stranger and _began(thread) < float(since) else "unknown"

    def note(self, pipe: Pipeline, incoming: Incoming, *, new: bool) -> None:
        """What a stored message makes of its thread; noted after that, for a repeated event must be read as the first.

        The second event of one mention may come after a "mute": it changes nothing that is known.
        """
        if incoming.refused:
            return
        key = self.key(incoming.thread)
        if incoming.kind == "mute":
            pipe.set(key, "muted", ex=KEPT_S)
        elif incoming.kind in _ENGAGING[incoming.addressed]:
            pipe.set(self.since_key(), self._clock(), nx=True)
            pipe.set(key, "engaged", nx=not new, ex=KEPT_S)

    async def engage(self, thread: ThreadKey) -> None:
        """Orion was addressed here. The first time of all is when this Redis began to remember."""
        await self._redis.set(self.since_key(), self._clock(), nx=True)
        await self._redis.set(self.key(thread), "engaged", ex=KEPT_S)

    async def confirm(self, thread: ThreadKey) -> None:
        """Somebody who may addressed Orion here: that holds, whatever was taken back meanwhile of one who may not."""
        await self._redis.set(self.key(thread), "engaged", nx=True, ex=KEPT_S)

    async def mute(self, thread: ThreadKey) -> None:
        """Somebody told Orion to keep quiet here."""
        await self._redis.set(self.key(thread), "muted", ex=KEPT_S)

    async def disengage(self, thread: ThreadKey) -> None:
        """Whoever addressed Orion here may not: nobody else did, so what is said here is said to others."""
        await self._redis.delete(self.key(thread))

    async def pass_by(self, thread: ThreadKey) -> None:
        """Slack says that Orion never spoke here; nobody need look again for an hour."""
        await self._redis.set(f"{self._prefix}:stranger:{thread}", "1", ex=STRANGER_S)

    async def at(self, thread: ThreadKey, ts: str) -> ThreadMode | None:
        """What Slack said of the thread as it was before the message ``ts``; None where it was not asked yet."""
        found = await self._redis.get(f"{self._prefix}:standing_at:{thread}:{ts}")
        return next((thread_mode for thread_mode in _THREAD_MODES if thread_mode == str(found)), None)

    async def note_at(self, thread: ThreadKey, ts: str, thread_mode: ThreadMode) -> None:
        """Slack was asked: a message that waits and is looked at again and again need not ask anew."""
        await self._redis.set(f"{self._prefix}:standing_at:{thread}:{ts}", thread_mode, ex=AT_S)


def _began(thread: ThreadKey) -> float:
    """When a thread began, in seconds since 1970; a direct chat without threads has no such time, so it is now."""
    ts = thread.thread_ts
    return float(ts) if ts.replace(".", "", 1).isdecimal() else float("inf")
