"""People, channels and groups of one workspace as Slack describes them: names and memberships.

Slack is asked once in five minutes about access, and once an hour about names. While it is unreachable,
``DeliveryFailed`` is raised, and the question waits.
"""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, TypeVar
from weakref import WeakValueDictionary

import structlog
from redis.asyncio import Redis

from agent.json_data import mapping, objects, parse_json, parse_record, string
from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.slack_message import named_ids, with_names
from agent.knowledge.types import KnowledgeAwayError
from agent.thread.conversation import Question, ThreadKey, ThreadMessage, needs_memberships
from bot.slack.client import SlackWorkspace
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed, SlackCalls
from verification.text.language import detect_language

# a new guest's questions are answered for up to five minutes, because Slack is not asked each time (decision 5)
ACCESS_TTL_S: Final = 300
NAMES_TTL_S: Final = 3_600
# an ephemeral message disappears when Slack is closed, so it may be posted again the next day
NOTICE_TTL_S: Final = 86_400
# Slack's answers about people of another organisation that shares no channel with ours any more.
_NOT_OURS: Final = frozenset({"user_not_found", "user_not_visible", "users_not_found"})
_PRIVATE: Final = "private "  # before a cached name
_CHANNEL_TYPES: Final = "public_channel,private_channel"
MAX_NAMES: Final = 12  # maximum ids to look up per turn; most are cached
MEMBERSHIPS_TTL_S: Final = 600
MEMBERSHIPS_TIMEOUT_S: Final = 4.0  # the question waits for the lookup
Found = TypeVar("Found")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """The relevant facts about an account. ``language`` is the one in Slack, ``tz`` an IANA name; both may be empty."""

    guest: bool = False
    external: bool = False
    deactivated: bool = False
    bot: bool = False
    language: str = ""
    name: str = ""
    tz: str = ""


@dataclass(eq=False)
class CachedDirectory:
    """Slack's latest replies, for any workspace. ``prefix`` separates several Orions on one Redis."""

    redis: Redis
    prefix: str = "orion"

    def key(self, what: Literal["person", "shared", "name", "told", "memberships"], team: str, about: str) -> str:
        """Redis key of a person, whether a channel is shared, the name of a channel or group, or a person's notice."""
        return f"{self.prefix}:{what}:{team}:{about}"

    async def cached_person(self, team: str, user: str) -> Person | None:
        """Return what is cached. Slack is not asked."""
        return parse_record(Person, await self.redis.get(self.key("person", team, user)), complete=True)

    async def cached_language(self, team: str, user: str) -> str | None:
        """Return the language in which this person uses Slack, if it is cached."""
        person = await self.cached_person(team, user)
        return (person.language or None) if person else None


