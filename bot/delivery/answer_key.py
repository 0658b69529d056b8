"""Which question an answer belongs to, and what is known of earlier answers to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bot.delivery.stream import AnswerStream
from bot.slack.web_api import LeaseCheck, no_lease

Mark = Literal["partial", "quotes", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKey:
    """Which question of which turn an answer belongs to: the identity that makes it unique in Slack.

    ``may_exist`` is False only on the first try of a new question: then nothing can have been posted and the look is
    saved. ``lease_check`` raises when the turn has lost its thread. ``language`` is the question's, None English.
    ``stream`` is where the answer was shown while it grew; ``streamed`` the ts of a stream that was begun for it, by
    this turn or one that died, empty where that is not known, None where there was none. ``posted`` are the messages
    in which an earlier answer to the question is known to stand. ``unlikely``: by what is stored no other can stand.
    """

    question_ts: str
    turn_id: str = ""
    may_exist: bool = True
    lease_check: LeaseCheck = no_lease
    marks: tuple[Mark, ...] = ()
    language: str | None = None
    ask_human: bool = False
    stream: AnswerStream | None = None
    streamed: str | None = None
    posted: tuple[str, ...] = ()
    unlikely: bool = False
