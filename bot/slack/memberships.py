"""The groups, channels and e-mail address of a person, for audiences that name one of them. Looked up only then."""

import asyncio
import json
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Final, TypeVar

import structlog

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.types import KnowledgeAwayError
from agent.payload import mapping, objects, string
from agent.thread.audience import needs_memberships
from agent.thread.conversation import Question
from bot.slack.users import People
from bot.slack.web_api import DeliveryFailed, SlackCalls

Found = TypeVar("Found")
log = structlog.get_logger()

CACHE_TTL_S: Final = 600
LOOKUP_TIMEOUT_S: Final = 4.0  # the question waits for it


@dataclass(slots=True, eq=False)
class Memberships:
    """Looks up one workspace's people.

    Documents of the ``index``, or the ``audiences`` of MCP servers, tell whether any asks for more than ids of people.
    """

    calls: SlackCalls
    people: People
    index: KnowledgeIndex
    audiences: tuple[str, ...] = ()
    _needed: bool = False
    _asked_at: float = field(default=float("-inf"))

    async def of(self, question: Question) -> frozenset[str]:
        """Return the asker's memberships, in a direct chat. Without a reply from Slack there are none."""
        if not question.thread.channel.startswith("D") or not await self._are_needed():
            return frozenset()
        team, user = question.thread.team, question.user
        key = f"{self.people.prefix}:memberships:{team}:{user}"
        if (stored := await self.people.redis.get(key)) is not None:
            return frozenset(json.loads(stored))
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT_S):
                person = await self.calls.read("users.info", user=user)
                email = string(person, "user", "profile", "email")
                groups = await _if_granted(self.calls.read("usergroups.list", include_users="true"), {})
                channels = await _if_granted(self.people.channels_of(user), [])
                own = [one for one in objects(groups, "usergroups") if user in (mapping(one).get("users") or ())]
                found = {email.lower(), *channels, *(string(one, "id") for one in own)} - {""}
        except (DeliveryFailed, TimeoutError) as failure:
            log.warning("memberships_unknown", reason=getattr(failure, "reason", "slow"))
            return frozenset()
        await self.people.redis.set(key, json.dumps(sorted(found)), ex=CACHE_TTL_S)
        return frozenset(found)

    async def _are_needed(self) -> bool:
        if time.monotonic() - self._asked_at > CACHE_TTL_S:
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
    """Return what Slack says, or ``nothing`` if an admin did not grant the scope for it."""
    try:
        return await lookup
    except DeliveryFailed as failure:
        if not failure.permanent:
            raise
        log.info("memberships_in_part", reason=failure.reason)
        return nothing
