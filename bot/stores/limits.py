"""Limits on answering: daily token budgets, the pause of all processes, and the caps of listening channels.

Days are in UTC. Tokens are counted call by call, so a killed worker's share counts too. A turn reserves the day's
average before it begins and releases it when it ends, so that a burst of questions cannot exceed a budget.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from agent.json_data import parse_json, parse_number, string
from agent.tasks import background_tasks
from bot.settings import Settings
from bot.slack.message import Incoming

Holder = Literal["user", "channel", "workspace"]

DAY_S: Final = 86_400
BUDGET_TTL_S: Final = 2 * DAY_S
RESERVATION_TTL_S: Final = 900  # longer than a turn, so that a crashed one releases its share
FIRST_RESERVATION: Final = 2_000  # tokens of a turn, until one of the day has ended
_RESERVATIONS: Final = Path(__file__).with_name("reservations.lua").read_text(encoding="utf-8")
_HOLDERS: Final[tuple[Holder, ...]] = ("user", "channel", "workspace")
MAX_REASON_LENGTH = 300
MAX_POSTS_A_DAY: Final = 20  # in one channel
QUIET_AFTER_DISLIKES: Final = 2
MUTED_TTL_S: Final = 365 * 86_400
WORK_TTL_S: Final = 300  # longer than a turn, so that a crashed worker frees the channel
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Tokens per day, 0 for no limit. The per-person limit does not apply to ``admins``."""

    user: int = 0
    channel: int = 0
    workspace: int = 0
    admins: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Return True if there is any limit."""
        return bool(self.user or self.channel or self.workspace)

    def of(self, incoming: Incoming) -> dict[Holder, int]:
        """Return the limits that apply to this message."""
        personal = 0 if incoming.user in self.admins else self.user
        limits: dict[Holder, int] = {"user": personal, "channel": self.channel, "workspace": self.workspace}
        return {holder: limit for holder, limit in limits.items() if limit}


def limits_of(settings: Settings) -> Limits:
    """Return the limits that the settings name."""
    limits = {holder: getattr(settings, f"daily_tokens_{holder}") for holder in _HOLDERS}
    return Limits(**limits, admins=settings.admins)


@dataclass(frozen=True, slots=True)
class Budgets:
    """The counts of each day. ``clock`` returns seconds since 1970."""

    redis: Redis
    limits: Limits
    prefix: str = "orion"
    clock: Callable[[], float] = time.time

    def key(self, team: str) -> str:
        """Redis key of a workspace's counts of today: one hash, so that they change in one step."""
        return f"{self.prefix}:tokens:{team}:{datetime.fromtimestamp(self.clock(), UTC):%Y-%m-%d}"

    @property
    def seconds_until_reset(self) -> int:
        """Number of seconds until the next day of UTC begins."""
        return DAY_S - int(self.clock()) % DAY_S

    def queue_read(self, pipe: Any, incoming: Incoming) -> bool:
        """Queue the reading in a pipeline if a limit applies; ``find_exhausted`` takes the reply."""
        fields = [_field(holder, incoming) for holder in self.limits.of(incoming)]
        if fields:
            pipe.hmget(self.key(incoming.thread.team), fields)
        return bool(fields)

    def find_exhausted(self, incoming: Incoming, used: Sequence[Any]) -> Holder | None:
        """Return the holder whose budget is exhausted, given the ``used`` tokens from Redis."""
        pairs = zip(self.limits.of(incoming).items(), used, strict=True)
        return next((holder for (holder, limit), n in pairs if parse_number(n) >= limit), None)

    @asynccontextmanager
    async def reserve(self, turn_id: str, incoming: Incoming) -> AsyncIterator[bool]:
        """Reserve an average turn's tokens for the block. Yield False if running turns may use up a budget.

        A turn that reserves again replaces its reservation. Raises ``RedisError``.
        """
        limits = [(_field(holder, incoming), limit) for holder, limit in self.limits.of(incoming).items()]
        if not limits:
            yield True
            return
        key, now = self.key(incoming.thread.team), self.clock()
        arguments: list[str | float] = [turn_id, BUDGET_TTL_S, now, now + RESERVATION_TTL_S, FIRST_RESERVATION]
        arguments += [len(limits), *(part for pair in limits for part in pair)]
        arguments += [_field(holder, incoming) for holder in _HOLDERS]
        is_reserved = await self.redis.register_script(_RESERVATIONS)(keys=[key], args=arguments)
        try:
            yield bool(is_reserved)
        finally:
            await self.release(turn_id, incoming)

    @asynccontextmanager
    async def count_turn(self, incoming: Incoming) -> AsyncIterator["TurnTokens"]:
        """Yield the counter of a turn. What it has not written yet is written at the end of the block."""
        async with background_tasks() as tasks:
            tokens = TurnTokens(self, incoming, tasks)
            try:
                yield tokens
            finally:
                await tokens.write(at_end=True)

    async def release(self, turn_id: str, incoming: Incoming) -> None:
        """Release a turn's reservation, because it is over, or its worker crashed and another one takes over."""
        if not self.limits:
            return
        try:
            script, key = self.redis.register_script(_RESERVATIONS), self.key(incoming.thread.team)
            await script(keys=[key], args=[turn_id, BUDGET_TTL_S])
        except RedisError as error:  # the reservation expires
            log.warning("tokens_not_released", error_type=type(error).__name__)