class SlackDirectory(CachedDirectory):
    """Looks up people, channels and groups of one workspace."""

    def __init__(self, workspace: SlackWorkspace, redis: Redis, *, prefix: str = "orion") -> None:
        super().__init__(redis, prefix=prefix)
        self.calls, self.workspace = workspace.calls, workspace
        # Concurrent lookups of the same person or channel wait for one call.
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def notice_language(self, incoming: Incoming) -> str | None:
        """Return the language of a message or, if its few words do not show one, the author's in Slack."""
        return detect_language(incoming.text) or await self.cached_language(incoming.thread.team, incoming.user)

    async def find_person(self, team: str, user: str, *, fresh: bool = False) -> Person:
        """Return an account as this workspace sees it. Raises ``DeliveryFailed`` if Slack is down or refuses it."""
        async with self._asking.setdefault(user, asyncio.Lock()):
            if not fresh and (cached := await self.cached_person(team, user)):
                return cached
            try:
                # Slack leaves out the locale unless it is requested.
                reply = await self.calls.read("users.info", user=user, include_locale="true")
            except DeliveryFailed as failure:
                if failure.reason not in _NOT_OURS:
                    raise
                person = Person(external=True)
            else:
                account = mapping(reply, "user")
                elsewhere = string(account, "team_id") != team
                has_sisters = elsewhere and string(account, "enterprise_user", "enterprise_id")
                person = read_person(account, team, await self.workspace.enterprise() if has_sisters else "")
            await self.redis.set(self.key("person", team, user), json.dumps(asdict(person)), ex=ACCESS_TTL_S)
            return person

    async def is_shared(self, team: str, channel: str) -> bool:
        """Return whether people of another organisation can read this channel. Raises like ``find_person``."""
        key = self.key("shared", team, channel)
        async with self._asking.setdefault(channel, asyncio.Lock()):
            if (stored := await self.redis.get(key)) is not None:
                return bool(stored == "1")
            return is_shared_outside(await self._read_channel(team, channel))

    async def _read_channel(self, team: str, channel: str) -> Mapping[str, Any]:
        reply = await self.calls.read("conversations.info", channel=channel)
        found = mapping(reply, "channel")
        async with self.redis.pipeline(transaction=False) as pipe:
            pipe.set(self.key("shared", team, channel), "1" if is_shared_outside(found) else "0", ex=ACCESS_TTL_S)
            pipe.set(self.key("name", team, channel), channel_label(found), ex=NAMES_TTL_S)
            await pipe.execute()
        return found

    async def channel_name(self, team: str, channel: str, *, within: str = "") -> str:
        """Return ``#name``, or an empty text if the channel has no name that everyone may see. Raises the same.

        A private channel's name is shown only to people reading ``within`` that channel.
        """
        async with self._asking.setdefault(channel, asyncio.Lock()):
            stored = await self.redis.get(self.key("name", team, channel))
            label = channel_label(await self._read_channel(team, channel)) if stored is None else str(stored)
        return label.removeprefix(_PRIVATE) if within == channel or not label.startswith(_PRIVATE) else ""

    async def channels_of(self, user: str, types: str = _CHANNEL_TYPES) -> list[str]:
        """Return the ids of the channels that a person is in, private ones if Orion is in them too. Raises the same."""
        found = self.calls.read_pages("users.conversations", user=user, types=types)
        return [string(channel, "id") async for channel in found]

    async def add_names(
        self, question: Question, history: Sequence[ThreadMessage], asker: Person | None = None
    ) -> tuple[Question, tuple[ThreadMessage, ...]]:
        """Return question and history with names in place of ids. If there are many, the latest come first.

        The model reads ``@Ben`` and ``#ops``. The question gets the asker's time zone, and the speakers' names.
        ``asker`` is the cached account of its author.
        """
        latest = [one for message in reversed(history) for one in (*named_ids(message.text), message.user) if one]
        names = {question.user: label} if (label := person_label(asker)) else {}
        ids = [one for one in (question.user, *named_ids(question.text), *latest) if one not in names]
        names |= await self._find_names(question.thread, ids)
        asker = asker or await self.cached_person(question.thread.team, question.user)
        named = replace(question, text=with_names(question.text, names), tz=asker.tz if asker else "", names=names)
        return named, tuple(replace(message, text=with_names(message.text, names)) for message in history)

    async def name_ids(self, place: ThreadKey, text: str) -> str:
        """Return a text with names in place of ids, as far as Slack gives them."""
        return with_names(text, await self._find_names(place, named_ids(text)))

    async def _find_names(self, place: ThreadKey, ids: Sequence[str]) -> dict[str, str]:
        names: dict[str, str] = {}
        for found in [*dict.fromkeys(ids)][:MAX_NAMES]:
            try:
                if name := await self._find_name(place, found):
                    names[found] = name
            except DeliveryFailed as failure:
                log.info("name_not_found", reason=failure.reason)
                if not failure.permanent:
                    break  # an answer does not wait for names
        return names

    async def _find_name(self, place: ThreadKey, found: str) -> str:
        if found.startswith("S"):
            return await self.group_name(place.team, found)
        if found.startswith(("C", "G")):
            return await self.channel_name(place.team, found, within=place.channel)
        return person_label(await self.find_person(place.team, found) if found.startswith(("U", "W")) else None)

    async def group_name(self, team: str, group: str) -> str:
        """Return a user group's ``@handle``, or an empty text. Raises like ``find_person``."""
        async with self._asking.setdefault("groups", asyncio.Lock()):
            if (stored := await self.redis.get(self.key("name", team, group))) is not None:
                return str(stored)
            found = objects(await self.calls.read("usergroups.list"), "usergroups")
            handles = {string(one, "id"): "@" + string(one, "handle") for one in found if string(one, "handle")}
            async with self.redis.pipeline(transaction=False) as pipe:
                for known, handle in {group: "", **handles}.items():
                    pipe.set(self.key("name", team, known), handle, ex=NAMES_TTL_S)
                await pipe.execute()
            return handles.get(group, "")


async def find_channel(calls: SlackCalls, name: str) -> str:
    """Return the id of the channel with this name. Raises ``DeliveryFailed``: ``channel_not_found`` if none has it."""
    async for channel in calls.read_pages("conversations.list", types=_CHANNEL_TYPES, exclude_archived="true"):
        if name in {string(channel, "name"), string(channel, "name_normalized")}:
            return string(channel, "id")
    raise DeliveryFailed(reason="channel_not_found", permanent=True)


