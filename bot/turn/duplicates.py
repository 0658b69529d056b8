"""Check questions whose answer may have been posted twice, and delete duplicates.

A worker that freezes, or loses Redis, between its last lease check and Slack's reply can post after another worker has
answered. Slack can also carry out a post without a reply long after the next delivery try. Slack has no idempotency key
that would refuse the second post. So a worker that takes over a question, loses its lease or gets no reply leaves a
check in a mailbox of its own. Any worker then looks into the thread several times within a minute.
"""

from collections.abc import Collection
from contextlib import suppress
from typing import Final

import structlog

from agent.thread.conversation import ThreadKey
from bot.delivery.answer_key import AnswerKey, duplicate_posts, is_empty_stream
from bot.delivery.delivery import Delivery
from bot.delivery.pending_checks import ENDS_SESSION, PendingCheck
from bot.queue.lease import OK, Claimed, Ending, Lease, retry_uncounted
from bot.slack.history import age_s
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed, LeaseCheck, no_lease
from bot.stores.stores import Stores
from bot.turn.job import turn_id_for

CHECK_AT_S: Final = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Check times in seconds since the message. A late post is visible for no longer than it was late."""
_SLACK_AWAY_S: Final = 60.0
_SESSION_RETRY_S: Final = 3.0
log = structlog.get_logger()


async def run_check(check: PendingCheck, claimed: Claimed, lease: Lease, stores: Stores, delivery: Delivery) -> Ending:
    """Carry out a pending check and return when to check again."""
    try:
        return await _check(check, claimed, lease, stores, delivery)
    except DeliveryFailed as failure:
        log.warning("thread_not_settled", thread=claimed.thread, reason=failure.reason)
        return OK if failure.permanent else retry_uncounted(failure.again_s or _SLACK_AWAY_S)


async def _check(check: PendingCheck, claimed: Claimed, lease: Lease, stores: Stores, delivery: Delivery) -> Ending:
    mailbox, place, question_ts = stores.mailbox, check.place, check.question_ts
    if question_ts == ENDS_SESSION:
        if await mailbox.list_messages(str(place)):
            return retry_uncounted(_SESSION_RETRY_S)  # a turn is at work there, or about to be
        await delivery.sessions.end(place, lease.require)
        return OK
    if len(await mailbox.list_messages(claimed.thread)) > 1:
        return OK  # the check after this one runs for longer
    age_s = claimed.waited_s
    if age_s >= CHECK_AT_S[0]:
        if await stores.cancellations.is_deleted(place, question_ts):
            await delivery.delete_answer(place, question_ts, lease.require)
        else:
            messages = (Incoming.from_body(stored.body) for stored in await mailbox.list_messages(str(place)))
            at_work = {incoming.ts for incoming in messages if incoming}
            await delete_duplicates(delivery, place, question_ts, lease.require, at_work=at_work)
    next_s = next((look_s for look_s in CHECK_AT_S if look_s > age_s), None)
    return OK if next_s is None else retry_uncounted(next_s - age_s)


async def delete_duplicates(
    delivery: Delivery,
    place: ThreadKey,
    question_ts: str,
    lease_check: LeaseCheck = no_lease,
    *,
    at_work: Collection[str] = (),
) -> int:
    """Delete duplicate and abandoned messages of a question. Return how many.

    Duplicate notices always go. If the question's ts is not in ``at_work`` (a running turn replaces these messages
    itself), duplicate answers, a placeholder next to an answer and a status under it go too.
    """
    seen = await delivery.reader.find_status(place, question_ts)
    # An empty stream may be another turn's that has just begun: it gets its first words within moments.
    messages = [posted for posted in seen.posted if not posted.stream or is_empty_stream(posted)]
    over = question_ts not in at_work
    duplicates = [
        p for p in duplicate_posts(messages, turn_id_for(place, question_ts, seen.edited_ts)) if over or p.about
    ]
    answered = any(not (posted.placeholder or posted.about) for posted in messages)
    # Without an answer, the next delivery try replaces the placeholder.
    placeholders = [posted for posted in messages if posted.placeholder and answered and over]
    answer_key = AnswerKey(question_ts=question_ts, lease_check=lease_check)
    deleted = 0
    for posted in (*duplicates, *placeholders):
        if await delivery.delete_post(place, posted, answer_key):
            deleted += 1
            what = "placeholder" if posted in placeholders else "second_notice" if posted.about else "second_answer"
            event = f"{what}_deleted"
            log.warning(event, part=posted.part, stood_s=round(age_s(posted.ts), 1))
    if answered and not at_work and seen.last_word:  # a thread has one status, which may be another question's
        with suppress(DeliveryFailed):  # a workspace may have no statuses
            await delivery.set_status(place, "", lease_check=lease_check)
    return deleted
