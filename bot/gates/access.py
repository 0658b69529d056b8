"""May this person ask here. Whether Orion may answer now is another matter (``bot.gates.allowance``)."""

from __future__ import annotations

from typing import Final

import structlog

from bot.gates.services import GateServices
from bot.queue.queue import OK, Ending, give_up, retry_uncounted
from bot.slack.message import Access, Incoming
from bot.slack.users import Person
from bot.slack.web_api import DeliveryFailed
from bot.turn.job import Job, costs_tokens, gate_wait_s

log = structlog.get_logger()

NOTICE_AFTER_S: Final = 20.0  # how long a person waits for Slack's word on them before they are told that they do
MAX_LOOKUP_WAIT_S: Final = 6 * 3600.0  # how long Slack's word on a person is waited for at all
_CHANNEL_REFUSALS: Final = frozenset({"channel_refused", "external_channel", "unknown_channel"})
_REFUSALS_WITH_TEXT: Final = _CHANNEL_REFUSALS | {
    "user_refused",
    "guest",
    "external_person",
    "unknown_person",
}  # with texts of their own


async def check_access(job: Job, at: GateServices) -> Ending | None:
    """Whether this person may ask here; else they are told why not, where only they see it.

    That is once a day, in a direct chat once a thread. A Slack that does not say who somebody is makes the message
    wait.
    """
    incoming = job.incoming
    if incoming.kind == "delete":
        return None
    try:
        refusal = incoming.refused or await _find_refusal(job, at)
    except DeliveryFailed as failure:
        return await _wait_for_lookup(job, at, failure)
    if refusal:
        await _reject(job, at, refusal)
        return OK
    if incoming.addressed == "mention" and costs_tokens(incoming) and job.facts.is_wanted and not job.facts.is_engaged:
        await at.stores.thread_modes.confirm(incoming.thread)
    return None


async def _find_refusal(job: Job, at: GateServices) -> str:
    """Why this message gets no answer, or an empty text. Raises ``DeliveryFailed`` where Slack does not tell."""
    incoming, access = job.incoming, at.access
    team, shared = incoming.thread.team, job.facts.shared
    if _may_be_shared(incoming, access):
        try:
            if shared if shared is not None else await at.people.is_shared(team, incoming.thread.channel):
                return "external_channel"
        except DeliveryFailed as failure:
            if not failure.permanent:
                raise
            return "unknown_channel"
    if not needs_lookup(incoming, access):
        return ""
    try:
        person = job.facts.person or await at.people.find_person(team, incoming.user)
        return "bot" if incoming.through_app and person.bot else refusal_of(person, access)
    except DeliveryFailed as failure:
        if not failure.permanent:
            raise
        log.warning("person_cannot_be_known", reason=failure.reason)
        return "unknown_person"


async def _wait_for_lookup(job: Job, at: GateServices, failure: DeliveryFailed) -> Ending:
    """Slack does not tell who this is: the message waits, and in the end is given up."""
    log.warning("person_not_known_yet", reason=failure.reason)
    waited_s = job.claimed.waited_s
    if waited_s > MAX_LOOKUP_WAIT_S:
        return give_up("nobody could tell who asked")
    if waited_s > NOTICE_AFTER_S:
        await at.notify_person_once(job.incoming, "checking", job.incoming.ts)
    return retry_uncounted(failure.again_s or gate_wait_s(job.claimed))


async def _reject(job: Job, at: GateServices, refusal: str) -> None:
    incoming, thread_modes = job.incoming, at.stores.thread_modes
    log.info("person_turned_away", reason=refusal, kind=incoming.kind)
    subject = f"{refusal}:{incoming.thread.channel}" if refusal in _CHANNEL_REFUSALS else refusal
    if incoming.thread.channel.startswith("D"):  # to whoever writes to Orion alone, silence looks like a failure
        subject = f"{refusal}:{incoming.thread.thread_ts}"
    spoken_to = incoming.addressed != "follow_up" and not incoming.through_app
    if spoken_to:  # whoever did not speak to Orion is not spoken to
        await at.notify_person_once(incoming, refusal if refusal in _REFUSALS_WITH_TEXT else "unknown_person", subject)
    if incoming.refused or incoming.thread.channel.startswith("D") or incoming.kind == "stop":
        return
    if incoming.addressed == "mention" and not job.facts.state.history:  # nobody who may has spoken to Orion here
        await thread_modes.disengage(incoming.thread)
    elif incoming.kind == "mute":
        await thread_modes.engage(incoming.thread)


def needs_lookup(incoming: Incoming, access: Access) -> bool:
    """Whether it matters who this is. An allowed bot (``B…``) has no account, a person on the list is meant."""
    if incoming.through_app:
        return True
    everybody = access.allow_guests and access.allow_external
    return not (everybody or incoming.user.startswith("B") or incoming.user in access.allow_users)


def is_admitted(incoming: Incoming, access: Access, known: Person | None) -> bool:
    """Whether this person is let in as far as it can be told without Slack: what it must tell first counts as no."""
    if _may_be_shared(incoming, access):
        return False
    return not needs_lookup(incoming, access) or (known is not None and not refusal_of(known, access))


def _may_be_shared(incoming: Incoming, access: Access) -> bool:
    """Whether others could read the answer, and that matters."""
    return not (access.allow_external or incoming.vouched or incoming.thread.channel.startswith("D"))


def refusal_of(person: Person, access: Access) -> str:
    """Why somebody with such an account is refused, or an empty text."""
    if person.external:
        return "" if access.allow_external else "external_person"
    return "guest" if person.guest and not access.allow_guests else ""
