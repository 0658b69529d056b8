"""The identity of an answer, and which messages in Slack its parts take. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from bot.delivery.stream import AnswerStream
from bot.slack.history import NOT_STREAMED, Posted, StreamedMessage, age_s
from bot.slack.web_api import LeaseCheck, no_lease

_EMPTY_STREAM_S: Final = 10  # seconds after which an empty stream was left behind by a crashed worker
Mark = Literal["partial", "quotes", "failed", "unasked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKey:
    """The identity that makes an answer unique in Slack.

    ``may_exist`` is False only on the first try of a new question: nothing can have been posted, so Slack is not asked.
    ``lease_check`` raises when the turn has lost its thread. ``language`` is the question's, None for English.
    ``stream`` showed the answer while it grew. ``streamed`` is the message that this turn or a crashed one streamed for
    it. ``posted`` are the recorded messages of an earlier answer. ``posted_is_complete``: by our records no other
    message can exist.
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


def assign_messages(existing: Sequence[Posted], parts: int, turn_id: str) -> list[Posted | None]:
    """Return a message for each part: the one this turn posted already, else one to update, else None.

    An older note before the turn's own parts ("Orion is paused") must not shift them.
    """
    own: dict[int, Posted] = {}
    others: list[Posted] = []
    for posted in existing:
        if turn_id and posted.turn_id == turn_id:
            own.setdefault(posted.part, posted)
        else:
            others.append(posted)
    return [own.get(part) or (others.pop(0) if others else None) for part in range(1, parts + 1)]


def message_to_reuse(messages: Sequence[Posted]) -> tuple[Posted, ...]:
    """Return the message that an answer replaces: a stream with a part of it, else the earliest."""
    return tuple(sorted(messages, key=lambda posted: not posted.stream)[:1])


def duplicate_posts(messages: Sequence[Posted], turn_id: str) -> list[Posted]:
    """Return the surplus answers and notices; ``messages`` are in order of parts, then of time.

    Of several versions of an answer, the one of ``turn_id`` remains if it exists, else the first.
    """
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
