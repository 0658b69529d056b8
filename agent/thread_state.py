"""What Orion remembers of a thread (A2, E1 to E4), and its transitions. Pure: no I/O, no clock, no randomness.

``from_json`` reads every older schema and refuses none: an unknown field is left out, a missing one has a default.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from agent.conversation import Message
from agent.plan import Plan
from verification.answer import Source

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingQuestion:
    """A question Orion asked: only ``user`` may answer it, and the answer is stored under ``key``."""

    key: str
    text: str
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadState:
    """One conversation. ``version`` grows with each save; ``todolist_id`` is None when there is no todo list."""

    schema: int = SCHEMA
    version: int = 0
    mission: str = ""
    todolist_id: str | None = None
    plan: Plan | None = None
    history: tuple[Message, ...] = ()
    answers: dict[str, str] = field(default_factory=dict)
    pending_question: PendingQuestion | None = None
    sources: tuple[Source, ...] = ()
    preferences: dict[str, str] = field(default_factory=dict)
