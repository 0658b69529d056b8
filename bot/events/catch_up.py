"""Catches up after an outage: finds questions in Slack that were asked meanwhile, and stores them as if just asked.

Each message gets the same keys as its event, so a late event or a second replica stores nothing. The
heartbeat is written only after the missed messages are stored.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from typing import Final

import structlog
from redis.exceptions import LockError, RedisError

from agent.json_data import mapping, parse_number, string
from agent.thread.conversation import ThreadKey
from bot.events.intake import event_of
from bot.events.listeners import Listeners
from bot.install.workspaces import Workspaces
from bot.queue.claim import raise_if_cancelled
from bot.slack.history import ANSWER_EVENT, is_direct, is_own, sort_key
from bot.slack.web_api import DeliveryFailed
from bot.stores.stores import Stores

BEAT_S: Final = 15.0
MIN_ABSENCE_S: Final = 300.0  # Slack resends events for about six minutes
OVERLAP_S: Final = 60.0
MAX_AGE_S: Final = 3_600.0
HEARTBEAT_TTL_S: Final = 30 * 86_400
LOCK_TTL_S: Final = 600.0
MAX_PLACES: Final = 200
_GONE: Final = frozenset({"channel_not_found", "thread_not_found", "not_in_channel", "is_archived", "not_installed"})
log = structlog.get_logger()


@dataclass(slots=True)
class CatchUp:
    """Writes the heartbeat, and looks up missed messages."""

    stores: Stores
    _: KW_ONLY
    listeners: Listeners
    workspaces: Workspaces
    can_receive: Callable[[], Awaitable[bool]] | None = None  # in Socket Mode; over HTTP events can always arrive
    max_age_s: float = MAX_AGE_S  # how far back it looks; 0 never looks

    @property
    def heartbeat_key(self) -> str:
        """Redis key of the last heartbeat, in seconds since 1970."""
        return f"{self.stores.prefix}:listened_at"

    async def run(self) -> None:
        """Beat until cancelled, and wait out outages of Redis and Slack."""
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
        """Look up missed messages, unless another replica does, then write the heartbeat."""
        if self.can_receive and not await self.can_receive():
            return
        now = time.time()
        if await self._absence_s(now) < MIN_ABSENCE_S:
            await self._note_heartbeat(now)
            return
        lock = self.stores.redis.lock(f"{self.stores.prefix}:catching_up", timeout=LOCK_TTL_S, blocking=False)
        if not await lock.acquire():  # another replica catches up
            return
        try:
            away_s = await self._absence_s(now)
            if away_s >= MIN_ABSENCE_S:
                await self._catch_up(now, away_s)
                await self._note_heartbeat(now)
        finally:
            # Only here: around the whole block, an expired lock would hide an outage of Slack or our cancellation.
            with suppress(LockError):
                await lock.release()

    async def _absence_s(self, now: float) -> float:
        listened_at = parse_number(await self.stores.redis.get(self.heartbeat_key))
        return now - listened_at if listened_at else 0.0

    async def _note_heartbeat(self, now: float) -> None:
        await self.stores.redis.set(self.heartbeat_key, now, ex=HEARTBEAT_TTL_S)
        await self.stores.served.trim()

    async def _catch_up(self, now: float, away_s: float) -> None:
        oldest = f"{now - min(away_s + OVERLAP_S, self.max_age_s):.6f}"
        places = await self.stores.served.latest(MAX_PLACES) if self.max_age_s else []
        count = 0
        for place in places:
            try:
                count += await self._catch_up_in(place, oldest)
            except DeliveryFailed as failure:
                if not failure.permanent:
                    raise
                log.warning("catch_up_skipped", thread=str(place), reason=failure.reason)
                if failure.reason in _GONE:
                    await self.stores.served.forget(place)
        log.info("caught_up", away_s=round(away_s), places=len(places), messages=count)

    async def _catch_up_in(self, place: ThreadKey, oldest: str) -> int:
        """Take the unanswered messages since ``oldest`` (a ts). Return their number."""
        reader = (await self.workspaces.of(place.team)).delivery.reader
        own = await reader.workspace.identity()
        read, count = await reader.read_since(place, oldest), 0
        messages = [one for one in read if sort_key(string(one, "ts")) >= sort_key(oldest)]
        own_data = [mapping(one, "metadata") for one in messages if is_own(one, own)]
        answers = [one for one in own_data if string(one, "event_type") == ANSWER_EVENT]
        answered = {string(one, "event_payload", "question_ts") for one in answers} - {""}
        for message in messages:
            ts = string(message, "ts")
            if is_direct(place) and message.get("reply_count"):  # such a message has its own thread
                count += await self._catch_up_in(replace(place, thread_ts=ts), oldest)
            elif ts not in answered:
                count += 1
                await self.listeners.store_event(event_of(place, message, own), own)
        return count
