"""Checks of questions that may have been answered twice, or whose session Slack did not end, for some worker to do.

Each lies in a mailbox of its own, so that it does not wait for messages of people. ``bot.turn.duplicates`` carries it
out.
"""

import json
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

import stamina
import structlog
from redis.exceptions import RedisError

from agent.thread.conversation import ThreadKey
from bot.queue.lease import Claimed, raise_if_cancelled
from bot.queue.queue import LEASE_S, Mailbox

ENDS_SESSION: Final = "session"
"""Used instead of a question's ts: end the place's agent session again."""
_MAX_RETRY_S: Final = 0.25
_KIND: Final = "settle"
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCheck:
    """A question to check for duplicates."""

    place: ThreadKey
    question_ts: str

    def to_json(self) -> str:
        """Return one line that ``read_pending_check`` parses and that cannot be mistaken for a person's message."""
        return json.dumps({_KIND: asdict(self)}, separators=(",", ":"))

    @property
    def mailbox(self) -> str:
        """Mailbox of this question's checks, so that they do not wait for another question's."""
        return f"{self.place}:{self.question_ts}:{_KIND}"


def read_pending_check(fields: Any) -> PendingCheck | None:
    """Return the check in these fields, or None if they are another message's."""
    try:
        check = fields[_KIND]
        return PendingCheck(place=ThreadKey(**check["place"]), question_ts=str(check["question_ts"]))
    except (KeyError, TypeError):
        return None


@dataclass(frozen=True, slots=True)
class PendingChecks:
    """Leaves checks in the queue. Redis may be away for ``patience_s``: the next worker after a lease looks anyway."""

    mailbox: Mailbox
    patience_s: float = LEASE_S

    async def add(self, place: ThreadKey, question_ts: str) -> None:
        """Check this question from now on: Slack may yet carry out a post that got no reply.

        The next delivery try waits until the check is stored.
        """
        check, event = PendingCheck(place=place, question_ts=question_ts), uuid.uuid4().hex
        retries = stamina.retry_context(RedisError, attempts=None, timeout=self.patience_s, wait_max=_MAX_RETRY_S)
        try:
            async for attempt in retries:
                with attempt:  # a repeat is not stored twice
                    await self.mailbox.enqueue(check.mailbox, check.to_json(), event_ids=[event])
                    await self.mailbox.make_due_now(check.mailbox)  # a postponed older check would delay this one
        except RedisError as error:
            log.warning("doubt_not_noted", error_type=type(error).__name__)
        raise_if_cancelled()

    async def add_for(self, claimed: Claimed, place: ThreadKey, question_ts: str) -> None:
        """Check this question later: two workers had it, and the slower one may still post.

        The check is left once for each claim. If Redis is away, the next worker leaves it.
        """
        check = PendingCheck(place=place, question_ts=question_ts)
        key = f"{_KIND}:{claimed.id}:{claimed.fence.token}"
        with suppress(RedisError):
            await self.mailbox.enqueue(check.mailbox, check.to_json(), event_ids=[key])
