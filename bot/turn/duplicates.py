"""Looks again at questions whose answer may have been posted twice, and deletes the second.

A worker that is frozen, or cut off from Redis, between its last look at the lease and Slack's reply can still post when
another one has answered long since; and a post that Slack gave no reply to may be carried out long after the next try.
Slack has no key that would refuse the second. So whoever took a question over, finds that it lost one, or was left
without a reply leaves a message in a mailbox of its own: some seconds later, and again for a minute, any worker looks
into the thread and puts it in order.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

import structlog
from redis.exceptions import RedisError

from agent.thread.conversation import ThreadKey
from bot.delivery.answer_key import AnswerKey
from bot.delivery.delivery import ENDS_SESSION, Delivery
from bot.delivery.slots import duplicate_posts, is_empty_stream
from bot.queue.lease import Lease, now, raise_if_cancelled
from bot.queue.queue import LEASE_S, OK, Claimed, Ending, Mailbox, retry_uncounted
from bot.slack.history import age_s
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed, LeaseCheck, no_lease
from bot.stores.stores import Stores
from bot.turn.job import Job, turn_id_for

LOOKS_S: Final = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""When to look, in seconds since the message: what came late stands for no longer than it was late."""
_AGAIN_S: Final = 0.25
_AWAY_S: Final = 60.0
_SESSION_AGAIN_S: Final = 3.0
_KIND: Final = "settle"
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCheck:
    """Which question to look at again."""

    place: ThreadKey
    question_ts: str

    def to_json(self) -> str:
        """One line that ``pending_check_in`` finds again, and that nobody takes for a person's message."""
        return json.dumps({"settle": asdict(self)}, separators=(",", ":"))

    @property
    def mailbox(self) -> str:
        """Where messages about it lie: one question's do not wait for another's."""
        return f"{self.place}:{self.question_ts}:{_KIND}"


def pending_check_in(fields: Any) -> PendingCheck | None:
    """The question, or None where these are the fields of any other message."""
    try:
        found = fields[_KIND]
        return PendingCheck(place=ThreadKey(**found["place"]), question_ts=str(found["question_ts"]))
    except (KeyError, TypeError):
        return None


async def leave_check(mailbox: Mailbox, place: ThreadKey, question_ts: str, *, patience_s: float = LEASE_S) -> None:
    """Look at this question again, from now on: Slack may yet carry out a post that it gave no reply to.

    The next try waits for this note: a second post must not go unseen. ``patience_s`` is how long Redis may be away:
    once a lease is over whoever takes it next looks anyway.
    """
    check, event = PendingCheck(place=place, question_ts=question_ts), uuid.uuid4().hex
    until = now() + patience_s
    while True:
        try:
            await mailbox.enqueue(check.mailbox, check.to_json(), event_ids=[event])  # once, however often it is tried
            await mailbox.make_due_now(check.mailbox)  # an older message that rests would keep this one waiting
            break
        except RedisError as error:
            if now() >= until:
                _log.warning("doubt_not_noted", error_type=type(error).__name__)
                break
        await asyncio.sleep(_AGAIN_S)
    raise_if_cancelled()


async def look_again(mailbox: Mailbox, job: Job) -> None:
    """Two workers had this question, one after the other; what the slower one still does is looked for later.

    Left once for each time the question was taken up; a Redis that is away leaves it to whoever comes next.
    """
    check = PendingCheck(place=job.place, question_ts=job.incoming.ts)
    key = f"{_KIND}:{job.claimed.id}:{job.claimed.fence.token}"
    with suppress(RedisError):
        await mailbox.enqueue(check.mailbox, check.to_json(), event_ids=[key])


async def settle(check: PendingCheck, claimed: Claimed, lease: Lease, stores: Stores, delivery: Delivery) -> Ending:
    """Do what such a message asks: put its thread in order, each time it is time."""
    try:
        return await _settled(check, claimed, lease, stores, delivery)
    except DeliveryFailed as failure:
        _log.warning("thread_not_settled", thread=claimed.thread, reason=failure.reason)
        return OK if failure.permanent else retry_uncounted(failure.again_s or _AWAY_S)


async def _settled(check: PendingCheck, claimed: Claimed, lease: Lease, stores: Stores, delivery: Delivery) -> Ending:
    mailbox, place, question_ts = stores.mailbox, check.place, check.question_ts
    if question_ts == ENDS_SESSION:
        if await mailbox.list_messages(str(place)):
            return retry_uncounted(_SESSION_AGAIN_S)  # a turn is at work there, or about to be
        await delivery.sessions.end_now(place, lease.require)
        return OK
    if len(await mailbox.list_messages(claimed.thread)) > 1:
        return OK  # the message behind this one looks for longer
    age_s = claimed.waited_s
    if age_s >= LOOKS_S[0]:
        if await stores.cancellations.is_deleted(place, question_ts):
            await delivery.delete_answer(place, question_ts, lease.require)
        else:
            messages = (Incoming.from_body(stored.body) for stored in await mailbox.list_messages(str(place)))
            at_work = {incoming.ts for incoming in messages if incoming}
            await put_in_order(delivery, place, question_ts, lease.require, at_work=at_work)
    next_s = next((look_s for look_s in LOOKS_S if look_s > age_s), None)
    return OK if next_s is None else retry_uncounted(next_s - age_s)


async def put_in_order(
    delivery: Delivery,
    place: ThreadKey,
    question_ts: str,
    lease_check: LeaseCheck = no_lease,
    *,
    at_work: Collection[str] = (),
) -> int:
    """Takes away what stands there a second time, or that nobody is behind. Returns how many messages went.

    That is a second notice (the first one stands), and of a question that is not ``at_work`` (the ts of those that are,
    as an edit may be: its turn takes these messages over) a second answer, a placeholder beside one, a status under it.
    """
    seen = await delivery.reader.find_status(place, question_ts)
    # The stream of another turn of this thread may just have begun: it gets its first words within moments.
    found = [posted for posted in seen.posted if not posted.stream or is_empty_stream(posted)]
    over = question_ts not in at_work
    twice = [p for p in duplicate_posts(found, turn_id_for(place, question_ts, seen.edited_ts)) if over or p.about]
    answered = any(not (posted.placeholder or posted.about) for posted in found)
    # Where there is no answer yet, whoever answers takes over what stands there.
    left = [posted for posted in found if posted.placeholder and answered and over]
    answer_key = AnswerKey(question_ts=question_ts, lease_check=lease_check)
    gone = 0
    for posted in (*twice, *left):
        if await delivery.delete_post(place, posted, answer_key):
            gone += 1
            what = "placeholder" if posted in left else "second_notice" if posted.about else "second_answer"
            _log.warning(f"{what}_deleted", part=posted.part, stood_s=round(age_s(posted.ts), 1))
    if answered and not at_work and seen.last_word:  # a thread has one status: it may be another question's
        with suppress(DeliveryFailed):  # a workspace without statuses is looked at again all the same
            await delivery.set_status(place, "", lease_check=lease_check)
    return gone
