"""Leave a turn to a later try, finish what an earlier one began, and delete what was posted twice.

**The model or the documents are down**: the question goes back to the queue, with a status that says so, for as long
as ``TurnTimeouts`` allows since the service first failed for it.

**Streams**: a mark is written before a stream begins, and its ts right after, so that the next worker can finish it.

**Duplicates**: a worker that freezes or loses Redis can post after another one has answered, and Slack can carry out a
post without a reply late. So a recheck reads the thread several times within a minute.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

import structlog

from agent.model.protocol import RETRYABLE
from agent.outcome import Failed
from agent.texts.catalogue import say
from agent.thread.conversation import ThreadKey
from bot.delivery.answer_key import ENDS_SESSION, AnswerKey, Recheck, duplicate_posts, is_empty_stream
from bot.delivery.delivery import Delivery
from bot.delivery.stream import AnswerStream
from bot.queue.claim import OK, Claimed, Ending, Lease, LeaseLost, give_back
from bot.queue.queue import Mailbox
from bot.slack.agent_session import end_session
from bot.slack.history import Posted, StreamedMessage, age_s
from bot.slack.message import Incoming, turn_id_for
from bot.slack.web_api import DeliveryFailed, LeaseCheck, no_lease
from bot.stores.stores import Stores, mark_of
from bot.turn.engine import TurnTimeouts
from bot.turn.job import Job, TeamServices
from bot.turn.status import WorkingStatus

log = structlog.get_logger()

MODEL_AWAY: Final = "is waiting for the language model and keeps trying…"
DOCUMENTS_AWAY: Final = "can't reach the documents and keeps trying…"
CONVERSATION_TTL_S: Final = 3_600


def retry_delay_s(job: Job, outcome: Failed, timeouts: TurnTimeouts) -> float | None:
    """Return the seconds until the next try, or None for a permanent failure or after the longest wait."""
    if outcome.reason not in RETRYABLE:
        return None
    waited_s = max(0.0, time.time() - job.failed_since) if job.failed_since else 0.0
    wait_s = max(timeouts.pause_s(waited_s), outcome.retry_after_s or 0.0)
    return wait_s if waited_s + wait_s <= timeouts.model_s else None


async def give_back_with_status(
    mailbox: Mailbox, job: Job, status: WorkingStatus, outcome: Failed, wait_s: float
) -> Ending:
    """Give the question back for ``wait_s`` seconds, with a status that says so."""
    documents = outcome.reason == "KnowledgeAwayError"
    log.info("turn_waits_for_documents" if documents else "turn_waits_for_model", wait_s=round(wait_s, 1))
    await mailbox.mark(job.claimed, mark_of(job.turn_id, "waits"), f"{time.time():.3f}")
    if job.read:
        await mailbox.mark(job.claimed, mark_of(job.turn_id, "thread"), job.read, ttl_s=CONVERSATION_TTL_S)
    await status.leave_text(DOCUMENTS_AWAY if documents else MODEL_AWAY)
    return give_back(wait_s)


def open_stream(services: TeamServices, job: Job, status: WorkingStatus) -> AnswerStream | None:
    """Return a stream for this answer, or None if it must be posted. A stream of an earlier try is finished instead.

    A bot without a user account gets a post, because Slack shows streams only to users and would refuse.
    """
    streams, is_repeated = services.streams, job.earlier_stream.is_begun or job.may_be_answered
    without_account = job.incoming.user.startswith("B")
    if streams is None or without_account or is_repeated or not streams.may_be_tried(job.place):
        return None
    return AnswerStream(
        streams=streams,
        place=job.place,
        user=job.incoming.user,
        user_team=job.incoming.user_team,
        lease_check=job.lease.require,
        mailbox=services.stores.mailbox,
        claimed=job.claimed,
        turn_id=job.turn_id,
        begun=status.changed,  # Slack removes the status when the stream appears, so it is sent again
    )


@asynccontextmanager
async def send_stream(services: TeamServices, job: Job, stream: AnswerStream) -> AsyncIterator[None]:
    """Send the stream's changes during the block. Delete it if Redis is emptied: the next try does not know it."""
    async with stream.sending():
        try:
            yield
        except (asyncio.CancelledError, LeaseLost) as error:
            is_lost = isinstance(error, LeaseLost) or not job.lease.is_held()
            if is_lost and await services.store_again(job):
                await stream.stop_sending()
                if ts := stream.streamed.ts:
                    posted, key = Posted(ts=ts, stream=True), replace(job.answer_key(), lease_check=no_lease)
                    with suppress(DeliveryFailed):
                        await services.delivery.delete_post(job.place, posted, key, keep_ended=True)
            raise


