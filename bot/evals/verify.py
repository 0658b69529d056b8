"""`orion verify --judge` and `--jsonl`: verdicts with a judge's opinion, and on a stream of rows (F11).

In a stream one bad row never stops the others.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import structlog
from pydantic import Field, TypeAdapter

from agent.model.judge import Judge, JudgeContext, Opinion
from agent.model.protocol import ModelError
from bot.errors import WrongUse
from bot.evals.files import json_of, same_file, verdict_json
from bot.evals.rows import Given, Row, Sources, Text, by_kind, checked, read_rows, share, sources_of
from verification.check import check
from verification.judgement import judged, key_of, open_claims
from verification.types import Draft, Verdict

# More than these fill a terminal and say nothing new: the file of verdicts names each.
_FIRST_FAULTS = 3
# A judge takes seconds to answer: so many rows wait for theirs together.
_AT_ONCE = 8
log = structlog.get_logger()


class TextRow(Given):
    """One row of a stream; its id may be anything and comes back with the verdict."""

    id: Any = None
    text: str
    question: Text = ""
    sources: Sources = Field(default_factory=list)


_TEXT_ROW: Final = TypeAdapter(TextRow)


async def verdict_on(draft: Draft, judge: Judge | None = None) -> Verdict:
    """The verdict. A judge is asked about every claim that the rules leave open (F5, F6)."""
    if judge is None or not draft.sources:  # without sources there is nothing that a judge could look into
        return check(draft)
    verdict = check(replace(draft, judged=True))
    claims = open_claims(verdict)
    if not claims:
        return verdict
    context = JudgeContext(question=draft.question, answer=verdict.text, claims=claims, sources=draft.sources)
    try:
        opinion = await judge.judge(context)
    except ModelError as failure:
        log.warning("judge_failed", error_type=failure.kind, reason=failure.detail)
        opinion = Opinion()
    said = {key_of(claim): opinion.judgements.get(number) for number, claim in enumerate(claims, 1)}
    return judged(verdict, said, draft.sources)


class Streamed(NamedTuple):
    """What became of a stream's rows. ``faults`` are the first few of those that got no verdict, with their lines."""

    answered: int
    failed: int
    faults: tuple[str, ...] = ()


async def verify_stream(rows: Path, out: Path, options: Draft, judge: Judge | None = None) -> Streamed:
    """One object a line in, one a line out, in the same order; memory does not grow with the rows.

    ``options`` is a draft that each row gives its text, question and sources to.
    """
    if same_file(rows, out):
        msg = f"{out} is read and cannot be written at the same time. Name another file for the verdicts."
        raise WrongUse(msg)
    answered = failed = 0
    faults: list[str] = []
    with _open(rows, "rb") as source, _open(out, "wb") as target:
        async for shown in _verdicts(source, options, judge):
            if fault := shown.get("error"):
                failed += 1
                faults += [fault] if failed <= _FIRST_FAULTS else []
            else:
                answered += 1
            target.write(json.dumps(shown, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    return Streamed(answered=answered, failed=failed, faults=tuple(faults))


async def _verdicts(source: IO[bytes], options: Draft, judge: Judge | None) -> AsyncIterator[dict[str, Any]]:
    """What each line gives. A few at once, where a judge is waited for."""
    numbered = ((number, line) for number, line in enumerate(source, 1) if line.strip())
    while some := list(islice(numbered, _AT_ONCE if judge else 1)):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_verify_row(line, number, options, judge)) for number, line in some]
        for task in tasks:
            yield task.result()


def told(streamed: Streamed, rows: Path, out: Path) -> str:
    """A sentence about the rows that got no verdict, for whoever waits; empty where each got one."""
    if not streamed.failed:
        return ""
    rest = streamed.failed - len(streamed.faults)
    shown = "".join(f"\n  {fault}" for fault in streamed.faults) + (f"\n  and {rest} more" if rest else "")
    head = f"{rows}: {streamed.failed} of {streamed.failed + streamed.answered} rows got no verdict:{shown}"
    return f"{head}\n{out} holds the verdicts of the others, and an 'error' for each of these."


async def _verify_row(line: bytes, number: int, options: Draft, judge: Judge | None) -> dict[str, Any]:
    place, identity = f"line {number}", None
    try:
        value = json_of(line, place)
        identity = value.get("id") if isinstance(value, Mapping) else None
        row = checked(_TEXT_ROW, value, place)
    except WrongUse as error:
        return {"id": identity, "error": str(error)}
    draft = replace(options, text=row.text, question=row.question, sources=sources_of(row.sources))
    return {"id": row.id, **verdict_json(await verdict_on(draft, judge))}


def _open(path: Path, mode: str) -> IO[bytes]:
    try:
        return path.open(mode)
    except OSError as error:
        msg = f"cannot open {path}: {error.strerror}"
        raise WrongUse(msg) from None


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
