"""`orion verify`: the verifier as a command, without Slack and Redis, and without a model unless one is asked (F11).

In a stream of rows one bad row never stops the others.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

import structlog

from agent.model.judge import Judge, JudgeContext, Opinion
from agent.model.protocol import ModelError
from bot.errors import WrongUse
from verification.check import check
from verification.judgement import judged, key_of, open_claims
from verification.types import Claim, Dialect, Draft, Source, Verdict

_FIRST_FAULTS = 3
_AT_ONCE = 8
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a text is judged: options of the command, the same for every row of a stream."""

    repair: bool = True
    dialect: Dialect = "mrkdwn"
    judge: Judge | None = None


async def verify_file(file: str, *, question: str, sources: Path | None, terms: Terms) -> Verdict:
    """The verdict on a file, or on standard input where ``file`` is ``-``."""
    known = parse_sources(read_json(sources), name=str(sources)) if sources else ()
    return await verdict_on(read_text(file), question=question, sources=known, terms=terms)


async def verdict_on(text: str, *, question: str, sources: tuple[Source, ...], terms: Terms) -> Verdict:
    """One text against its sources. A judge is asked about every claim that the rules leave open (F5, F6)."""
    draft = Draft(text=text, question=question, sources=sources, dialect=terms.dialect, repair=terms.repair)
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
    row: Any = None
    try:
        row = parse_json(line.decode("utf-8-sig"))
        text, question = _text_of(row, "text"), _text_of(row, "question", default="")
        given = row.get("sources")
        sources = parse_sources([] if given is None else given, name="sources")
    except ValueError:
        return {"id": None, "error": f"line {number} is no JSON object"}
    except WrongUse as error:
        identity = row.get("id") if isinstance(row, Mapping) else None
        return {"id": identity, "error": f"line {number}: {error}"}
    verdict = await verdict_on(text, question=question, sources=sources, terms=terms)
    return {"id": row.get("id"), **verdict_json(verdict)}


def _text_of(row: Any, name: str, *, default: str | None = None) -> str:
    if not isinstance(row, Mapping):
        msg = "the row is no JSON object"
        raise WrongUse(msg)
    value = row.get(name, default)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        msg = f"'{name}' must be a text"
        raise WrongUse(msg)
    return value


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


def parse_sources(raw: Any, *, name: str) -> tuple[Source, ...]:
    """A list of ``{id, title, url, text}`` as sources; raises ``WrongUse`` with what is wrong and where."""
    if not isinstance(raw, list):
        msg = f"{name}: sources must be a list of objects with id, title, url and text"
        raise WrongUse(msg)
    sources = tuple(_source(item, f"{name}, source {number}") for number, item in enumerate(raw, 1))
    numbers = [source.id for source in sources]
    if twice := next((number for number in numbers if numbers.count(number) > 1), None):
        msg = f"{name}: two sources have the id {twice}, so [{twice}] could mean either"
        raise WrongUse(msg)
    return sources


def _source(raw: Any, name: str) -> Source:
    if not isinstance(raw, Mapping):
        msg = f"{name} is no object with id, title, url and text"
        raise WrongUse(msg)
    number = raw.get("id")
    if isinstance(number, bool) or not isinstance(number, int):
        msg = f"{name}: 'id' must be a whole number"
        raise WrongUse(msg)
    texts = {field: raw.get(field) or "" for field in ("title", "url", "text", "updated_at")}
    wrong = next((field for field, value in texts.items() if not isinstance(value, str)), None)
    if wrong:
        msg = f"{name}: '{wrong}' must be a text"
        raise WrongUse(msg)
    if not texts["text"].strip():
        msg = f"{name} has no 'text': without it nothing that cites the source can be verified"
        raise WrongUse(msg)
    return Source(id=number, **texts)


def read_text(file: str) -> str:
    """A file's text, or standard input's for ``-``. Raises ``WrongUse`` for bytes that are no text in UTF-8."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        msg = f"cannot read {file}: {error.strerror}"
        raise WrongUse(msg) from None
    name = "Standard input" if file == "-" else file
    if b"\0" in data:
        msg = f"{name} is not text: byte {data.index(0)} is 0. Name a text file in UTF-8."
        raise WrongUse(msg)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"{name} is not text in UTF-8: byte {error.start} fits nowhere. Save it as UTF-8, or name a text file."
        raise WrongUse(msg) from None


def parse_json(text: str) -> Any:
    """The value of strict JSON (no NaN). Raises ``ValueError``, also for lists nested beyond any use."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        msg = "it is nested too deeply"
        raise ValueError(msg) from None


def _no_constant(name: str) -> None:
    msg = f"{name} is no JSON value"
    raise ValueError(msg)


def read_json(path: Path) -> Any:
    """A JSON file's value."""
    try:
        return parse_json(read_text(str(path)))
    except ValueError as error:
        msg = f"{path} is no JSON: {error}"
        raise WrongUse(msg) from None


def _open(path: Path, mode: str) -> IO[bytes]:
    try:
        return path.open(mode)
    except OSError as error:
        msg = f"cannot open {path}: {error.strerror}"
        raise WrongUse(msg) from None
