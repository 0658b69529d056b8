"""Verdicts with a judge's opinion (`orion verify --judge`), on a stream of rows (`--jsonl`), and on labelled texts."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

import structlog
from pydantic import Field, TypeAdapter

from agent.model.protocol import Judge, JudgeContext, ModelError, Opinion
from bot.errors import WrongUse
from bot.evals.files import json_of, same_file, verdict_json
from bot.evals.rows import Given, Row, Sources, Text, by_kind, read_rows, share, sources_of, validate
from verification.check import check
from verification.judgement import apply_judgements, claim_key, claims_to_judge, open_claims
from verification.types import Draft, Verdict

# Maximum rows that wait for a judge at the same time; it takes seconds to answer.
_AT_ONCE = 8
log = structlog.get_logger()


class TextRow(Given):
    """A text to verify; its id may be any value and is returned with the verdict."""

    id: Any = None
    text: str
    question: Text = ""
    sources: Sources = Field(default_factory=list)

    def draft(self, options: Draft) -> Draft:
        """Return the options with the row's own text, question and sources."""
        return replace(options, text=self.text, question=self.question, sources=sources_of(self.sources))


class LabelledText(Row, TextRow):
    """A text, with a label that says whether it should pass."""

    passes: bool
    kind: Text = ""


_TEXT_ROW: Final = TypeAdapter(TextRow)


async def verdict_on(
    draft: Draft, judge: Judge | None = None, count_tokens: Callable[[int], None] = lambda _: None
) -> Verdict:
    """Return the verdict. A judge decides every claim that the rules leave open; ``count_tokens`` gets its tokens."""
    if judge is None or not draft.sources:  # without sources there is nothing to judge
        return await asyncio.to_thread(check, draft)
    verdict = await asyncio.to_thread(check, replace(draft, has_judge=True))
    claims = claims_to_judge(verdict)
    if not claims:
        return verdict
    context = JudgeContext(question=draft.question, answer=verdict.text, claims=claims, sources=draft.sources)
    try:
        opinion = await judge.judge(context)
        count_tokens(opinion.usage.tokens)
    except ModelError as failure:
        log.warning("judge_failed", error_type=failure.kind, reason=failure.detail)
        opinion = Opinion()  # a judge that did not answer confirms nothing: open claims fail
    said = {claim_key(claim): opinion.judgements.get(number) for number, claim in enumerate(claims, 1)}
    return apply_judgements(verdict, said, draft.sources)


async def verify_stream(rows: Path, out: Path, options: Draft, judge: Judge | None = None) -> str:
    """Write one verdict per line, in order, in constant memory. Return a sentence about rows without one, or None."""
    if same_file(rows, out):
        raise WrongUse(why=f"{out} is read and cannot be written at the same time. Name another file for the verdicts.")
    count = failed = 0
    with _open(rows, "rb") as source, _open(out, "wb") as target:
        async for shown in _verdicts(source, options, judge):
            count += 1
            failed += "error" in shown
            target.write(json.dumps(shown, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    about = f"{rows}: {failed} of {count} rows got no verdict. {out} has the others', and an 'error' for each of these."
    return about if failed else ""


async def _verdicts(source: IO[bytes], options: Draft, judge: Judge | None) -> AsyncIterator[dict[str, Any]]:
    """Yield the verdict of each line; with a judge, a few concurrently."""
    numbered = ((number, line) for number, line in enumerate(source, 1) if line.strip())
    while some := list(islice(numbered, _AT_ONCE if judge else 1)):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_verify_row(line, number, options, judge)) for number, line in some]
        for task in tasks:
            yield task.result()


async def _verify_row(line: bytes, number: int, options: Draft, judge: Judge | None) -> dict[str, Any]:
    place, identity = f"line {number}", None
    try:
        value = json_of(line, place)
        identity = value.get("id") if isinstance(value, Mapping) else None
        row = validate(_TEXT_ROW, value, place)
    except WrongUse as error:
        return {"id": identity, "error": str(error)}
    return {"id": row.id, **verdict_json(await verdict_on(row.draft(options), judge))}


def _open(path: Path, mode: str) -> IO[bytes]:
    try:
        return path.open(mode)
    except OSError as error:
        raise WrongUse(why=f"cannot open {path}: {error.strerror}") from None


async def evaluate_verifier(paths: Sequence[Path], judge: Judge | None = None) -> list[dict[str, Any]]:
    """Return a report for each file. Raises ``WrongUse`` for a line that is not a row."""
    reports, options = [], Draft(text="")
    for path in paths:
        rows = read_rows(path, LabelledText)
        report = count_errors([(row, await verdict_on(row.draft(options), judge)) for row in rows])
        reports.append({"file": path.name, **report})
    return reports


def count_errors(rulings: Sequence[tuple[LabelledText, Verdict]]) -> dict[str, Any]:
    """Count false accepts and false rejects, as numbers, as shares, and by kind."""
    accepted = [row for row, verdict in rulings if verdict.passed and not row.passes]
    rejected = [(row, verdict) for row, verdict in rulings if row.passes and not verdict.passed]
    wrong = {"false_accepts": accepted, "false_rejects": [row for row, _ in rejected]}
    passing = sum(row.passes for row, _ in rulings)
    return {
        "rows": len(rulings),
        "should_pass": passing,
        "should_fail": len(rulings) - passing,
        **{name: len(found) for name, found in wrong.items()},
        "false_accept_rate": share(len(accepted), len(rulings) - passing),
        "false_reject_rate": share(len(rejected), passing),
        "false_accepts_open": sum(bool(open_claims(v)) for row, v in rulings if v.passed and not row.passes),
        "accepted": [row.id for row in accepted],
        "rejected": [{"id": row.id, "rules": sorted({e.rule for e in verdict.errors})} for row, verdict in rejected],
        "kinds": {
            kind: {"rows": len(each)} | {name: sum(row.kind == kind for row in found) for name, found in wrong.items()}
            for kind, each in by_kind(rulings, lambda ruling: ruling[0].kind).items()
        },
    }
