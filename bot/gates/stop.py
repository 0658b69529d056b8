"""Stops the questions of a thread: the word "stop", or Slack's button.

A person who may not ask cannot stop another person's turn. If Slack must identify them first, the stop is stored like a
question and takes effect after the access gate.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Final

import structlog

from agent.texts.catalogue import say
from agent.thread.state import StateNotSaved, cancel_pending_question
from bot.gates.access import cached_refusal, visit_of
from bot.queue.claim import OK, Cancel, Cancellation, Ending
from bot.queue.queue import MailboxEntry
from bot.slack.message import Access, Incoming
from bot.slack.web_api import DeliveryFailed
from bot.stores.stores import Facts, Stores, stop_after
from bot.turn.job import Job, TeamServices
from verification.text.language import detect_language

log = structlog.get_logger()

STOPPED: Final = "stopped"
_TURNS: Final = frozenset({"question", "edit"})


async def cancel_thread(incoming: Incoming, stores: Stores, cancel: Cancel) -> bool:
    """Cancel all earlier questions of the thread. Return whether there were any. Raises ``RedisError``."""
    thread, mailbox = str(incoming.thread), stores.mailbox
    await stores.cancellations.record_stop(incoming)
    stored = await mailbox.list_messages(thread)  # after the record, which also reaches a turn whose worker died
    if not any(_is_cancelled_by(one, incoming) for one in stored):
        return False
    if _is_cancelled_by(stored[0], incoming):
        await cancel(Cancellation(thread=thread, reason=STOPPED, message_id=stored[0].id))
    await mailbox.make_due_now(thread)  # a turn that waits for the end of an outage is ended now
    return True


def turn_at_head(stored: list[MailboxEntry]) -> tuple[str, Incoming] | None:
    """Return the id and message of the running or waiting turn in a thread, if there is one."""
    incoming = Incoming.from_body(stored[0].body) if stored else None
    return (stored[0].id, incoming) if incoming and incoming.kind in _TURNS else None


def _is_cancelled_by(stored: MailboxEntry, stop: Incoming) -> bool:
    incoming = Incoming.from_body(stored.body)
    return incoming is not None and incoming.kind in _TURNS and bool(stop_after(stop.event_ts or stop.ts, incoming))


async def receive_stop(incoming: Incoming, stores: Stores, cancel: Cancel, access: Access) -> None:
    """Stop before the ack if the person certainly has access. Otherwise store the stop. Raises ``RedisError``."""
    if await stores.cancellations.was_handled(incoming):
        return
    # As a direct message outside a thread the word opens its own thread, but it means the one before.
    before = await stores.direct_messages.previous_thread(incoming.thread, incoming.ts) if incoming.text else None
    stop = replace(incoming, thread=before or incoming.thread)
    if not (await _may_stop(stop, stores, access) and await cancel_thread(stop, stores, cancel)):
        # It has its own mailbox, because after the turn that it should stop it would come too late.
        keys = stop.event_ids or (f"stop:{stop.thread}:{stop.event_ts or stop.ts}",)
        await stores.mailbox.enqueue(f"{stop.thread}:stop", stop.to_json(), event_ids=keys)
    await stores.cancellations.mark_handled(incoming)


async def _may_stop(incoming: Incoming, stores: Stores, access: Access) -> bool:
    """Return whether this person is known to have access, by the lists or by what Slack said in the last minutes."""
    messages = [Incoming.from_body(one.body) for one in await stores.mailbox.list_messages(str(incoming.thread))]
    if {one.user for one in messages if one and one.kind in _TURNS} == {incoming.user}:
        return True  # all turns here are their own
    person = await stores.people.cached_person(incoming.thread.team, incoming.user)
    return cached_refusal(visit_of(incoming, Facts(person=person)), access) == ""


async def handle_stop(job: Job, services: TeamServices) -> Ending:
    """Carry out a stored stop, or tell only its author that nothing is running."""
    incoming = job.incoming
    if await cancel_thread(incoming, services.stores, services.stores.mailbox.cancel):
        return OK
    if not incoming.text:  # the button was pressed after its turn ended
        await services.delivery.end_session(incoming.thread, job.lease.require)
    # In a muted thread the word is meant for other people, unless it mentions Orion.
    for_us = incoming.addressed == "mention" or await services.stores.thread_modes.get(incoming.thread) != "muted"
    if for_us and not await _drop_pending_question(job, services):
        await services.notify_person(incoming, say("nothing_runs", await services.people.notice_language(incoming)))
    return OK


async def _drop_pending_question(job: Job, services: TeamServices) -> bool:
    stores, incoming = services.stores, job.incoming
    state = job.facts.state
    if state.pending_question is None or await stores.mailbox.list_messages(str(incoming.thread)):
        return False  # a message after the stop continues
    try:
        await stores.threads.save(incoming.thread, cancel_pending_question(state))
    except StateNotSaved as error:
        log.warning("state_save_failed", thread=str(incoming.thread), reason=type(error).__name__)
        return False
    text = say("stopped", detect_language(state.pending_question.text))
    with suppress(DeliveryFailed):
        await services.delivery.post_own_text(incoming.thread, text, incoming.ts, job.lease.require)
    return True
