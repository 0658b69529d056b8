"""What the gates of one workspace work with, and what a gate is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

import structlog

from agent.texts.catalogue import say
from bot.delivery.delivery import Delivery
from bot.queue.queue import Ending
from bot.slack.message import Access, Incoming
from bot.slack.users import People
from bot.slack.web_api import DeliveryFailed, SlackCalls
from bot.stores.stores import Stores
from bot.stores.turn_records import TurnRecords
from bot.turn.job import Job

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class GateServices:
    """The same for every message of a workspace.

    ``handoff`` is where its people are asked: a user group, a channel's id or its ``#name``, whose id ``channels``
    remembers once it was looked up.
    """

    access: Access
    stores: Stores
    people: People
    delivery: Delivery
    records: TurnRecords
    handoff: str
    calls: SlackCalls
    channels: dict[str, str] = field(default_factory=dict)

    async def notify_person(self, incoming: Incoming, text: str) -> DeliveryFailed | None:
        """Says something to the message's person alone. Returns why Slack did not take it, if it did not."""
        place = incoming.thread
        if place.thread_ts == incoming.ts:  # Slack shows none in a thread that has no reply yet
            place = replace(place, thread_ts=place.channel)
        try:
            await self.delivery.post_ephemeral(place, incoming.user, text)
        except DeliveryFailed as failure:
            log.warning("notice_not_delivered", reason=failure.reason)
            return failure
        return None

    async def notify_person_once(self, incoming: Incoming, name: str, subject: str) -> None:
        """The same, of the text ``name``, once a day; one that Slack did not take may be tried the next time."""
        team, user = incoming.thread.team, incoming.user
        if not await self.people.claim_notice(team, user, subject):
            return
        failure = await self.notify_person(incoming, say(name, await self.people.message_language(incoming)))
        if failure and not failure.permanent:
            await self.people.release_notice(team, user, subject)


Gate = Callable[[Job, GateServices], Awaitable[Ending | None]]
"""Returns how the message ends, or None: it goes on to the next gate. Raises ``RedisError`` and ``LeaseLost``."""
