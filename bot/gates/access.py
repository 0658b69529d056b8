"""Decide whether a person may ask, or see something, at a place, and whether Orion may answer now."""

from dataclasses import dataclass, replace
from typing import Final

import structlog

from agent.texts.catalogue import say
from bot.delivery.blocks import escape
from bot.queue.claim import OK, Ending, give_back, give_up
from bot.slack.directory import Person, SlackDirectory
from bot.slack.message import Access, Incoming
from bot.slack.web_api import DeliveryFailed
from bot.stores.limits import Holder, Pause, duration_text
from bot.stores.stores import Facts
from bot.turn.job import Job, TeamServices

log = structlog.get_logger()

NOTICE_AFTER_S: Final = 20.0  # if Slack does not reply for this long, the person gets a notice
MAX_LOOKUP_WAIT_S: Final = 6 * 3600.0
PAUSE_NOTICE_TTL_S: Final = 30 * 86_400
_CHANNEL_REFUSALS: Final = frozenset({"channel_refused", "external_channel", "unknown_channel"})
_REFUSALS_WITH_TEXT: Final = _CHANNEL_REFUSALS | {"user_refused", "guest", "external_person", "unknown_person"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A person in a place, according to a message or a click."""

    team: str
    user: str
    channel: str = ""  # empty for App Home
    through_app: bool = False
    vouched: bool = False  # see ``Incoming``
    person: Person | None = None  # these two are cached replies from Slack, if there are any
    shared: bool | None = None
    fresh: bool = False  # ask Slack again who the person is


def visit_of(incoming: Incoming, facts: Facts) -> Visit:
    """Return the visit of a message's author."""
    return Visit(
        team=incoming.thread.team,
        user=incoming.user,
        channel=incoming.thread.channel,
        through_app=incoming.through_app,
        vouched=incoming.vouched,
        person=facts.person,
        shared=facts.shared,
    )


async def find_refusal(visit: Visit, access: Access, people: SlackDirectory) -> str:
    """Return the reason to refuse this person here, or an empty text. Raises ``DeliveryFailed`` while Slack is down."""
    unknown = "unknown_channel"
    try:
        while (refusal := cached_refusal(visit, access)) is None:
            if _needs_channel(visit, access) and visit.shared is None:
                visit = replace(visit, shared=await people.is_shared(visit.team, visit.channel))
            else:
                unknown = "unknown_person"
                visit = replace(visit, person=await people.find_person(visit.team, visit.user, fresh=visit.fresh))
    except DeliveryFailed as failure:
        if not failure.permanent:
            raise
        log.warning("access_unknown", refusal=unknown, reason=failure.reason)
        return unknown
    return refusal


def cached_refusal(visit: Visit, access: Access) -> str | None:
    """Like ``find_refusal``, but without a call to Slack; None if only Slack knows."""
    if refusal := access.refusal(visit.user, visit.channel):
        return refusal
    needs_channel = _needs_channel(visit, access)
    if needs_channel and visit.shared:
        return "external_channel"
    # The account matters, except that an allowed bot (``B…``) has none, and a listed person is allowed anyway.
    is_allowed = visit.user.startswith("B") or visit.user in access.allow_users
    needs_person = visit.through_app or not (is_allowed or (access.allow_guests and access.allow_external))
    if needs_person and visit.person and (refusal := _refuse_person(visit, visit.person, access)):
        return refusal
    is_unknown = (needs_channel and visit.shared is None) or (needs_person and visit.person is None)
    return None if is_unknown else ""


def _refuse_person(visit: Visit, person: Person, access: Access) -> str:
    if visit.through_app and person.bot:
        return "bot"
    if person.deactivated:  # an older question, or a token of `orion mcp`
        return "user_refused"
    if person.external:
        return "" if access.allow_external else "external_person"
    return "guest" if person.guest and not access.allow_guests else ""


def _needs_channel(visit: Visit, access: Access) -> bool:
    """Return whether it matters if people of other organisations can read the channel."""
    private = not visit.channel or visit.channel.startswith("D")
    return not (access.allow_external or visit.vouched or private)


async def check_access(job: Job, services: TeamServices) -> Ending | None:
    """End a message of a person who may not ask here, and tell only them why. It waits while Slack is down."""
    incoming, visit = job.incoming, visit_of(job.incoming, job.facts)
    if incoming.kind == "hand_off":  # a click, for which Slack is asked again
        visit = replace(visit, person=None, fresh=True)
    try:
        refusal = incoming.refused or await find_refusal(visit, services.access, services.people)
    except DeliveryFailed as failure:
        log.warning("person_not_known_yet", reason=failure.reason)
        if job.claimed.waited_s > MAX_LOOKUP_WAIT_S:
            return give_up("Slack did not say who asked")
        if job.claimed.waited_s > NOTICE_AFTER_S and incoming.addressed != "follow_up":
            await services.notify_person_once(incoming, "checking", incoming.ts)
        return give_back(failure.again_s or job.gate_wait_s)
    if refusal:
        return await _reject(job, services, refusal)
    engaged = job.facts.thread_mode == "engaged"
    if incoming.addressed == "mention" and incoming.costs_tokens and job.facts.is_wanted and not engaged:
        await services.stores.thread_modes.set(incoming.thread, "engaged", if_unknown=True)
    return None


async def _reject(job: Job, services: TeamServices, refusal: str) -> Ending:
    failure: DeliveryFailed | None = None
    incoming, thread_modes = job.incoming, services.stores.thread_modes
    log.info("person_turned_away", reason=refusal, kind=incoming.kind)
    direct = incoming.thread.channel.startswith("D")
    subject = f"{refusal}:{incoming.thread.channel}" if refusal in _CHANNEL_REFUSALS else refusal  # once a day
    if direct:  # after a direct message silence looks like a failure, so send one notice per thread
        subject = f"{refusal}:{incoming.thread.thread_ts}"
    # Never reply to a person who did not address Orion.
    if incoming.addressed != "follow_up" and not incoming.through_app:
        name = refusal if refusal in _REFUSALS_WITH_TEXT else "unknown_person"
        failure = await services.notify_person_once(incoming, name, subject)
    if failure and failure.permanent and refusal == "unknown_channel":  # for example, Orion was removed from it
        return give_up(failure.reason)
    if incoming.refused or direct or incoming.kind == "stop":
        return OK
    if incoming.addressed == "mention" and not job.facts.state.history:  # no allowed person addressed Orion here
        await thread_modes.disengage(incoming.thread)
    elif incoming.kind == "mute":
        await thread_modes.set(incoming.thread, "engaged")
    return OK


async def check_allowance(job: Job, services: TeamServices) -> Ending | None:
    """Let the message pass, make it wait for the end of a pause, or say that a budget is used up."""
    facts = job.facts
    if not job.incoming.costs_tokens or not facts.is_wanted:
        return None
    try:
        if facts.pause is not None:
            log.info("question_waits", because="paused", message_id=job.claimed.id)
            if job.is_addressed:
                await _post_pause_notice(job, services, facts.pause)
            return give_back(job.gate_wait_s)  # it is claimed, so that deletions still work (decision 5)
        if facts.exhausted is None or facts.outbox:
            return None
        log.info("budget_used_up", holder=facts.exhausted)
        if job.is_addressed:
            await _post_budget_notice(job, services, facts.exhausted)
    except DeliveryFailed as failure:
        log.warning("notice_not_delivered", reason=failure.reason)
        if failure.permanent:
            return give_up(failure.reason)
        return give_back(failure.again_s or job.gate_wait_s)
    return OK


async def _post_budget_notice(job: Job, services: TeamServices, holder: Holder) -> None:
    incoming = job.incoming
    language = await services.people.notice_language(incoming)
    left = duration_text(services.stores.budgets.seconds_until_reset)
    text = f"{say(f'budget_{holder}', language)} {say('budget_renewed', language, left=left)}"
    if incoming.kind == "edit":
        await services.notify_person(incoming, text)  # the answer to the earlier words stays as it is
    else:
        await services.delivery.post_own_text(incoming.thread, text, incoming.ts, job.lease.require)


async def _post_pause_notice(job: Job, services: TeamServices, pause: Pause) -> None:
    """Post once per thread and pause; for an edit only to its author. The answer comes later."""
    incoming, mailbox, name = job.incoming, services.stores.mailbox, f"paused:{pause.since}"
    if await mailbox.has_mark(job.claimed.thread, name):
        return
    text = f"{say('paused', await services.people.notice_language(incoming))}\n{escape(pause.reason)}".rstrip()
    if incoming.kind == "edit":
        await services.notify_person(incoming, text)
    else:
        await services.delivery.post_notice(incoming.thread, text, f"{incoming.ts}:{name}", job.lease.require)
    await mailbox.mark(job.claimed, name, "told", ttl_s=PAUSE_NOTICE_TTL_S)