@dataclass(slots=True, eq=False)
class TurnTokens:
    """The tokens of one turn. Without a limit nothing is counted."""

    budgets: Budgets
    incoming: Incoming
    tasks: asyncio.TaskGroup
    _total: int = 0
    _unwritten: int = 0
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def add(self, tokens: int) -> None:
        """Count the tokens of one call, and write them in the background."""
        if tokens > 0 and self.budgets.limits:
            self._total += tokens
            self._unwritten += tokens
            self.tasks.create_task(self.write(), name="tokens")

    async def write(self, *, at_end: bool = False) -> None:
        """Write the pending changes, after any write in progress. If Redis is down, the next call writes it.

        Only a turn that used tokens counts for the average: others would make reservations too small.
        """
        async with self._writing:
            tokens, key, redis = self._unwritten, self.budgets.key(self.incoming.thread.team), self.budgets.redis
            counts = at_end and self._total > 0
            if not tokens and not counts:
                return
            try:
                async with redis.pipeline(transaction=True) as pipe:
                    for holder in _HOLDERS:
                        pipe.hincrby(key, _field(holder, self.incoming), tokens)
                    if counts:
                        pipe.hincrby(key, "turns", 1)
                    pipe.expire(key, BUDGET_TTL_S)
                    await pipe.execute()
                self._unwritten -= tokens
            except RedisError as error:
                log.warning("tokens_not_counted", error_type=type(error).__name__, tokens=tokens)


def _field(holder: Holder, incoming: Incoming) -> str:
    return {"user": f"user:{incoming.user}", "channel": f"channel:{incoming.thread.channel}"}.get(holder, holder)


def duration_text(seconds: int) -> str:
    """Return hours and minutes in symbols that every language shares; at least one minute."""
    minutes = max(1, round(seconds / 60))
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"  # noqa: PLR2004 - an hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """An active pause. ``since`` is seconds since 1970, ``reason`` an admin's words, perhaps empty."""

    since: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RedisStore:
    """A store whose records are in Redis, by kind. ``clock`` returns seconds since 1970, like Slack's timestamps.

    Every method of a store raises ``RedisError`` if Redis is down.
    """

    redis: Redis
    prefix: str = "orion"
    clock: Callable[[], float] = time.time

    def key(self, kind: str, *parts: object) -> str:
        """Redis key of one record."""
        return ":".join((self.prefix, kind, *map(str, parts)))


class Pausing(RedisStore):
    """The pause switch. Kinds: ``paused`` (no TTL: a pause must not end by itself), ``resumed`` (its last end)."""

    async def pause(self, reason: str = "") -> Pause:
        """Pause from now on. An active pause keeps its start and gets the new reason."""
        before = await self.current()
        since, words = before.since if before else self.clock(), " ".join(reason.split())
        pause = Pause(since=since, reason=words[:MAX_REASON_LENGTH])
        await self.redis.set(self.key("paused"), json.dumps(asdict(pause)))
        return pause

    async def resume(self) -> bool:
        """End the pause. Return whether there was one."""
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.delete(self.key("paused"))
            pipe.set(self.key("resumed"), self.clock(), ex=30 * 86_400)
            deleted, _ = await pipe.execute()
        return bool(deleted)

    async def current(self) -> Pause | None:
        """Return the active pause. An unreadable one counts as active too."""
        return read_pause(await self.redis.get(self.key("paused")))


def read_pause(stored: bytes | str | None) -> Pause | None:
    """Parse a stored pause. An unreadable one counts as active too."""
    if not stored:
        return None
    try:
        fields = parse_json(stored)
        return Pause(since=float(fields["since"]), reason=string(fields, "reason"))
    except (ValueError, KeyError, TypeError):
        return Pause(since=0.0)


class Listening(RedisStore):
    """Channels in which Orion listens. Redis stores ``muted``, ``quiet``, ``working`` and a day's counts of each."""

    async def may_speak(self, team: str, channel: str) -> bool:
        """Return whether the channel is neither muted nor quiet, and has not reached today's cap."""
        async with self.redis.pipeline(transaction=False) as pipe:
            for what in ("muted", "quiet", self._today("posts")):
                pipe.get(self.key("listening", what, team, channel))
            muted, quiet, posts = await pipe.execute()
        return not muted and not quiet and parse_number(posts) < MAX_POSTS_A_DAY

    async def begin(self, team: str, channel: str, turn_id: str) -> bool:
        """Claim the channel for one turn. Return False if another turn is working there."""
        key = self.key("listening", "working", team, channel)
        if await self.redis.set(key, turn_id, nx=True, ex=WORK_TTL_S):
            return True
        return str(await self.redis.get(key)) == turn_id  # left by an earlier try of the same message

    async def end(self, team: str, channel: str, turn_id: str) -> None:
        """Free the channel, unless another turn has it."""
        key = self.key("listening", "working", team, channel)
        if await self.redis.get(key) == turn_id:
            await self.redis.delete(key)

    async def count_post(self, team: str, channel: str) -> None:
        """Count an answer against today's cap."""
        await self._count("posts", team, channel)

    async def count_dislike(self, team: str, channel: str) -> None:
        """Count a dislike; after two in one day the channel is quiet for a day."""
        if await self._count("dislikes", team, channel) >= QUIET_AFTER_DISLIKES:
            await self.redis.set(self.key("listening", "quiet", team, channel), "1", ex=DAY_S)

    async def set_muted(self, team: str, channel: str, *, muted: bool) -> None:
        """Mute or unmute a channel."""
        key = self.key("listening", "muted", team, channel)
        await (self.redis.set(key, "1", ex=MUTED_TTL_S) if muted else self.redis.delete(key))

    def _today(self, what: str) -> str:
        return f"{what}:{datetime.fromtimestamp(self.clock(), UTC):%Y-%m-%d}"

    async def _count(self, what: str, team: str, channel: str) -> int:
        key = self.key("listening", self._today(what), team, channel)
        async with self.redis.pipeline(transaction=True) as pipe:
            pipe.incr(key)
            pipe.expire(key, BUDGET_TTL_S)
            count, _ = await pipe.execute()
        return int(count)
