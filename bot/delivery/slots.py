"""Assign an answer's parts to existing messages, and find duplicates. Pure."""

from collections.abc import Sequence
from typing import Final

from bot.slack.history import Posted, age_s

_EMPTY_STREAM_S: Final = 10  # seconds after which an empty stream was left behind by a crashed worker


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


def message_to_reuse(found: Sequence[Posted]) -> tuple[Posted, ...]:
    """Return the message that an answer replaces: a stream with a part of it, else the earliest."""
    return tuple(sorted(found, key=lambda posted: not posted.stream)[:1])


def duplicate_posts(found: Sequence[Posted], turn_id: str) -> list[Posted]:
    """Return the surplus answers and notices; ``found`` is in order of parts, then of time.

    Of several versions of an answer, the one of ``turn_id`` remains if it exists, else the first.
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


def is_empty_stream(posted: Posted) -> bool:
    """Return whether this stream is empty and old enough that no worker is about to fill it."""
    return posted.blank and age_s(posted.ts) > _EMPTY_STREAM_S
