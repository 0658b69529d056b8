"""The outbox: a decided answer, stored before it is posted, so that a crash repeats the delivery and not the turn.

The entry is deleted once the answer is delivered and its thread saved. An unreadable entry counts as missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agent.outcome import OutcomeName
from agent.packing import compact_json, parse_json
from agent.thread.state import ThreadState, from_json, to_json
from agent.tools.builtin.slack_search import without_slack_text
from verification.types import Answer, Repair, Source, Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEntry:
    """One turn's outcome, the answer that goes with it, and the thread's state afterwards."""

    outcome: OutcomeName
    answer: Answer
    state: ThreadState

    def to_json(self) -> str:
        """One line that ``read_entry`` reads back."""
        answer = replace(self.answer, sources=tuple(map(without_slack_text, self.answer.sources)), claims=())
        return compact_json({"outcome": self.outcome, "answer": answer, "state": to_json(self.state)})


def read_entry(stored: str | None) -> OutboxEntry | None:
    """Read an entry; None if it is missing or unreadable."""
    if not stored:
        return None
    try:
        fields = parse_json(stored)
        return OutboxEntry(
            outcome=fields["outcome"], answer=_answer(fields["answer"]), state=from_json(fields["state"])
        )
    except (ValueError, KeyError, TypeError):
        return None


def _answer(fields: Mapping[str, Any]) -> Answer:
    return Answer(
        **{
            **fields,
            "chunks": tuple(fields["chunks"]),
            "claims": (),
            "sources": tuple(Source(**source) for source in fields["sources"]),
            "repairs": tuple(Repair(**repair) for repair in fields["repairs"]),
            "violations": tuple(Violation(**violation) for violation in fields["violations"]),
        }
    )
