"""How often the verifier is wrong on labelled texts: what it should have stopped, what it should have let pass (F8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from agent.model.judge import Judge
from bot.evals.rows import Row, Sources, Text, read_rows, share, sources_of
from bot.evals.verify import Terms, verdict_on
from verification.judgement import open_claims


class LabelledText(Row):
    """A text, and whether it should pass."""

    text: str
    passes: bool
    question: Text = ""
    sources: Sources = Field(default_factory=list)
    kind: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
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
    terms = Terms(judge=judge)
    return [
        {"file": path.name, **scored([await _ruling(row, terms) for row in read_rows(path, LabelledText)])}
        for path in paths
    ]


def scored(rulings: Sequence[Ruling]) -> dict[str, Any]:
    """False accepts and false rejects, counted, as shares of what should fail and what should pass, and by kind."""
    accepted, rejected = _wrong(rulings)
    passing = sum(1 for ruling in rulings if ruling.passes)
    return {
        "rows": len(rulings),
        "should_pass": passing,
        "should_fail": len(rulings) - passing,
        "false_accepts": len(accepted),
        "false_rejects": len(rejected),
        "false_accept_rate": share(len(accepted), len(rulings) - passing),
        "false_reject_rate": share(len(rejected), passing),
        "false_accepts_open": sum(1 for ruling in accepted if ruling.open),
        "accepted": [ruling.id for ruling in accepted],
        "rejected": [{"id": ruling.id, "rules": list(ruling.rules)} for ruling in rejected],
        "kinds": _kinds(rulings),
    }


def _kinds(rulings: Sequence[Ruling]) -> dict[str, dict[str, int]]:
    named: dict[str, list[Ruling]] = {}
    for ruling in rulings:
        if ruling.kind:
            named.setdefault(ruling.kind, []).append(ruling)
    return {
        kind: dict(zip(("rows", "false_accepts", "false_rejects"), (len(each), *map(len, _wrong(each))), strict=True))
        for kind, each in sorted(named.items())
    }


def _wrong(rulings: Iterable[Ruling]) -> tuple[list[Ruling], list[Ruling]]:
    """What passed and should not have, and what failed and should not have."""
    accepted: list[Ruling] = []
    rejected: list[Ruling] = []
    for ruling in rulings:
        if ruling.passed != ruling.passes:
            (accepted if ruling.passed else rejected).append(ruling)
    return accepted, rejected


async def _ruling(row: LabelledText, terms: Terms) -> Ruling:
    verdict = await verdict_on(row.text, question=row.question, sources=sources_of(row.sources), terms=terms)
    return Ruling(
        id=row.id,
        passes=row.passes,
        passed=verdict.passed,
        rules=tuple(sorted({error.rule for error in verdict.errors})),
        kind=row.kind,
        open=bool(open_claims(verdict)),
    )
