"""`orion verify`: the verifier as a command, without Slack and Redis, and without a model unless one is asked (F11).

In a stream of rows one bad row never stops the others.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

import structlog
from pydantic import Field, TypeAdapter

from agent.model.judge import Judge, JudgeContext, Opinion
from agent.model.protocol import ModelError
from bot.errors import WrongUse
from bot.evals.rows import Given, Sources, Text, checked, json_of, read_sources, read_text, sources_of
from verification.check import check
from verification.judgement import judged, key_of, open_claims
from verification.types import Claim, Dialect, Draft, Source, Verdict

# More than these fill a terminal and say nothing new: the file of verdicts names each.
_FIRST_FAULTS = 3
# A judge takes seconds to answer: so many rows wait for theirs together.
_AT_ONCE = 8
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a text is judged: options of the command, the same for every row of a stream."""

    repair: bool = True
    dialect: Dialect = "mrkdwn"
    judge: Judge | None = None


class TextRow(Given):
    """One row of a stream; its id may be anything and comes back with the verdict."""

    id: Any = None
    text: str
    question: Text = ""
    sources: Sources = Field(default_factory=list)


_TEXT_ROW: Final = TypeAdapter(TextRow)


async def verify_file(file: str, *, question: str, sources: Path | None, terms: Terms) -> Verdict:
    """The verdict on a file, or on standard input where ``file`` is ``-``."""
    known = read_sources(sources) if sources else ()
    return await verdict_on(read_text(file), question=question, sources=known, terms=terms)


async def verdict_on(text: str, *, question: str, sources: tuple[Source, ...], terms: Terms) -> Verdict:
    """One text against its sources. A judge is asked about every claim that the rules leave open (F5, F6)."""
    draft = Draft(text=text, question=question, sources=sources, dialect=terms.dialect, repair=terms.repair)
    # Without sources there is nothing that a judge could look into.
    judge = terms.judge if sources else None
    verdict = check(replace(draft, judged=judge is not None))
    claims = open_claims(verdict)
    if judge is None or not claims:
        return verdict
    opinion = Opinion()
    try:
        opinion = await judge.judge(
            JudgeContext(question=question, answer=verdict.text, claims=claims, sources=sources)
        )
    except ModelError as failure:
        log.warning("judge_failed", error_type=failure.kind, reason=failure.detail)
    said = {key_of(claim): opinion.judgements.get(number) for number, claim in enumerate(claims, 1)}
    return judged(verdict, said, sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """What became of a stream's rows. ``faults`` are the first few of those that got no verdict, with their lines."""

    answered: int
    failed: int
    faults: tuple[str, ...] = ()


async def verify_stream(rows: Path, out: Path, terms: Terms) -> Streamed:
    """One object a line in, one a line out, in the same order; memory does not grow with the rows."""
    if same_file(rows, out):
        msg = f"{out} is read and cannot be written at the same time. Name another file for the verdicts."
        raise WrongUse(msg)
    answered = failed = 0
    faults: list[str] = []
    with _open(rows, "rb") as source, _open(out, "wb") as target:
        async for shown in _verdicts(source, terms):
            if fault := shown.get("error"):
                failed += 1
                faults += [fault] if failed <= _FIRST_FAULTS else []
            else:
                answered += 1
            target.write(json.dumps(shown, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    return Streamed(answered=answered, failed=failed, faults=tuple(faults))


async def _verdicts(source: IO[bytes], terms: Terms) -> AsyncIterator[dict[str, Any]]:
    """What each line gives. A few at once, where a judge is waited for."""
    numbered = ((number, line) for number, line in enumerate(source, 1) if line.strip())
    while some := list(islice(numbered, _AT_ONCE if terms.judge else 1)):
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_verify_row(line, number, terms)) for number, line in some]
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


def same_file(one: Path, other: Path) -> bool:
    """Whether both names lead to one regular file (opening it to write would empty it)."""
    return one.is_file() and other.is_file() and one.samefile(other)


async def _verify_row(line: bytes, number: int, terms: Terms) -> dict[str, Any]:
    place, identity = f"line {number}", None
    try:
        value = json_of(line, place)
        identity = value.get("id") if isinstance(value, Mapping) else None
        row = checked(_TEXT_ROW, value, place)
    except WrongUse as error:
        return {"id": identity, "error": str(error)}
    verdict = await verdict_on(row.text, question=row.question, sources=sources_of(row.sources), terms=terms)
    return {"id": row.id, **verdict_json(verdict)}


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict in the fields of the outside contract."""
    return {
        "passed": verdict.passed,
        "text": verdict.text,
        "chunks": list(verdict.chunks),
        "repairs": [asdict(repair) for repair in verdict.repairs],
        "violations": [asdict(violation) for violation in verdict.violations],
        "claims": [_claim_json(claim) for claim in verdict.claims],
    }


def _claim_json(claim: Claim) -> dict[str, Any]:
    fields = ("text", "start", "end", "supported", "settled_by")
    return {"cited": list(claim.cited), **{name: getattr(claim, name) for name in fields}}


def _open(path: Path, mode: str) -> IO[bytes]:
    try:
        return path.open(mode)
    except OSError as error:
        msg = f"cannot open {path}: {error.strerror}"
        raise WrongUse(msg) from None
