"""What was asked while nobody listened: looked up in Slack and stored as if it had just come.

Each message is stored under the same keys as an event about it, so a late event, or another replica that looks, stores
nothing. That Orion listens is noted only after what was missed is stored.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Final

import structlog
from redis.exceptions import LockError, RedisError

from agent.thread.conversation import ThreadKey
from bot.install.workspaces import DeliveryOf
from bot.queue.lease import raise_if_cancelled
from bot.slack.history import ANSWER_EVENT, is_direct, is_own, sort_key
from bot.slack.message import BotIdentity
from bot.slack.payload import mapping, string
from bot.slack.web_api import DeliveryFailed
from bot.stores.stores import Stores

BEAT_S: Final = 15.0
MIN_ABSENCE_S: Final = 300.0
"""An absence up to here needs no looking: Slack sends an event again until about six minutes after it happened."""
OVERLAP_S: Final = 60.0
RECENT_S: Final = 3_600.0
HEARTBEAT_TTL_S: Final = 30 * 86_400
LOCK_TTL_S: Final = 600.0
MAX_PLACES: Final = 200
_GONE: Final = frozenset({"channel_not_found", "thread_not_found", "not_in_channel", "is_archived", "not_installed"})
log = structlog.get_logger()


@dataclass(slots=True)
class CatchUp:
    """Notes that Orion listens, and looks up what it missed.

    ``listening`` tells whether events can arrive right now, ``take`` is what an event does. ``recent_s`` is how far
    back it looks at most; 0 never looks.
    """

    stores: Stores
    _: KW_ONLY
    listening: Callable[[], Awaitable[bool]]
    take: Callable[[dict[str, Any], BotIdentity], Awaitable[object]]
    delivery_of: DeliveryOf
    recent_s: float = RECENT_S

    @property
    def heartbeat_key(self) -> str:
        """Where it stands when Orion last listened, in seconds since 1970."""
        return f"{self.stores.prefix}:listened_at"

    async def run(self) -> None:
        """Beat until cancelled. A Redis or Slack that is away is waited for."""
        while True:
            try:
                await self.beat()
            except RedisError as error:
                log.warning("heartbeat_failed", error_type=type(error).__name__)
            except DeliveryFailed as failure:
                log.warning("catch_up_put_off", reason=failure.reason, again_in_s=BEAT_S)
            raise_if_cancelled()
            await asyncio.sleep(BEAT_S)

    async def beat(self) -> None:
        """Note that Orion listens; before that look up what it missed, unless another replica is at it.

        Raises ``RedisError`` and ``DeliveryFailed`` where nothing was noted: the next beat looks again.
        """
        if not await self.listening():
            return
        now = time.time()
        if await self._absence_s(now) < MIN_ABSENCE_S:
            await self._note_heartbeat(now)
            return
        lock = self.stores.redis.lock(f"{self.stores.prefix}:catching_up", timeout=LOCK_TTL_S, blocking=False)
        if not await lock.acquire():  # another replica is at it
            return
        try:
            away_s = await self._absence_s(now)
            if away_s >= MIN_ABSENCE_S:
                await self._catch_up(now, away_s)
                await self._note_heartbeat(now)
        finally:
            # Only here: around the whole a lock that ran out would hide a Slack that is away, or our cancellation.
            with suppress(LockError):
                await lock.release()

    async def _absence_s(self, now: float) -> float:
        stored = await self.stores.redis.get(self.heartbeat_key)
        try:
            return now - float(stored) if stored else 0.0
        except ValueError:
            return 0.0

    async def _note_heartbeat(self, now: float) -> None:
        await self.stores.redis.set(self.heartbeat_key, now, ex=HEARTBEAT_TTL_S)
        await self.stores.served.trim()

    async def _catch_up(self, now: float, away_s: float) -> None:
        oldest = f"{now - min(away_s + OVERLAP_S, self.recent_s):.6f}"
        places = await self.stores.served.latest(MAX_PLACES) if self.recent_s else []
        found = 0
        for place in places:
            try:
                found += await self._catch_up_in(place, oldest)
            except DeliveryFailed as failure:
                if not failure.permanent:
                    raise
                log.warning("catch_up_skipped", thread=str(place), reason=failure.reason)
                if failure.reason in _GONE:
                    await self.stores.served.forget(place)
        log.info("caught_up", away_s=round(away_s), places=len(places), messages=found)

    async def _catch_up_in(self, place: ThreadKey, oldest: str) -> int:
        """Take what people said there since ``oldest`` (a ts) and nobody answered. Returns how many messages.

        In a direct chat each message that has replies is a thread of its own.
        """
        reader = (await self.delivery_of(place.team)).reader
        own = await reader.own()
        said = [
            one for one in await reader.read_since(place, oldest) if sort_key(string(one, "ts")) >= sort_key(oldest)
        ]
        answered = {question for one in said if (question := _answered_question(one, own))}
        count = 0
        for message in said:
            ts = string(message, "ts")
            if is_direct(place) and message.get("reply_count"):
                count += await self._catch_up_in(replace(place, thread_ts=ts), oldest)
            elif ts not in answered:
                count += 1
                await self.take(_envelope(place, message, own), own)
        return count


def _answered_question(message: Mapping[str, Any], own: BotIdentity) -> str:
    """The ts of the question that this message of Orion's answers; empty for any other message."""
    metadata = mapping(message, "metadata")
    answers = string(metadata, "event_type") == ANSWER_EVENT and is_own(message, own)
    return string(metadata, "event_payload", "question_ts") if answers else ""


def _envelope(place: ThreadKey, message: Mapping[str, Any], own: BotIdentity) -> dict[str, Any]:
    """The event that Slack would have sent. An edited message counts as it stands now, as a first question.

    When it was sent, a thread's first message had no replies, hence no ``thread_ts``.
    """
    mentioned = f"<@{own.user}" in string(message, "text") and not place.channel.startswith("D")
    event = {key: value for key, value in message.items() if key != "edited"}
    if event.get("thread_ts") == event["ts"]:
        del event["thread_ts"]
    event |= {"type": "app_mention" if mentioned else "message", "channel": place.channel, "event_ts": message["ts"]}
    return {"type": "event_callback", "team_id": place.team, "event": event}
