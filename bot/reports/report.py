"""One week of Orion as the readers of one place may see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any

from agent.knowledge.saved_answer import SavedAnswer
from observability.stats import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question. ``link`` leads to its thread; ``reasons`` and ``said`` are what people disliked in the answer."""

    turn_id: str
    question: str
    link: str = ""
    reasons: tuple[str, ...] = ()
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Questions without an answer, newest first, under the title of the nearest document; empty: none is near."""

    document: str
    asked: tuple[Asked, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """Numbers of questions that are not shown: of direct chats, and of channels that readers may not be in."""

    direct: int = 0
    private: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleDocument:
    """An old document that answers cited. ``updated_at`` is an ISO 8601 date."""

    title: str
    url: str
    updated_at: str
    citations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The counters of a week. ``cost`` is in US dollars, None without prices."""

    tally: Tally
    cost: float | None = None

    @property
    def tokens(self) -> int:
        """Tokens of all models."""
        return self.tally["usage:prompt_tokens"] + self.tally["usage:completion_tokens"]

    def to_json(self) -> dict[str, Any]:
        """Return the figures as JSON-ready values."""
        tally = self.tally
        return {"turns": tally.turns, "pass_rate": tally.pass_rate, "tokens": self.tokens, "cost": self.cost}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report. Its week is from ``first`` to ``last``, both included, as days in UTC."""

    first: date
    last: date
    week: Figures
    before: Figures
    topics: Sequence[Topic] = ()
    unanswered_elsewhere: Hidden = field(default_factory=Hidden)
    disliked: Sequence[Asked] = ()
    disliked_elsewhere: Hidden = field(default_factory=Hidden)
    overdue: Sequence[SavedAnswer] = ()
    stale: Sequence[StaleDocument] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the report as ``orion report --json`` prints it."""
        return {
            "first": self.first.isoformat(),
            "last": self.last.isoformat(),
            "week": self.week.to_json(),
            "week_before": self.before.to_json(),
            "unanswered": [asdict(topic) for topic in self.topics],
            "unanswered_not_shown": asdict(self.unanswered_elsewhere),
            "disliked": [asdict(asked) for asked in self.disliked],
            "disliked_not_shown": asdict(self.disliked_elsewhere),
            "overdue": [
                {"question": one.question, "owner": one.owner, "review": str(one.review), "link": one.link}
                for one in self.overdue
            ],
            "stale": [asdict(document) for document in self.stale],
        }
