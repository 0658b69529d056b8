"""How often the verifier is wrong on labelled texts: what it should have stopped, what it should have let pass (F8)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from agent.model.judge import Judge
from bot.evals.rows import Row, Sources, Text, by_kind, read_rows, share, sources_of
from bot.evals.verify import verdict_on
from verification.judgement import open_claims
from verification.types import Draft


class LabelledText(Row):
    """A text, and whether it should pass."""

    text: str
    passes: bool
    question: Text = ""
    sources: Sources = Field(default_factory=list)
    kind: Text = ""


class Ruling(NamedTuple):
    """One labelled text and what became of it. ``rules`` are those that failed it; ``kind`` is the row's, or empty.

    ``open``: it holds a claim that only a judge could settle.
    """

    id: str
    passes: bool
    passed: bool
    rules: tuple[str, ...] = ()
    kind: str = ""
    open: bool = False


async def evaluate_verifier(paths: Sequence[Path], judge: Judge | None = None) -> list[dict[str, Any]]:
    """One report per file, in order. Raises ``WrongUse`` for a line that is no row."""
    return [
        {"file": path.name, **scored([await _ruling(row, judge) for row in read_rows(path, LabelledText)])}
        for path in paths
    ]


def scored(rulings: Sequence[Ruling]) -> dict[str, Any]:
    """False accepts and false rejects, counted, as shares of what should fail and what should pass, and by kind."""
    accepted = [ruling for ruling in rulings if ruling.passed and not ruling.passes]
    rejected = [ruling for ruling in rulings if ruling.passes and not ruling.passed]
    passing = sum(ruling.passes for ruling in rulings)
    return {
        "rows": len(rulings),
        "should_pass": passing,
        "should_fail": len(rulings) - passing,
        "false_accepts": len(accepted),
        "false_rejects": len(rejected),
        "false_accept_rate": share(len(accepted), len(rulings) - passing),
        "false_reject_rate": share(len(rejected), passing),
        "false_accepts_open": sum(ruling.open for ruling in accepted),
        "accepted": [ruling.id for ruling in accepted],
        "rejected": [{"id": ruling.id, "rules": list(ruling.rules)} for ruling in rejected],
        "kinds": {
            kind: {
                "rows": len(each),
                "false_accepts": sum(ruling in accepted for ruling in each),
                "false_rejects": sum(ruling in rejected for ruling in each),
            }
            for kind, each in by_kind(rulings, attrgetter("kind")).items()
        },
    }


async def _ruling(row: LabelledText, judge: Judge | None) -> Ruling:
    draft = Draft(text=row.text, question=row.question, sources=sources_of(row.sources))
    verdict = await verdict_on(draft, judge)
    return Ruling(
        id=row.id,
        passes=row.passes,
        passed=verdict.passed,
        rules=tuple(sorted({error.rule for error in verdict.errors})),
        kind=row.kind,
        open=bool(open_claims(verdict)),
    )
