"""How often the whole agent answers what it can answer and refuses what it cannot, on labelled questions.

Promises: every question is a turn of the real agent with the configured model; rows of one thread are one conversation,
in their order. An expected text must stand in the answer as a reader sees it. Must never count a label as an answer.
"""

from __future__ import annotations

import html
import re
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.conversation import Question, ThreadKey
from agent.outcome import Cancelled, OutcomeName, TurnOutcome, outcome_name
from agent.thread_state import ThreadState
from bot.engine import Engine, corpus_of, open_engine
from bot.eval_rows import percentile, read_rows, share
from bot.settings import Settings
from bot.turn_record import Recorder
from bot.vectors import make_vectors

_CITATION = re.compile(r"\s?\[\d+(?:\s*[,;–-]\s*\d+)*\]")
_MARKS = re.compile(r"[*_`~\u200b]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One labelled question. ``expect`` is None where Orion should refuse; ``thread`` is its own id where alone."""

    id: str
    question: str
    expect: tuple[str, ...] | None
    thread: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    """What became of one question."""

    asked: Asked
    outcome: OutcomeName
    text: str
    ms: float = 0.0

    @property
    def as_expected(self) -> bool:
        """Refused where it should be; else answered from the sources, with every expected text."""
        if self.asked.expect is None:
            return self.outcome == "refused"
        shown = plain(self.text)
        return self.outcome in {"answered", "partial"} and all(plain(text) in shown for text in self.asked.expect)


async def evaluate_answers(settings: Settings, path: Path, docs: Path) -> dict[str, Any]:
    """The report on one file of questions about the documents in ``docs``. Raises ``WrongUse`` for a bad row."""
    questions = read_questions(path)
    states: dict[str, ThreadState] = {}
    replies: list[Replied] = []
    async with open_engine(settings, corpus_of(settings, [docs])) as engine:
        await make_vectors(engine.meaning)
        for number, asked in enumerate(questions, start=1):
            reply, states[asked.thread] = await _ask(engine, asked, states.get(asked.thread, ThreadState()), number)
            replies.append(reply)
    return {"file": path.name, "model": engine.model.name, **scored(replies)}


def read_questions(path: Path) -> list[Asked]:
    """The questions of one file."""
    return [
        Asked(
            id=row.identity(),
            question=row.text("question"),
            expect=row.texts("expect"),
            thread=row.text("thread", "") or f"only {row.identity()}",
            kind=row.text("kind", ""),
        )
        for row in read_rows(path)
    ]


def scored(replies: Sequence[Replied]) -> dict[str, Any]:
    """Answered as expected, refused as expected, by kind, and each reply that was neither."""
    answerable = [reply for reply in replies if reply.asked.expect is not None]
    absent = [reply for reply in replies if reply.asked.expect is None]
    wrong = [{"id": reply.asked.id, "outcome": reply.outcome} for reply in replies if not reply.as_expected]
    return {
        "rows": len(replies),
        "should_answer": len(answerable),
        "answered_as_expected": _right(answerable),
        "answered_share": share(_right(answerable), len(answerable)),
        "should_refuse": len(absent),
        "refused_as_expected": _right(absent),
        "refused_share": share(_right(absent), len(absent)),
        "outcomes": dict(sorted(Counter(reply.outcome for reply in replies).items())),
        "kinds": _kinds(replies),
        "not_as_expected": wrong,
        "p50_ms": round(percentile([reply.ms for reply in replies], 0.5), 1),
        "p95_ms": round(percentile([reply.ms for reply in replies], 0.95), 1),
    }


def _right(replies: Iterable[Replied]) -> int:
    return sum(1 for reply in replies if reply.as_expected)


def _kinds(replies: Sequence[Replied]) -> dict[str, dict[str, int]]:
    named: dict[str, list[Replied]] = {}
    for reply in replies:
        if reply.asked.kind:
            named.setdefault(reply.asked.kind, []).append(reply)
    return {kind: {"rows": len(each), "as_expected": _right(each)} for kind, each in sorted(named.items())}


def plain(text: str) -> str:
    """The text as a reader sees it: no citations, no marks, no escapes, one space where there is any, no case."""
    bare = _MARKS.sub("", _CITATION.sub("", text))
    return " ".join(html.unescape(bare).split()).casefold()


async def _ask(engine: Engine, asked: Asked, state: ThreadState, number: int) -> tuple[Replied, ThreadState]:
    thread = ThreadKey(team="eval", channel="eval", thread_ts=asked.thread)
    question = Question(thread=thread, user="eval", text=asked.question, ts=f"{number}.000000")
    began = time.perf_counter()
    outcome, state = await engine.run(question, state, emit=Recorder())
    spent = (time.perf_counter() - began) * 1000
    return Replied(asked=asked, outcome=outcome_name(outcome), text=_text(outcome), ms=spent), state


def _text(outcome: TurnOutcome) -> str:
    return "" if isinstance(outcome, Cancelled) else outcome.answer.text
