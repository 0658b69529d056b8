"""Which message each part of an answer belongs in, and which are duplicates. Of two the first stays. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bot.slack.history import Posted, age_s

_BLANK_S: Final = 10  # seconds after which a stream that shows nothing has been left by whoever began it


def seats(thread_mode: Sequence[Posted], parts: int, turn_id: str) -> list[Posted | None]:
    """For each part the message it belongs in: its own if this turn posted it already, else one that may be updated.

    An older note of Orion's before a turn's own parts ("Orion is paused") must not shift them.
    """
    own: dict[int, Posted] = {}
    others: list[Posted] = []
    for posted in thread_mode:
        if turn_id and posted.turn_id == turn_id:
            own.setdefault(posted.part, posted)
        else:
            others.append(posted)
    return [own.get(part) or (others.pop(0) if others else None) for part in range(1, parts + 1)]


def first_to_take(found: Sequence[Posted]) -> tuple[Posted, ...]:
    """The message that an answer takes over: a stream that holds a part of it already, else the earliest."""
    return tuple(sorted(found, key=lambda posted: not posted.stream)[:1])


def seconds(found: Sequence[Posted], turn_id: str) -> list[Posted]:
    """The answers and notices that are one too many; ``found`` is in order of parts, then of time.

    Of several versions of a question's answer that of ``turn_id`` stays, if it stands there, else the first.
    """
    said = [posted for posted in found if not posted.placeholder]
    turns = [posted.turn_id for posted in said if posted.turn_id]
    current = turn_id if turn_id in turns else next(iter(turns), "")
    known: set[tuple[str, int, bool]] = set()
    surplus: list[Posted] = []
    for posted in said:
        identity = (posted.about, posted.part, bool(posted.turn_id))
        if identity in known or posted.turn_id not in {"", current}:
            surplus.append(posted)
        else:
            known.add(identity)
    return surplus


def left_blank(posted: Posted) -> bool:
    """Whether this stream shows nothing and nobody is about to fill it."""
    return posted.blank and age_s(posted.ts) > _BLANK_S
