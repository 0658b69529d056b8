"""Who may be answered, as Slack describes people and channels: members, guests, other organisations.

Slack is asked once an hour for each. While it is away ``DeliveryFailed`` comes out, and the question waits.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final
from weakref import WeakValueDictionary

from redis.asyncio import Redis

from bot.slack.message import Incoming
from bot.slack.payload import mapping, string
from bot.slack.web_api import DeliveryFailed, SlackCalls
from verification.text.language import detect_language

# Who becomes a guest is answered for an hour more: the price of not asking each time (decision 5).
CACHE_TTL_S: Final = 3_600
NOTICE_TTL_S: Final = (
    86_400  # what only one person sees is gone when their window is: the next day it may be said again
)
# Slack answers so about people of another organisation that we share no channel with any more.
_NOT_OURS: Final = frozenset({"user_not_found", "user_not_visible", "users_not_found"})
_GONE: Final = "channel_not_found"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """What counts about somebody's account. ``language`` is the one they use Slack in, empty when unknown."""

    guest: bool = False
    external: bool = False
    bot: bool = False
    language: str = ""


@dataclass(eq=False)
class CachedPeople:
    """What Slack said of people lately, of any workspace. ``prefix`` keeps one Orion's memory apart from another's."""

    redis: Redis
    prefix: str = "orion"

    def person_key(self, team: str, user: str) -> str:
        """Where it stands what Slack said of a person."""
        return f"{self.prefix}:person:{team}:{user}"

    def channel_key(self, team: str, channel: str) -> str:
        """Where it stands whether a channel is shared with others."""
        return f"{self.prefix}:shared:{team}:{channel}"

    async def cached_person(self, team: str, user: str) -> Person | None:
        """What was found out within the last hour; Slack is not asked."""
        return parse_person(await self.redis.get(self.person_key(team, user)))


class People(CachedPeople):
    """Looks up people and channels of one workspace."""

    def __init__(self, calls: SlackCalls, redis: Redis, *, prefix: str = "orion") -> None:
        super().__init__(redis, prefix=prefix)
        self._calls = calls
        # Whoever asks about the same person or channel meanwhile waits for the one call.
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def notice_key(self, team: str, user: str, subject: str) -> str:
        """Where it stands that a person was told something."""
        return f"{self.prefix}:told:{team}:{user}:{subject}"

    async def claim_notice(self, team: str, user: str, subject: str) -> bool:
        """Whether the person has not been told this today; from now on they have."""
        return bool(await self.redis.set(self.notice_key(team, user, subject), "1", nx=True, ex=NOTICE_TTL_S))

    async def release_notice(self, team: str, user: str, subject: str) -> None:
        """It could not be told after all: the next time counts."""
        await self.redis.delete(self.notice_key(team, user, subject))

    async def cached_language(self, team: str, user: str) -> str | None:
        """What this person uses Slack in, as far as it is known already."""
        known = await self.cached_person(team, user)
        return known.language if known else None

    async def message_language(self, incoming: Incoming) -> str | None:
        """What the message is written in; where it has no text, what its person uses Slack in."""
        return (
            detect_language(incoming.text)
            if incoming.text
            else await self.cached_language(incoming.thread.team, incoming.user)
        )

    async def language_of(self, team: str, user: str) -> str | None:
        """What this person uses Slack in; Slack is asked where that is not known. Raises as ``person`` does."""
        return (await self.find_person(team, user)).language or None

    async def find_person(self, team: str, user: str) -> Person:
        """Somebody's account as seen here. Raises ``DeliveryFailed``: Slack is away, or does not let us look."""
        async with self._asking.setdefault(user, asyncio.Lock()):
            if known := await self.cached_person(team, user):
                return known
            try:
                # Slack leaves the locale out unless it is asked for.
                reply = await self._calls.read("users.info", user=user, include_locale="true")
            except DeliveryFailed as failure:
                if failure.reason not in _NOT_OURS:
                    raise
                found = Person(external=True)  # whom Slack does not know as ours counts as somebody else's
            else:
                found = read_person(mapping(reply, "user"), team)
            await self.redis.set(self.person_key(team, user), json.dumps(asdict(found)), ex=CACHE_TTL_S)
            return found

    async def is_shared(self, team: str, channel: str) -> bool:
        """Whether people of another organisation can read this channel; raises as ``person`` does."""
        key = self.channel_key(team, channel)
        async with self._asking.setdefault(channel, asyncio.Lock()):
            if (stored := await self.redis.get(key)) is not None:
                return bool(stored == "1")
            try:
                reply = await self._calls.read("conversations.info", channel=channel)
            except DeliveryFailed as failure:
                if failure.reason != _GONE:
                    raise
                return True  # not ours to see; nothing to remember either, we may be invited the next minute
            shared = is_shared_outside(mapping(reply, "channel"))
            await self.redis.set(key, "1" if shared else "0", ex=CACHE_TTL_S)
            return shared


def parse_person(stored: bytes | str | None) -> Person | None:
    """What was written down; None, so that Slack is asked again, where another version wrote it in another form."""
    try:
        fields = json.loads(stored or "")
        return Person(**{one: fields[one] for one in Person.__slots__})
    except (ValueError, KeyError, TypeError):
        return None


def read_person(user: Mapping[str, Any], team: str) -> Person:
    """The ``user`` object of ``users.info``. Members of a sister workspace of our Enterprise organisation are ours."""
    home, teams = string(user, "team_id"), mapping(user, "enterprise_user").get("teams")
    ours = home in {"", team} or (isinstance(teams, list) and team in teams)
    return Person(
        # Guests of several channels, and of a single one.
        guest=bool(user.get("is_restricted") or user.get("is_ultra_restricted")),
        external=bool(user.get("is_stranger")) or not ours,
        bot=bool(user.get("is_bot")),
        language=string(user, "locale").partition("-")[0].casefold(),
    )


def is_shared_outside(channel: Mapping[str, Any]) -> bool:
    """Whether a ``channel`` object is shared beyond our organisation, or about to be."""
    if channel.get("is_ext_shared") or channel.get("is_pending_ext_shared"):
        return True
    # ``is_shared`` alone is also said of a channel that only sister workspaces of our own organisation share.
    return bool(channel.get("is_shared")) and not channel.get("is_org_shared")