def read_person(user: Mapping[str, Any], team: str, enterprise: str = "") -> Person:
    """Read the ``user`` object of ``users.info``. Members of sister workspaces of our ``enterprise`` are ours."""
    home, teams = string(user, "team_id"), mapping(user, "enterprise_user").get("teams")
    sister = bool(enterprise) and string(user, "enterprise_user", "enterprise_id") == enterprise
    ours = home == team or sister or (isinstance(teams, list) and team in teams)
    names = (string(user, "profile", "display_name"), string(user, "profile", "real_name"), string(user, "real_name"))
    # it cannot contain markup
    name = re.sub(r"[<>|`@#\x00-\x1f]", " ", next(filter(None, names), string(user, "name")))
    return Person(
        # Guests of several channels, and of a single one.
        guest=bool(user.get("is_restricted") or user.get("is_ultra_restricted")),
        external=bool(user.get("is_stranger")) or not ours,
        deactivated=bool(user.get("deleted")),
        bot=bool(user.get("is_bot")),
        language=string(user, "locale").partition("-")[0].casefold(),
        name=" ".join(name.split())[:80],
        tz=string(user, "tz"),
    )


def is_shared_outside(channel: Mapping[str, Any]) -> bool:
    """Return True if a ``channel`` object is shared beyond our organisation or about to be, or does not say."""
    # ``is_shared`` is also set for a channel that only sister workspaces of our own organisation share.
    beyond = channel.get("is_shared") and not channel.get("is_org_shared")
    external = channel.get("is_ext_shared", "is_shared" not in channel)
    return bool(external or channel.get("is_pending_ext_shared") or beyond)


def person_label(person: Person | None) -> str:
    """Return ``@name``, or an empty text."""
    return f"@{person.name}" if person and person.name else ""


def channel_label(channel: Mapping[str, Any]) -> str:
    """Return ``#name``, marked as private if only members may see it."""
    name, mark = string(channel, "name"), _PRIVATE if channel.get("is_private") else ""
    return f"{mark}#{name}" if name and not channel.get("is_mpim") else ""


@dataclass(slots=True, eq=False)
class Memberships:
    """Looks up one workspace's people, if the ``index`` or an MCP server's audience needs more than their ids."""

    people: SlackDirectory
    index: KnowledgeIndex
    audiences: tuple[str, ...] = ()
    _needed: bool = False
    _asked_at: float = field(default=float("-inf"))

    async def of(self, question: Question) -> frozenset[str]:
        """Return the asker's memberships for a direct message; none if Slack does not reply."""
        if not question.thread.channel.startswith("D") or not await self._are_needed():
            return frozenset()
        team, user = question.thread.team, question.user
        key = self.people.key("memberships", team, user)
        with suppress(ValueError):
            stored = parse_json(await self.people.redis.get(key) or "")
            if isinstance(stored, list):
                return frozenset(filter(None, map(string, stored)))
        try:
            async with asyncio.timeout(MEMBERSHIPS_TIMEOUT_S):
                person = await self.people.calls.read("users.info", user=user)
                email = string(person, "user", "profile", "email")
                groups = await _if_granted(self.people.calls.read("usergroups.list", include_users="true"), {})
                channels = await _if_granted(self.people.channels_of(user), [])
                own = [one for one in objects(groups, "usergroups") if user in (mapping(one).get("users") or ())]
                found = {email.lower(), *channels, *(string(one, "id") for one in own)} - {""}
        except (DeliveryFailed, TimeoutError) as failure:
            log.warning("memberships_unknown", reason=getattr(failure, "reason", "slow"))
            return frozenset()
        await self.people.redis.set(key, json.dumps(sorted(found)), ex=MEMBERSHIPS_TTL_S)
        return frozenset(found)

    async def _are_needed(self) -> bool:
        if time.monotonic() - self._asked_at > MEMBERSHIPS_TTL_S:
            try:
                documents = await asyncio.to_thread(self.index.documents)
            except KnowledgeAwayError:
                return False
            self._needed = any(
                map(needs_memberships, {*self.audiences, *(document.audience for document in documents)})
            )
            self._asked_at = time.monotonic()
        return self._needed


async def _if_granted(lookup: Awaitable[Found], nothing: Found) -> Found:
    """Return Slack's reply, or ``nothing`` if an admin did not grant the scope for it."""
    try:
        return await lookup
    except DeliveryFailed as failure:
        if not failure.permanent:
            raise
        log.info("memberships_in_part", reason=failure.reason)
        return nothing
