"""A second look at a question that more than one worker had in hand (E5, H3).

A worker that is frozen, or cut off from Redis, between its last look at the lease and Slack's reply can still post when
another one has answered long since; Slack has no key that would refuse it. So whoever took a question over, and whoever
finds that it lost one, leaves a letter: some seconds later any worker looks into the thread and puts it in order.

Promises: the letter is as durable as a question, and the look deletes nothing that is not a second one. Must never hold
up the thread itself: the letter lies in a mailbox of its own.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import Final

from agent.conversation import ThreadKey
from bot.delivery import Delivery
from bot.lease import Lease
from bot.mailbox import Claimed, Mailbox
from bot.turns import OK, Ending, later

SETTLE_S: Final = 20.0
"""Longer than one attempt to post may take, so that by then it has happened or never will."""
_KIND: Final = "settle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """Which question to look at again."""

    place: ThreadKey
    question_ts: str

    def to_json(self) -> str:
        """One line that ``read_unsettled`` reads back, and that nobody takes for a person's letter."""
        return json.dumps({"settle": asdict(self)}, separators=(",", ":"))


def read_unsettled(body: str) -> Unsettled | None:
    """The question, or None where the body is any other letter."""
    try:
        fields = json.loads(body)[_KIND]
        return Unsettled(place=ThreadKey(**fields["place"]), question_ts=str(fields["question_ts"]))
    except (ValueError, KeyError, TypeError):
        return None


class Settling:
    """Leaves such letters, and does what they ask. ``after_s`` is how long they wait."""

    def __init__(self, mailbox: Mailbox, delivery: Delivery, *, after_s: float = SETTLE_S) -> None:
        self._mailbox = mailbox
        self._delivery = delivery
        self._after_s = after_s

    async def note(self, claimed: Claimed, unsettled: Unsettled) -> None:
        """Look at this question again later; once for each time it was taken up. Raises ``RedisError``."""
        key = f"{_KIND}:{claimed.id}:{claimed.fence.token}"
        await self._mailbox.enqueue(f"{unsettled.place}:{_KIND}", unsettled.to_json(), event_ids=[key])

    async def settle(self, unsettled: Unsettled, claimed: Claimed, lease: Lease) -> Ending:
        """Put the thread in order, once it is time. Raises ``DeliveryFailed``."""
        left_s = self._after_s - (time.time() - claimed.enqueued_at)
        if left_s > 0:
            return later(left_s)
        await self._delivery.settle(unsettled.place, unsettled.question_ts, lease.require)
        return OK