async def delete_plan(services: TeamServices, job: Job, streamed: StreamedMessage) -> None:
    """Delete a stream without text of an answer, even an empty one: its turn has ended or continues elsewhere."""
    if streamed.ts:
        key = replace(job.answer_key(), streamed=streamed)
        with suppress(DeliveryFailed):
            await services.delivery.delete_streams(job.place, key, wordless=True)


async def end_streams(services: TeamServices, job: Job) -> None:
    """End the streams of a stopped question: with the note "stopped", deleted, or left for its edit."""
    streamed, stop = job.earlier_stream, job.facts.stop_ts
    if not streamed.is_begun:
        return
    await delete_plan(services, job, streamed)
    answer_key = replace(job.answer_key(), streamed=streamed)
    with suppress(DeliveryFailed):
        if job.facts.is_deleted:
            await services.delivery.delete_streams(job.place, answer_key)
        elif await services.delivery.end_streams(job.place, answer_key, say("stopped", job.language) if stop else ""):
            # The stream already shows the note, so do not post another.
            await services.stores.mailbox.mark(job.claimed, f"stopped:{stop}", f"stream:{job.incoming.ts}")
    if streamed.state == "unknown":  # Slack may still begin one
        await services.recheck_later(job)


RECHECK_AT_S: Final = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Times of a look in seconds since the message. A late post is visible for no longer than it was late."""
_SLACK_AWAY_S: Final = 60.0
_SESSION_RETRY_S: Final = 3.0


async def run_recheck(recheck: Recheck, claimed: Claimed, lease: Lease, stores: Stores, delivery: Delivery) -> Ending:
    """Carry out a recheck and return when to look again."""
    mailbox, place, waited_s = stores.mailbox, recheck.place, claimed.waited_s
    try:
        messages = await mailbox.list_messages(str(place))
        if recheck.question_ts == ENDS_SESSION:
            if messages:
                return give_back(_SESSION_RETRY_S)  # a turn is running there, or about to
            await end_session(delivery.calls, place, lease.require)
            return OK
        if len(await mailbox.list_messages(claimed.thread)) > 1:
            return OK  # the recheck after this one runs for longer
        if waited_s >= RECHECK_AT_S[0]:
            if await stores.cancellations.is_deleted(place, recheck.question_ts):
                await delivery.delete_answer(place, recheck.question_ts, lease.require)
            else:
                at_work = {incoming.ts for stored in messages if (incoming := Incoming.from_body(stored.body))}
                await delete_duplicates(delivery, place, recheck.question_ts, lease.require, at_work=at_work)
    except DeliveryFailed as failure:
        log.warning("recheck_failed", thread=claimed.thread, reason=failure.reason)
        return OK if failure.permanent else give_back(failure.again_s or _SLACK_AWAY_S)
    next_s = next((look_s for look_s in RECHECK_AT_S if look_s > waited_s), None)
    return OK if next_s is None else give_back(next_s - waited_s)


async def delete_duplicates(
    delivery: Delivery,
    place: ThreadKey,
    question_ts: str,
    lease_check: LeaseCheck = no_lease,
    *,
    at_work: Collection[str] = (),
) -> int:
    """Delete duplicate and abandoned messages of a question. Return how many.

    Duplicate notices are always deleted. If the question's ts is not in ``at_work`` (a running turn replaces these
    messages itself), so are duplicate answers, a placeholder next to an answer and a status under it.
    """
    posts, edited_ts, has_last_word = await delivery.reader.find_all_posts(place, question_ts)
    # An empty stream may belong to another turn that has just begun and gets its first words in a moment.
    messages = [posted for posted in posts if not posted.stream or is_empty_stream(posted)]
    over = question_ts not in at_work
    surplus = duplicate_posts(messages, turn_id_for(place, question_ts, edited_ts))
    duplicates = [posted for posted in surplus if over or posted.about]
    answered = any(not (posted.placeholder or posted.about) for posted in messages)
    # Without an answer, the next try replaces the placeholder.
    placeholders = [posted for posted in messages if posted.placeholder and answered and over]
    answer_key = AnswerKey(question_ts=question_ts, lease_check=lease_check)
    deleted = 0
    for posted in (*duplicates, *placeholders):
        if await delivery.delete_post(place, posted, answer_key, keep_ended=True):
            deleted += 1
            what = "placeholder" if posted in placeholders else "second_notice" if posted.about else "second_answer"
            event = f"{what}_deleted"
            log.warning(event, part=posted.part, stood_s=round(age_s(posted.ts), 1))
    if answered and not at_work and has_last_word:  # a thread has one status, which may be another question's
        with suppress(DeliveryFailed):  # a workspace may have no statuses
            await delivery.set_status(place, "", lease_check=lease_check)
    return deleted
