"""What is kept of a turn, for "Why trust this?" and the inspector: attempts, repairs, violations, timings.

Promises: a record holds what a member of the thread may see once the turn is over. Must never go into a log: it holds
texts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from redis.asyncio import Redis

from agent.outcome import Cancelled, TurnOutcome, outcome_name
from agent.thread.conversation import Question
from agent.tools.builtin.slack_search import SLACK_SEARCH, permalinks_only
from agent.turn.events import Done, ModelEnd, ModelStart, ToolEnd, ToolStart, TurnEvent, Verification
from verification.types import Answer, Repair, Source, Violation

KEPT_S = 30 * 86_400
"""As long as a thread is remembered."""


@dataclass(slots=True)
class Recorder:
    """Listens to one turn and adds up where its time went. ``clock`` gives seconds."""

    clock: Callable[[], float] = time.monotonic
    attempts: list[dict[str, Any]] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    _since: dict[str, float] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    _keeps_found: bool = True

    def __call__(self, event: TurnEvent) -> None:
        """Take note of one event."""
        match event:
            case ModelStart(phase=phase):
                self._since[phase] = self.clock()
            case ModelEnd(phase=phase):
                self._add(phase, phase)
                self._since["verify"] = self.clock()
            case ToolStart(call_id=call_id, tool=tool):
                self._since[call_id] = self.clock()
                self._keeps_found = self._keeps_found and tool != SLACK_SEARCH
            case ToolEnd(call_id=call_id, tool=tool):
                self._add("search" if tool == "search" else "tools", call_id)
            case Verification():
                self._attempt(event)
            case Done(usage=usage):
                self.usage = {**asdict(usage), "tokens": usage.tokens}
            case _:
                pass

    @property
    def timings_ms(self) -> dict[str, float]:
        """Milliseconds spent, by part of the turn."""
        return {name: round(value, 1) for name, value in self.timings.items()}

    def _add(self, name: str, since: str) -> float:
        spent = (self.clock() - self._since.get(since, self.clock())) * 1000
        self.timings[name] = self.timings.get(name, 0.0) + spent
        return spent

    def _attempt(self, event: Verification) -> None:
        verdict = event.verdict
        found = verdict.violations
        if not self._keeps_found:  # these may say what stands in a source
            found = tuple(replace(violation, detail="", remedy="") for violation in found)
        self.attempts.append(
            {
                "attempt": event.attempt,
                "draft": event.draft,
                "passed": verdict.passed,
                "ms": round(self._add("verify", "verify"), 1),
                "repairs": repairs_json(verdict.repairs),
                "violations": violations_json(found),
            }
        )

    def record(self, question: Question, outcome: TurnOutcome, *, turn_id: str, model: str) -> dict[str, Any]:
        """The whole turn as JSON-ready values."""
        answer = None if isinstance(outcome, Cancelled) else outcome.answer
        return {
            "turn_id": turn_id,
            "thread": str(question.thread),
            "user": question.user,
            "outcome": outcome_name(outcome),
            "verified": bool(answer and answer.verified),
            "question": question.text,
            "answer": answer.text if answer else "",
            "model": model,
            "attempts": self.attempts,
            "timings_ms": self.timings_ms,
            "sources": sources_json(replace(answer, sources=permalinks_only(answer.sources))) if answer else [],
            "usage": self.usage,
        }


def repairs_json(repairs: tuple[Repair, ...]) -> list[dict[str, Any]]:
    """Repairs as JSON-ready values."""
    return [asdict(repair) for repair in repairs]


def violations_json(violations: tuple[Violation, ...]) -> list[dict[str, Any]]:
    """Violations as the outside contract spells them."""
    return [asdict(violation) for violation in violations]


def sources_json(answer: Answer, *, text: bool = False) -> list[dict[str, Any]]:
    """The answer's sources; with their texts where the reader asked for them."""
    return [_source(source, text=text) for source in answer.sources]


def _source(source: Source, *, text: bool) -> dict[str, Any]:
    shown = {"id": source.id, "title": source.title, "url": source.url, "updated_at": source.updated_at}
    return {**shown, "text": source.text} if text else shown


class TurnRecords:
    """Records in Redis, by turn id."""

    def __init__(self, redis: Redis, *, prefix: str = "orion") -> None:
        self._redis = redis
        self._prefix = prefix

    def key(self, turn_id: str) -> str:
        """Where one record lies."""
        return f"{self._prefix}:turn:{turn_id}"

    async def save(self, record: dict[str, Any]) -> None:
        """Keep a record as long as its thread is remembered."""
        await self._redis.set(self.key(record["turn_id"]), json.dumps(record, ensure_ascii=False), ex=KEPT_S)

    async def judge(self, turn_id: str, user: str, *, good: bool) -> None:
        """Keep one person's judgement of an answer; the last one counts."""
        key = f"{self._prefix}:feedback:{turn_id}"
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.hset(key, user, "good" if good else "bad")
            pipe.expire(key, KEPT_S)
            await pipe.execute()

    async def load(self, turn_id: str) -> dict[str, Any] | None:
        """A record, or None when there is none (any more)."""
        stored = await self._redis.get(self.key(turn_id))
        return json.loads(stored) if stored else None
