"""The collaborators that the gates of one workspace share."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import structlog

from agent.texts.catalogue import say
from bot.channel_settings import ChannelFile
from bot.delivery.delivery import Delivery
from bot.queue.queue import Ending
from bot.slack.hand_off_place import HandOffPlace
from bot.slack.message import Access, Incoming
from bot.slack.users import People
from bot.slack.web_api import DeliveryFailed, SlackCalls
from bot.stores.stores import Stores
from bot.stores.turn_records import TurnRecords
from bot.turn.job import Job
from bot.turn.visibility import Visibility

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class GateServices:
    """The same for every message of a workspace.

    ``handoff`` is where people are asked, ``visibility`` decides what may be shown of an earlier turn.
    ``saves_answers``: a folder for answers is configured.
    """

    access: Access
    stores: Stores
    people: People
    delivery: Delivery
    records: TurnRecords
    handoff: HandOffPlace
    visibility: Visibility
    calls: SlackCalls
    channels: ChannelFile
    saves_answers: bool = False

    async def notify_person(self, incoming: Incoming, text: str) -> DeliveryFailed | None:
        """Post a text that only the author sees. Return the failure if Slack did not take it."""
        place = incoming.thread
        if place.thread_ts == incoming.ts:  # Slack shows no ephemeral message in a thread without replies
            place = replace(place, thread_ts=place.channel)
        try:
            await self.delivery.post_ephemeral(place, incoming.user, text)
        except DeliveryFailed as failure:
            log.warning("notice_not_delivered", reason=failure.reason)
            return failure
        return None

    async def notify_person_once(self, incoming: Incoming, name: str, subject: str) -> None:
        """Post the text ``name`` the same way, once a day for each subject. A failed post may be tried again."""
        team, user = incoming.thread.team, incoming.user
        if not await self.people.claim_notice(team, user, subject):
            return
        failure = await self.notify_person(incoming, say(name, await self.people.notice_language(incoming)))
        if failure and not failure.permanent:
            await self.people.release_notice(team, user, subject)


Gate = Callable[[Job, GateServices], Awaitable[Ending | None]]
"""Returns how the message ends; None lets it pass to the next gate. Raises ``RedisError`` and ``LeaseLost``."""
