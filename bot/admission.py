"""What stands before an answer: may this person ask here, is Orion paused, is there something left to spend (A12).

Promises: nobody is answered who should not be, and a Slack that does not say who somebody is makes the question wait,
not pass; a refused person is told once a day, where only they see it; what waits is kept in its place and told once;
an answer that was decided already is delivered whatever the budget says. Must never ask a model.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import structlog

from agent.conversation import ThreadKey
from agent.thread_state import waits_for_another
from agent.thread_store import ThreadStore
from bot.budgets import Budgets, Holder, in_words
from bot.delivery import Delivery
from bot.intake import Access, Incoming
from bot.lease import Lease
from bot.mailbox import Claimed, Mailbox
from bot.mrkdwn_links import escape
from bot.notices import Notice, notice
from bot.pausing import Pause, Pausing
from bot.people import People, Person
from bot.slack_calls import DeliveryFailed
from bot.standing import Standings
from bot.turns import OK, Ending, Handle, OnDead, dead, later
from bot.withdrawals import Withdrawals
from bot.work import turn_id_of
from verification.language import detect

log = structlog.get_logger()

TOLD_AFTER_S: Final = 20.0
"""How long a person waits for Slack's word on them before they are told that they do."""
KNOWN_WITHIN_S: Final = 6 * 3600.0
"""How long Slack's word on a person is waited for at all."""
WAIT_LEAST_S: Final = 2.0
WAIT_MOST_S: Final = 15.0
PAUSE_TOLD_S: Final = 30 * 86_400
_OF_CHANNELS: Final = frozenset({"channel_refused", "external_channel", "unknown_channel"})
_BUDGETS: Final[dict[Holder, Notice]] = {
    "user": "budget_user",
    "channel": "budget_channel",
    "workspace": "budget_workspace",
}
_REFUSALS: Final[dict[str, Notice]] = {
    "user_refused": "user_refused",
    "channel_refused": "channel_refused",
    "guest": "guest",
    "external_person": "external_person",
    "external_channel": "external_channel",
    "unknown_person": "unknown_person",
    "unknown_channel": "unknown_channel",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """What every workspace's admission shares: the lists, the switch, the purse, and the memory of threads."""

    access: Access
    pausing: Pausing
    budgets: Budgets
    mailbox: Mailbox
    standings: Standings
    threads: ThreadStore
    withdrawals: Withdrawals


class Admission:
    """Stands before whoever answers (``handle``, ``on_dead``) in one workspace."""

    def __init__(self, handle: Handle, on_dead: OnDead, *, gates: Gates, people: People, delivery: Delivery) -> None:
        self._handle = handle
        self._on_dead = on_dead
        self._gates = gates
        self._people = people
        self._delivery = delivery

    async def handle(self, claimed: Claimed, lease: Lease) -> Ending:
        """Let the letter through, tell its person why not, or let it wait."""
        letter = Incoming.in_body(claimed.body)
        if letter is None or letter.kind == "delete":
            return await self._handle(claimed, lease)
        try:
            refusal = letter.refused or await self._refusal(letter)
        except DeliveryFailed as failure:
            return await self._not_known(claimed, letter, failure)
        if refusal:
            await self._turn_away(letter, refusal)
            return OK
        if not _asks(letter) or not await self._gates.withdrawals.wanted(letter):
            return await self._handle(claimed, lease)
        try:
            return await self._admit(claimed, lease, letter)
        except DeliveryFailed as failure:
            log.warning("notice_not_delivered", thread=claimed.thread, reason=failure.reason)
            return dead(failure.reason) if failure.permanent else later(_wait(claimed))

    async def tell_dead(self, claimed: Claimed, lease: Lease, reason: str) -> None:
        """Tell the person that the letter was given up, if Orion may talk to them."""
        letter = Incoming.in_body(claimed.body)
        if letter is not None and (letter.refused or await self._known_refusal(letter)):
            return
        await self._on_dead(claimed, lease, reason)

    async def _refusal(self, letter: Incoming) -> str:
        """Why this letter gets no answer, or an empty text. Raises ``DeliveryFailed`` where Slack does not tell."""
        access, team, channel = self._gates.access, letter.thread.team, letter.thread.channel
        if not (access.allow_external or letter.vouched or channel.startswith("D")):
            try:
                if await self._people.is_shared(team, channel):
                    return "external_channel"
            except DeliveryFailed as failure:
                if not failure.permanent:
                    raise
                return "unknown_channel"
        if not _must_be_known(letter, access):
            return ""
        try:
            return _refusal_of(await self._people.person(team, letter.user), access)
        except DeliveryFailed as failure:
            if not failure.permanent:
                raise
            log.warning("person_cannot_be_known", reason=failure.reason)
            return "unknown_person"

    async def _known_refusal(self, letter: Incoming) -> str:
        """As far as it was found out already."""
        access = self._gates.access
        known = await self._people.known(letter.thread.team, letter.user)
        return _refusal_of(known, access) if known and _must_be_known(letter, access) else ""

    async def _not_known(self, claimed: Claimed, letter: Incoming, failure: DeliveryFailed) -> Ending:
        """Slack does not tell who this is: the letter waits, and in the end is given up."""
        log.warning("person_not_known_yet", thread=claimed.thread, reason=failure.reason)
        waited = _waited(claimed)
        if waited > KNOWN_WITHIN_S:
            return dead("nobody could tell who asked")
        if waited > TOLD_AFTER_S:
            await self._whisper_once(letter, "checking", letter.ts)
        return later(_wait(claimed))

    async def _turn_away(self, letter: Incoming, refusal: str) -> None:
        log.info("person_turned_away", reason=refusal, kind=letter.kind)
        subject = f"{refusal}:{letter.thread.channel}" if refusal in _OF_CHANNELS else refusal
        if letter.addressed != "follow_up":  # whoever did not speak to Orion is not spoken to
            await self._whisper_once(letter, _REFUSALS.get(refusal, "unknown_person"), subject)
        if letter.refused or letter.thread.channel.startswith("D"):
            return
        if letter.addressed == "mention" and not (await self._gates.threads.load(letter.thread)).history:
            await self._gates.standings.disengage(letter.thread)
        elif letter.kind == "mute":
            await self._gates.standings.engage(letter.thread)

    async def _admit(self, claimed: Claimed, lease: Lease, letter: Incoming) -> Ending:
        pause, resumed = await self._gates.pausing.state()
        if pause is not None:
            await self._tell_paused(claimed, lease, letter, pause)
            return later(_wait(claimed))
        if letter.addressed == "mention":
            await self._gates.standings.confirm(letter.thread)
        turn_id = turn_id_of(letter)
        holder = await self._gates.budgets.exhausted(letter)
        if holder is not None and not await self._costs_nothing(letter, turn_id):
            log.info("budget_used_up", holder=holder, thread=claimed.thread)
            await self._say(lease, letter, self._used_up(holder, await self._language(letter)))
            return OK
        # What was waited for on an admin's order is not to be taken for a far end's being away.
        asked = replace(claimed, enqueued_at=max(claimed.enqueued_at, resumed))
        async with self._gates.budgets.counting(turn_id, letter):
            return await self._handle(asked, lease)

    async def _costs_nothing(self, letter: Incoming, turn_id: str) -> bool:
        """Whether the answer is decided already, or this was said to others (``bot.bystanders``)."""
        if await self._gates.mailbox.marked(str(letter.thread), f"outbox:{turn_id}"):
            return True
        aside = letter.addressed == "follow_up" and letter.kind == "question"
        return aside and waits_for_another(await self._gates.threads.load(letter.thread), letter.user)

    async def _tell_paused(self, claimed: Claimed, lease: Lease, letter: Incoming, pause: Pause) -> None:
        """Once per thread and pause."""
        mailbox, name = self._gates.mailbox, f"paused:{pause.since}"
        if await mailbox.marked(claimed.thread, name) is not None:
            return
        text = notice("paused", await self._language(letter))
        await self._say(lease, letter, f"{text}\n{escape(pause.reason)}".rstrip())
        await mailbox.mark(claimed, name, "told", ttl_s=PAUSE_TOLD_S)

    def _used_up(self, holder: Holder, language: str | None) -> str:
        left = in_words(self._gates.budgets.renewed_in_s)
        return f"{notice(_BUDGETS[holder], language)} {notice('budget_renewed', language, left=left)}"

    async def _say(self, lease: Lease, letter: Incoming, text: str) -> None:
        """In the thread; on an edit to its person alone: the answer to what stood there before stays as it is."""
        if letter.kind == "edit":
            with suppress(DeliveryFailed):
                await self._delivery.thank(_where_seen(letter), letter.user, text)
        else:
            await self._delivery.say(letter.thread, text, letter.ts, lease.require)

    async def _whisper_once(self, letter: Incoming, name: Notice, subject: str) -> None:
        """To this person alone, once a day; one that Slack did not take may be tried the next time."""
        team, user = letter.thread.team, letter.user
        if not await self._people.tell_now(team, user, subject):
            return
        try:
            await self._delivery.thank(_where_seen(letter), user, notice(name, await self._language(letter)))
        except DeliveryFailed as failure:
            log.warning("notice_not_delivered", reason=failure.reason)
            if not failure.permanent:
                await self._people.not_told(team, user, subject)

    async def _language(self, letter: Incoming) -> str | None:
        """What the person wrote in, else what they use Slack in."""
        if letter.text and (written := detect(letter.text)):
            return written
        known = await self._people.known(letter.thread.team, letter.user)
        return known.language if known and not letter.text else None


def _asks(letter: Incoming) -> bool:
    """Whether answering may cost anything. A bare mention may bring a file to be read: no event tells."""
    return letter.kind in {"question", "edit"} or (letter.kind == "help" and letter.files != "none")


def _must_be_known(letter: Incoming, access: Access) -> bool:
    """Whether it matters who this is. An allowed bot (``B…``) has no account, a person on the list is meant."""
    everybody = access.allow_guests and access.allow_external
    return not (everybody or letter.user.startswith("B") or letter.user in access.allow_users)


def _refusal_of(person: Person, access: Access) -> str:
    if person.external:
        return "" if access.allow_external else "external_person"
    return "guest" if person.guest and not access.allow_guests else ""


def _where_seen(letter: Incoming) -> ThreadKey:
    """Where a message to one person is seen: Slack shows none in a thread that has no reply yet."""
    place = letter.thread
    return replace(place, thread_ts=place.channel) if place.thread_ts == letter.ts else place


def _waited(claimed: Claimed) -> float:
    return max(0.0, time.time() - claimed.enqueued_at)


def _wait(claimed: Claimed) -> float:
    """Longer the longer it has been waiting already, in seconds."""
    return min(WAIT_MOST_S, max(WAIT_LEAST_S, _waited(claimed) / 4))
