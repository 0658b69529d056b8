"""Record what a model writes for a set of questions: drafts, sources, verdicts, what the judge said, outcomes.

``python -m tests.measure.record QUESTIONS.jsonl DOCS OUT.jsonl [--at-once N]`` asks the model of ``OPENAI_BASE_URL``.
Rows of one ``thread`` are one conversation. ``test_recorded`` replays the drafts through the rules.
"""

import argparse
import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from agent.model.chat_server import Timeouts
from agent.model.protocol import (
    DecideContext,
    Decision,
    Generated,
    Judge,
    JudgeContext,
    Model,
    Opinion,
    WriteContext,
    WriteStream,
)
from agent.outcome import Failed, Refused
from agent.thread.conversation import Question, ThreadKey
from agent.thread.state import ThreadState
from agent.turn.events import ModelEnd, TurnEvent, Verification
from bot.documents.open import corpus_of
from bot.evals.files import verdict_json
from bot.settings import load_settings
from bot.turn.engine import Engine, TurnTimeouts, open_engine
from verification.types import Source

Row = dict[str, Any]
# A played model may think for minutes; no time-out of Orion's is measured here.
PATIENT = Timeouts(reply=3600.0, idle=3600.0, retries=0)


@dataclass(slots=True)
class Heard:
    """The record of one turn."""

    attempts: list[Row] = field(default_factory=list)
    calls: list[Row] = field(default_factory=list)
    judged: list[Row] = field(default_factory=list)
    sources: dict[int, Source] = field(default_factory=dict)

    def event(self, event: TurnEvent) -> None:
        """One event of the turn."""
        if isinstance(event, Verification):
            self.attempts.append({"draft": event.draft} | verdict_json(event.verdict))
        elif isinstance(event, ModelEnd):
            usage = event.usage
            self.calls.append(
                {"phase": event.phase, "prompt": usage.prompt_tokens, "completion": usage.completion_tokens}
            )


@dataclass(frozen=True, slots=True)
class Listening:
    """The model, with the sources of each writing call written down."""

    model: Model
    heard: Heard

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def quotes_only(self) -> bool:
        return self.model.quotes_only

    async def decide(self, context: DecideContext) -> Decision:
        return await self.model.decide(context)

    def write(self, context: WriteContext) -> WriteStream:
        self.heard.sources.update({source.id: source for source in context.sources})
        return self.model.write(context)

    async def generate(self, prompt: str, *, max_tokens: int, temperature: float) -> Generated:
        return await self.model.generate(prompt, max_tokens=max_tokens, temperature=temperature)


@dataclass(frozen=True, slots=True)
class ListeningJudge:
    """The judge, with each of its judgements written down."""

    judge_of: Judge
    heard: Heard

    @property
    def name(self) -> str:
        return self.judge_of.name

    async def judge(self, context: JudgeContext) -> Opinion:
        opinion = await self.judge_of.judge(context)
        for number, claim in enumerate(context.claims, start=1):
            one = opinion.judgements.get(number)
            self.heard.judged.append(
                {
                    "claim": claim.text,
                    "supported": one.supported if one else None,
                    "lines": [str(line) for line in one.lines] if one else [],
                    "absent": one.absent if one else False,
                    "instead": one.instead if one else "",
                }
            )
        if opinion.reply:
            self.heard.judged.append({"reply": opinion.reply})
        return opinion


async def ask(engine: Engine, row: Row, number: int, state: ThreadState) -> tuple[Row, ThreadState]:
    """One question through the real agent."""
    heard = Heard()
    thread = ThreadKey(team="record", channel="record", thread_ts=str(row.get("thread") or row["id"]))
    question = Question(thread=thread, user="asker", text=row["question"], ts=f"{number}.000000")
    listening = replace(
        engine,
        budget=replace(engine.budget, deadline_s=PATIENT.reply),
        model=Listening(engine.model, heard),
        judge=ListeningJudge(engine.judge, heard) if engine.judge else None,
    )
    began = time.monotonic()
    outcome, after = await listening.run(question, state, emit=heard.event)
    return {
        **row,
        "outcome": outcome.name,
        "reason": outcome.reason if isinstance(outcome, Failed | Refused) else "",
        "text": outcome.answer.text,
        "verified": outcome.answer.verified,
        "seconds": round(time.monotonic() - began, 1),
        "calls": heard.calls,
        "attempts": heard.attempts,
        "judged": heard.judged,
        "sources": list(map(asdict, heard.sources.values())),
    }, after


async def record(rows: Sequence[Row], docs: Path, out: Path, at_once: int) -> None:
    """Every question, several conversations at once; each answer is written down as soon as it is there."""
    settings = load_settings()
    room = asyncio.Semaphore(at_once)
    conversations: Mapping[str, list[tuple[int, Row]]] = defaultdict(list)
    for number, row in enumerate(rows, start=1):
        conversations[str(row.get("thread") or row["id"])].append((number, row))
    timeouts = TurnTimeouts(model=PATIENT, judge=PATIENT)
    async with open_engine(settings, corpus_of(settings, [docs]), timeouts) as engine:
        with out.open("a", encoding="utf-8") as file:

            async def hold(turns: Sequence[tuple[int, Row]]) -> None:
                async with room:
                    state = ThreadState()
                    for number, row in turns:
                        answered, state = await ask(engine, row, number, state)
                        file.write(json.dumps(answered, ensure_ascii=False) + "\n")
                        file.flush()

            async with asyncio.TaskGroup() as group:
                for turns in conversations.values():
                    group.create_task(hold(turns), name="conversation")


def main() -> None:
    """The command."""
    options = argparse.ArgumentParser(prog="python -m tests.measure.record", description="Record a model's answers.")
    options.add_argument("questions", type=Path)
    options.add_argument("docs", type=Path)
    options.add_argument("out", type=Path)
    options.add_argument("--at-once", type=int, default=8)
    given = options.parse_args()
    rows = [json.loads(line) for line in given.questions.read_text(encoding="utf-8").splitlines() if line.strip()]
    asyncio.run(record(rows, given.docs, given.out, given.at_once))


if __name__ == "__main__":
    main()
