"""What is known of each source beside its documents: when it was last gone over, how much was read, what was not.

Promises: kept in the index itself, so that any process on any machine can tell (`orion docs`, App Home, ``/metrics``);
a state of another version is read as far as it is understood. Must never hold a text of a document.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

PREFIX: Final = "source:"
"""What the names of these notes begin with; the rest is the source's name."""
MOST_FAILURES: Final = 100
"""So many are kept by name; of the others only how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """One source after a run. Times are seconds since 1970; ``synced`` is when it was last there, 0 for never.

    ``part`` is which part of it was read, ``read`` documents of ``size`` bytes were looked at. ``failed`` pairs
    documents with reasons; ``more`` failed beside those.
    """

    tried: float
    part: str = ""
    synced: float = 0.0
    seconds: float = 0.0
    read: int = 0
    size: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    more: int = 0

    @property
    def failures(self) -> int:
        """How many documents were not read."""
        return len(self.failed) + self.more

    def to_note(self) -> str:
        """One line that ``state_of`` reads back."""
        return json.dumps(asdict(self), ensure_ascii=True, separators=(",", ":"))


def shortened(failed: Sequence[tuple[str, str]]) -> tuple[tuple[tuple[str, str], ...], int]:
    """The failures that are kept, and how many more there are."""
    return tuple(failed[:MOST_FAILURES]), max(0, len(failed) - MOST_FAILURES)


def state_of(note: str) -> SourceState | None:
    """What a note says; None where that is nothing."""
    try:
        fields: dict[str, Any] = json.loads(note)
        failed = tuple((str(name), str(reason)) for name, reason in fields.get("failed", ()))
        return SourceState(
            tried=float(fields["tried"]),
            part=str(fields.get("part", "")),
            synced=float(fields.get("synced", 0)),
            seconds=float(fields.get("seconds", 0)),
            read=int(fields.get("read", 0)),
            size=int(fields.get("size", 0)),
            failed=failed,
            more=int(fields.get("more", 0)),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def due_at(states: Mapping[str, SourceState], names: Sequence[str], every_s: float) -> float:
    """When these sources are to be gone over again, in seconds since 1970; 0 where one never was."""
    return min((states[name].tried + every_s if name in states else 0.0 for name in names), default=float("inf"))


def states_of(notes: Mapping[str, str]) -> dict[str, SourceState]:
    """The states by the sources' names."""
    read = {name.removeprefix(PREFIX): state_of(note) for name, note in notes.items()}
    return {name: state for name, state in read.items() if state is not None}
