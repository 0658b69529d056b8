"""What comes of a model that errs: fifty handbook questions through the whole agent, with and without a judge.

`pytest tests/measure/test_erring_model.py -s` prints the table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from agent.budget import Budget
from agent.knowledge.index.sqlite import SqliteIndex
from agent.model.judge import Judge
from agent.outcome import Answered, Cancelled, TurnOutcome, outcome_name
from agent.thread.conversation import Question, ThreadKey
from agent.thread.state import ThreadState
from agent.tools.builtin.knowledge import knowledge_tools
from agent.turn.events import TurnEvent
from agent.turn.loop import run_turn
from tests.support.erring_model import KNOWN, ErringModel, KnowingJudge, Slip
from tests.support.paths import ROOT

HANDBOOK = ROOT / "bot/local/handbook"
SEEDS = ("one", "two", "three")
NEVER = (
    "number",
    "date",
    "time",
    "unit",
    "identifier",
    "missing citation",
    "wrong citation",
    "unknown citation",
    "invented link",
    "broadcast",
)
# What was measured on 2026-11-21, a little room added; rules alone first, then with a judge that errs one time in ten.
LEAST_VERIFIED = (0.8, 0.7)
MOST_WRONGED = (0, 5)
MOST_INVENTIONS = 2


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came of all turns of one run; ``through`` are the planted faults that a person got to see.

    ``wronged`` are the questions whose first draft was right and was not sent as it was.
    """

    turns: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    at_attempt: Counter[int] = field(default_factory=Counter)
    planted: Counter[str] = field(default_factory=Counter)
    through: Counter[str] = field(default_factory=Counter)
    seen: list[str] = field(default_factory=list)
    wronged: list[str] = field(default_factory=list)

    def passed_by(self, attempt: int) -> float:
        """The share of the turns that had a verified answer by this attempt."""
        return sum(count for number, count in self.at_attempt.items() if number <= attempt) / self.turns

    def count(self, question: str, outcome: TurnOutcome, slips: list[Slip]) -> None:
        self.turns += 1
        if not slips and not (isinstance(outcome, Answered) and outcome.answer.attempts == 1):
            self.wronged.append(question)
        self.outcomes[outcome_name(outcome)] += 1
        if isinstance(outcome, Answered):
            self.at_attempt[outcome.answer.attempts] += 1
        text = "" if isinstance(outcome, Cancelled) else outcome.answer.text
        uncited = "" if outcome_name(outcome) in {"refused", "failed"} else text  # those quote under the page's name
        for slip in slips:
            self.planted[slip.kind] += 1
            if _shows(_bare(uncited if slip.kind == "missing citation" else text), slip):
                self.through[slip.kind] += 1
                self.seen.append(f"{slip.kind}: {slip.after} in {text}")


def _bare(text: str) -> str:
    """The text without what only marks it up, so that a repaired sentence is still found."""
    return " ".join(re.sub(r"[*_`>|•\u200b]|&[lg]t;|<", " ", text).split())


def _shows(text: str, slip: Slip) -> bool:
    """Whether the spoilt sentence is there, and is more than the right one with its citation set right."""
    spoilt = _bare(slip.after)
    if slip.kind == "missing citation":
        return bool(re.search(re.escape(spoilt.rstrip(".")) + r"\.?(?! ?\[)", text))
    return spoilt in text


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteIndex]:
    index = SqliteIndex.open(tmp_path_factory.mktemp("erring") / "handbook.db")
    index.index([HANDBOOK], docs_url="http://127.0.0.1:8765/docs")
    yield index
    index.close()


def _unheard(_event: TurnEvent) -> None:
    """Nobody listens."""


async def run(index: SqliteIndex, *, judged: bool) -> Tally:
    tally = Tally()
    tools = {tool.spec.name: tool for tool in knowledge_tools(index)}
    for seed in SEEDS:
        model = ErringModel(seed)
        judge: Judge | None = KnowingJudge(seed) if judged else None
        for text in KNOWN:
            question = Question(thread=ThreadKey(team="T", channel="C", thread_ts="1"), user="U", text=text, ts="1")
            outcome, _ = await run_turn(
                question, ThreadState(), model=model, tools=tools, budget=Budget(), emit=_unheard, judge=judge
            )
            tally.count(text, outcome, model.memories[text].made)
    return tally


def shown(tally: Tally, title: str) -> str:
    """The table."""
    rates = ", ".join(f"{tally.passed_by(attempt):.1%}" for attempt in (1, 2, 3))
    kinds = [f"  {kind:17} {tally.planted[kind]:3} planted {tally.through[kind]:3} through" for kind in tally.planted]
    outcomes = ", ".join(f"{name} {count}" for name, count in tally.outcomes.most_common())
    wronged = f"  right first drafts that were not sent as they were: {len(tally.wronged)} {sorted(set(tally.wronged))}"
    head = f"{title}: {tally.turns} turns; verified after 1, 2, 3 attempts: {rates}; {outcomes}"
    return "\n".join([head, *sorted(kinds), wronged])


def test_f8_there_are_fifty_questions() -> None:
    assert len(KNOWN) == 50


@pytest.mark.parametrize("judged", [False, True], ids=["rules alone", "with a judge"])
async def test_f3_most_turns_end_verified_and_no_precise_fault_gets_through(index: SqliteIndex, judged: bool) -> None:  # noqa: FBT001 - a parameter of the test
    tally = await run(index, judged=judged)
    print("\n" + shown(tally, "with a judge" if judged else "rules alone"))  # noqa: T201 - the table is what -s is for
    assert {kind: tally.through[kind] for kind in NEVER} == dict.fromkeys(NEVER, 0), tally.seen
    assert tally.passed_by(1) < tally.passed_by(2) < tally.passed_by(3)
    assert tally.passed_by(3) > LEAST_VERIFIED[judged]
    assert len(tally.wronged) <= MOST_WRONGED[judged], tally.wronged
    assert set(tally.planted) >= {*NEVER, "invention"}
    if judged:
        assert tally.through["invention"] <= MOST_INVENTIONS
