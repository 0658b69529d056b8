"""The identity of an answer: its question, its turn, and earlier answers to the same question."""

from dataclasses import dataclass
from typing import Literal

from bot.delivery.stream import AnswerStream
from bot.slack.history import NOT_STREAMED, StreamedMessage
from bot.slack.web_api import LeaseCheck, no_lease

Mark = Literal["partial", "quotes", "failed", "unasked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKey:
    """The identity that makes an answer unique in Slack.

    ``may_exist`` is False only on the first try of a new question: nothing can have been posted, so Slack is not asked.
    ``lease_check`` raises when the turn has lost its thread. ``language`` is the question's, None for English.
    ``stream`` showed the answer while it grew. ``streamed`` is the message that this turn or a crashed one streamed for
    it. ``posted`` are the recorded messages of an earlier
    answer. ``posted_is_complete``: by our records no other message can exist.
    """

    question_ts: str
    turn_id: str = ""
    may_exist: bool = True
    lease_check: LeaseCheck = no_lease
    marks: tuple[Mark, ...] = ()
    language: str | None = None
    ask_human: str = ""  # where people are asked; empty: no button
    share_to: str = ""  # channel and thread_ts where the answer may be shared; empty: no button
    stream: AnswerStream | None = None
    streamed: StreamedMessage = NOT_STREAMED
    posted: tuple[str, ...] = ()
    posted_is_complete: bool = False
