"""The identity of an answer, its duplicates in Slack, and rechecks that only one copy remains.

A recheck has its own mailbox, so that it does not wait for people's messages. Any worker carries it out
(``bot.turn.recovery.run_recheck``).
"""

import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import stamina
import structlog
from redis.exceptions import RedisError

from agent.thread.conversation import ThreadKey
from bot.delivery.stream import AnswerStream
from bot.queue.claim import raise_if_cancelled
from bot.queue.queue import LEASE_S, Mailbox
from bot.slack.history import NOT_STREAMED, Posted, StreamedMessage, age_s
from bot.slack.web_api import LeaseCheck, no_lease

_EMPTY_STREAM_S: Final = 10  # seconds after which an empty stream must be from a crashed worker
Badge = Literal["partial", "quotes", "failed", "unasked"]  # a line of the footer, the text ``…_badge``


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKey:
    """The identity that makes an answer unique in Slack, and its form in a message."""

    question_ts: str
    turn_id: str = ""
    may_exist: bool = True  # False only on the first try of a new question: nothing is posted, so Slack is not asked
    lease_check: LeaseCheck = no_lease  # raises if the turn has lost its thread
    badges: tuple[Badge, ...] = ()
    language: str | None = None  # of the question
    ask_human: str = ""  # place where people are asked; empty: no button
    share_to: str = ""  # channel and thread_ts where the answer may be shared; empty: no button
    stream: AnswerStream | None = None  # showed the answer while it grew
    streamed: StreamedMessage = NOT_STREAMED  # by this turn or a crashed one
    posted: tuple[str, ...] = ()  # the recorded messages of an earlier answer
    posted_is_complete: bool = False  # according to our records no other message can exist


def duplicate_posts(messages: Sequence[Posted], turn_id: str) -> list[Posted]:
    """Return the surplus answers and notices; of several versions, the one of ``turn_id``, else the first, remains."""
    answers = [posted for posted in messages if not posted.placeholder]
    turns = [posted.turn_id for posted in answers if posted.turn_id]
    current = turn_id if turn_id in turns else next(iter(turns), "")
    seen: set[tuple[str, int, bool]] = set()
    surplus: list[Posted] = []
    for posted in answers:
        identity = (posted.about, posted.part, bool(posted.turn_id))
        if identity in seen or posted.turn_id not in {"", current}:
            surplus.append(posted)
        else:
            seen.add(identity)
    return surplus


def is_empty_stream(posted: Posted) -> bool:
    """Return whether this stream is empty and old enough that no worker is about to fill it."""
    return posted.blank and age_s(posted.ts) > _EMPTY_STREAM_S


ENDS_SESSION: Final = "session"
"""Used instead of a question's ts: end the agent session again."""
_MAX_RETRY_S: Final = 0.25
_KEY: Final = "settle"  # the old name of a recheck, kept because rechecks are stored
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recheck:
    """A later look for duplicates of a question's answer, or for a session that did not end."""

    place: ThreadKey
    question_ts: str

    def to_json(self) -> str:
        """Return one line that ``read_recheck`` parses and that cannot be mistaken for a person's message."""
        return json.dumps({_KEY: asdict(self)}, separators=(",", ":"))

    @property
    def thread(self) -> str:
        """Name of the mailbox of this question's rechecks, so that they do not wait for another question's."""
        return f"{self.place}:{self.question_ts}:{_KEY}"

    async def add(self, mailbox: Mailbox, *, patience_s: float = LEASE_S) -> None:
        """Recheck this question from now on: Slack may still carry out a post that got no reply.

        If Redis is down for ``patience_s``, the next worker after a lease looks anyway.
        """
        event = uuid.uuid4().hex
        retries = stamina.retry_context(RedisError, attempts=None, timeout=patience_s, wait_max=_MAX_RETRY_S)
        try:
            async for attempt in retries:
                with attempt:  # a repeat is not stored twice
                    await mailbox.enqueue(self.thread, self.to_json(), event_ids=[event])
                    await mailbox.make_due_now(self.thread)  # a postponed older one would delay this one
        except RedisError as error:
            log.warning("recheck_not_stored", error_type=type(error).__name__)
        raise_if_cancelled()


def read_recheck(fields: Any) -> Recheck | None:
    """Return the recheck in these fields, or None if they are another message's."""
    try:
        recheck = fields[_KEY]
        return Recheck(place=ThreadKey(**recheck["place"]), question_ts=str(recheck["question_ts"]))
    except (KeyError, TypeError):
        return None
