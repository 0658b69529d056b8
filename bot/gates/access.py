"""May this person ask here (A12). Whether Orion may answer now is another matter (``bot.gates.allowance``).

Promises: nobody is answered who should not be, and a Slack that does not say who somebody is makes the question wait,
not pass; a refused person is told once a day, where only they see it. Must never ask a model.
"""

from __future__ import annotations

from typing import Final

import structlog

from agent.texts.catalogue import say
from bot.delivery.delivery import Delivery
from bot.queue.lease import Lease
from bot.queue.queue import Claimed
from bot.queue.worker import OK, Ending, Handle, OnDead, dead, later
from bot.slack.message import Access, Incoming
from bot.slack.users import People, Person
from bot.slack.web_api import DeliveryFailed
from bot.stores.stores import Stores
from bot.turn.job import asks, gate_wait_s, stored_s_ago, where_whispered

log = structlog.get_logger()

TOLD_AFTER_S: Final = 20.0
"""How long a person waits for Slack's word on them before they are told that they do."""
KNOWN_WITHIN_S: Final = 6 * 3600.0
"""How long Slack's word on a person is waited for at all."""
_OF_CHANNELS: Final = frozenset({"channel_refused", "external_channel", "unknown_channel"})
_REFUSALS: Final[dict[str, str]] = {
    "user_refused": "user_refused",
    "channel_refused": "channel_refused",
    "guest": "guest",
    "external_person": "external_person",
    "external_channel": "external_channel",
    "unknown_person": "unknown_person",
    "unknown_channel": "unknown_channel",
}


class Admission:
    """Stands before whoever answers (``handle``, ``on_dead``) in one workspace."""

    def __init__(  # noqa: PLR0913 - the parts of one way, each named at the call
        self, handle: Handle, on_dead: OnDead, *, access: Access, stores: Stores, people: People, delivery: Delivery
    ) -> None:
        self._handle = handle
        self._on_dead = on_dead
        self._access = access
        self._stores = stores
        self._people = people
        self._delivery = delivery

    async def handle(self, claimed: Claimed, lease: Lease) -> Ending:
        """Let the message through, tell its person why not, or let it wait until Slack says who they are."""
        incoming = Incoming.in_body(claimed.body)
        if incoming is None or incoming.kind == "delete":
            return await self._handle(claimed, lease)
        try:
            refusal = incoming.refused or await self._refusal(incoming)
        except DeliveryFailed as failure:
            return await self._not_known(claimed, incoming, failure)
        if refusal:
            await self._turn_away(incoming, refusal)
            return OK
        if incoming.addressed == "mention" and asks(incoming) and await self._stores.cancellations.wanted(incoming):
            await self._stores.thread_modes.confirm(incoming.thread)
        return await self._handle(claimed, lease)

    async def tell_dead(self, claimed: Claimed, lease: Lease, reason: str) -> None:
        """Tell the person that the message was given up, if Orion may talk to them."""
        incoming = Incoming.in_body(claimed.body)
        if incoming is not None and (incoming.refused or await self._known_refusal(incoming)):
            return
        await self._on_dead(claimed, lease, reason)

    async def _refusal(self, incoming: Incoming) -> str:
        """Why this message gets no answer, or an empty text. Raises ``DeliveryFailed`` where Slack does not tell."""
        access, team, channel = self._access, incoming.thread.team, incoming.thread.channel
        if not (access.allow_external or incoming.vouched or channel.startswith("D")):
            try:
                if await self._people.is_shared(team, channel):
                    return "external_channel"
            except DeliveryFailed as failure:
                if not failure.permanent:
                    raise
                return "unknown_channel"
        if not must_be_known(incoming, access):
            return ""
        try:
            person = await self._people.person(team, incoming.user)
            return "bot" if incoming.through_app and person.bot else refusal_of(person, access)
        except DeliveryFailed as failure:
            if not failure.permanent:
                raise
            log.warning("person_cannot_be_known", reason=failure.reason)
            return "unknown_person"

    async def _known_refusal(self, incoming: Incoming) -> str:
        """As far as it was found out already."""
        known = await self._people.known(incoming.thread.team, incoming.user)
        return refusal_of(known, self._access) if known and must_be_known(incoming, self._access) else ""

    async def _not_known(self, claimed: Claimed, incoming: Incoming, failure: DeliveryFailed) -> Ending:
        """Slack does not tell who this is: the message waits, and in the end is given up."""
        log.warning("person_not_known_yet", thread=claimed.thread, reason=failure.reason)
        waited = stored_s_ago(claimed)
        if waited > KNOWN_WITHIN_S:
            return dead("nobody could tell who asked")
        if waited > TOLD_AFTER_S:
            await self._whisper_once(incoming, "checking", incoming.ts)
        return later(gate_wait_s(claimed))

    async def _turn_away(self, incoming: Incoming, refusal: str) -> None:
        log.info("person_turned_away", reason=refusal, kind=incoming.kind)
        subject = f"{refusal}:{incoming.thread.channel}" if refusal in _OF_CHANNELS else refusal
        if (
            incoming.addressed != "follow_up" and not incoming.through_app
        ):  # whoever did not speak to Orion is not spoken to
            await self._whisper_once(incoming, _REFUSALS.get(refusal, "unknown_person"), subject)
        if incoming.refused or incoming.thread.channel.startswith("D"):
            return
        if incoming.kind == "stop":
            return
        if incoming.addressed == "mention" and not (await self._stores.threads.load(incoming.thread)).history:
            await self._stores.thread_modes.disengage(incoming.thread)
        elif incoming.kind == "mute":
            await self._stores.thread_modes.engage(incoming.thread)

    async def _whisper_once(self, incoming: Incoming, name: str, subject: str) -> None:
        """To this person alone, once a day; one that Slack did not take may be tried the next time."""
        team, user = incoming.thread.team, incoming.user
        if not await self._people.tell_now(team, user, subject):
            return
        try:
            await self._delivery.thank(
                where_whispered(incoming), user, say(name, await self._people.spoken_by(incoming))
            )
        except DeliveryFailed as failure:
            log.warning("notice_not_delivered", reason=failure.reason)
            if not failure.permanent:
                await self._people.not_told(team, user, subject)


def must_be_known(incoming: Incoming, access: Access) -> bool:
    """Whether it matters who this is. An allowed bot (``B…``) has no account, a person on the list is meant."""
    everybody = access.allow_guests and access.allow_external and not incoming.through_app
    return (
        not (everybody or incoming.user.startswith("B") or incoming.user in access.allow_users) or incoming.through_app
    )


def admits(incoming: Incoming, access: Access, known: Person | None) -> bool:
    """Whether this person is let in as far as it can be told without Slack: what it must tell first counts as no."""
    if not (access.allow_external or incoming.vouched or incoming.thread.channel.startswith("D")):
        return False
    if not must_be_known(incoming, access):
        return True
    return known is not None and not refusal_of(known, access)


def refusal_of(person: Person, access: Access) -> str:
    """Why somebody with such an account is refused, or an empty text."""
    if person.external:
        return "" if access.allow_external else "external_person"
    return "guest" if person.guest and not access.allow_guests else ""
