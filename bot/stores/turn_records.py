"""The outbox of answers, and records of turns with the passages behind each claim, which people look at later.

An answer is in the outbox before it is posted, so that after a crash only the delivery is repeated, not the turn.
Records contain texts, so never log them.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from agent.json_data import compact_json, compress, decompress, mapping, objects, parse_json, string
from agent.outcome import OutcomeName, TurnOutcome
from agent.thread.conversation import Question, ThreadKey
from agent.thread.state import ThreadState, from_json, to_json
from agent.tools.builtin.knowledge import SLACK_SEARCH, permalinks_only, without_slack_text
from agent.turn.events import Done, ModelEnd, ModelStart, ToolEnd, ToolStart, TurnEvent, Verification
from verification.evidence.verbatim import (
    MAX_PASSAGE,
    Span,
    highlight_shared_words,
    is_quoted,
    shorten_row,
    text_as_read,
    without_citations,
)
from verification.judgement import Line
from verification.markup.lines import is_delimiter, source_lines, split_cells, strip_marks
from verification.markup.scanner import segments
from verification.types import Answer, Claim, Repair, Source, Violation

if TYPE_CHECKING:  # `orion ask` records a turn and has no Redis: its client takes a tenth of a second to import
    from redis.asyncio import Redis

RECORD_TTL_S: Final = 30 * 86_400  # kept as long as a thread's state
MAX_LISTED: Final = 200  # maximum turns on a list for admins
MAX_PASSAGES: Final = 4
_MIN_ROW: Final = 120  # characters to show of a row at least
_MAX_QUOTED_LINES: Final = 4  # a quotation may run over a few wrapped lines
_ADDRESS: Final = re.compile(r"<(https?://[^|>\s]+)")
_PAIRED: Final = re.compile(r"\*\*|(?<!\w)__(?=\w)|(?<=\S)__(?!\w)")
# The chunks of a table with long rows have each row as "column: cell; column: cell".
_FACT: Final = re.compile(r"(?:^|; )([^;:\n]{1,80}): (.*?)(?=; [^;:\n]{1,80}: |$)")
_BLANKS: Final = re.compile(r"(?<=\S)[ \t]{2,}")
_FAILED: Final = frozenset({"failed", "out_of_budget"})
UNANSWERED: Final = _FAILED | {"refused"}


class NamedPassage(NamedTuple):
    """Lines of a source, and the spans of words that they share with the claim (``marks`` in stored records)."""

    source: int
    text: str
    highlights: tuple[Span, ...]


def passages_of(claim: Claim, sources: Sequence[Source]) -> list[NamedPassage]:
    """Return the passages behind a claim, at most ``MAX_PASSAGES``; a table row comes with the table's head."""
    pages = {source.id: source_lines(source) for source in sources}
    words = text_as_read(without_citations(claim.text))  # the claim is a part of the chunk that Slack gets
    named = _ADDRESS.findall(claim.text) if claim.settled_by == "judge" else ()
    lines: Iterable[Line] = claim.lines if claim.settled_by == "judge" else ()
    if claim.settled_by == "quotation":
        lines = [(number, line) for number in claim.cited for line in _quoted_lines(words, pages.get(number, ()))]
    known = sorted({(source, line) for source, line in lines if 0 <= line < len(pages.get(source, ()))})
    heads = {(source, line): _head_of(pages[source], line) for source, line in known}
    above_rows = {(source, head) for (source, _), head in heads.items() if head}
    runs: list[list[Line]] = []
    for source, line in known:
        text, head = pages[source][line], heads[source, line]
        if is_delimiter(text) or (source, text) in above_rows:
            continue
        before = runs[-1][-1] if runs else (0, 0)
        joins = source == before[0] and heads[before] == head and (head or (before[1] == line - 1 and line > 1))
        if joins:
            runs[-1].append((source, line))
        else:
            runs.append([(source, line)])
    return [_passage(words, named, run, pages[run[0][0]], heads[run[0]]) for run in runs[:MAX_PASSAGES]]


def _head_of(page: Sequence[str], line: int) -> str:
    """Return the head of the table that a line is a row of, or "". Parts of a long table follow each other."""
    above = line
    while above > 1 and "|" in page[above] and not is_delimiter(page[above]):
        above -= 1
    is_row = 1 < above < line and is_delimiter(page[above]) and not any(map(is_delimiter, page[line + 1 : line + 2]))
    return page[above - 1] if is_row else ""


def _passage(words: str, named: Sequence[str], run: Sequence[Line], page: Sequence[str], head: str) -> NamedPassage:
    """Return the lines as a page shows them, rows with their head; a long row has its columns' names in it instead.

    A link that the claim names is shown with its address.
    """
    text = "\n".join(page[line] for _, line in run)
    for address in named:
        text = text.replace(f"]({address})", f"]({address}) ({address})")
    lines = text.split("\n")
    if head:
        columns, *rows = ([_cell_as_read(cell) for cell in split_cells(line)] for line in (head, *lines))
        text = "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, *rows))
        facts = [list(zip_longest(columns, cells, fillvalue="")) for cells in rows]
    else:
        text = _as_read(text)
        facts = [[(name, _cell_as_read(cell)) for name, cell in _FACT.findall(line)] for line in lines]
    if len(text) > MAX_PASSAGE and all(len(row) > 1 for row in facts):
        room = max(MAX_PASSAGE // len(facts), _MIN_ROW)
        text = "\n".join(shorten_row(words, row, room) for row in facts)
    highlighted = highlight_shared_words(words, text)
    return NamedPassage(run[0][0], highlighted.text, highlighted.spans)


def _as_read(text: str) -> str:
    """Return the text as a page shows it, without marks of emphasis and of code."""
    text = text_as_read(text)
    parts = ((kind, text[start:end].replace("`", "")) for kind, start, end in segments(text))
    shown = (strip_marks(_PAIRED.sub("", part)) if kind == "text" else part for kind, part in parts)
    return _BLANKS.sub(" ", "".join(shown))


def _cell_as_read(text: str) -> str:
    return _as_read(f"|{text}").replace("\n", " ").removeprefix("|")  # a ">" or "#" at its beginning is no mark


def _quoted_lines(words: str, page: Sequence[str]) -> range:
    """Return the numbers of the lines that contain the quoted words; a row of a drawn table matches by its cells."""
    parts = [cell for cell in split_cells(words) if cell] if "|" in words else [words]
    for count in range(1, _MAX_QUOTED_LINES + 1):
        for first in range(1, len(page) - count + 1):
            place = text_as_read(" ".join(page[first : first + count]))
            if all(is_quoted(part, [place], exactly=False) for part in parts):
                return range(first, first + count)
    return range(0)


@dataclass(slots=True)
class Recorder:
    """Records the events and timings of one turn; ``last_s`` is the duration of the latest call in seconds."""

    clock: Callable[[], float] = time.monotonic
    attempts: list[dict[str, Any]] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    _since: dict[str, float] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    last_s: float = 0.0
    _keeps_found: bool = True

    def __call__(self, event: TurnEvent) -> None:
        """Record one event."""
        match event:
            case ModelStart(phase=phase, call_id=call_id):
                self._since[f"{phase} {call_id}"] = self.clock()
            case ToolStart(call=call):
                self._since[call.call_id] = self.clock()
                self._keeps_found = self._keeps_found and call.tool != SLACK_SEARCH
            case ModelEnd(phase=phase, call_id=call_id):
                self._add(phase, f"{phase} {call_id}")
                self._since["verify"] = self.clock()
            case ToolEnd(result=result):
                self._add("search" if result.tool == "search" else "tools", result.call_id)
            case Verification():
                self._add_attempt(event)
            case Done(usage=usage):
                self.usage = {**asdict(usage), "tokens": usage.tokens}
            case _:
                pass

    @property
    def timings_ms(self) -> dict[str, float]:
        """Milliseconds by part of the turn."""
        return {name: round(value, 1) for name, value in self.timings.items()}

    def _add(self, name: str, since: str) -> float:
        now = self.clock()
        self.last_s = now - self._since.get(since, now)
        self.timings[name] = self.timings.get(name, 0.0) + self.last_s * 1000
        return self.last_s * 1000

    def _add_attempt(self, event: Verification) -> None:
        verdict = event.verdict
        violations = verdict.violations
        if not self._keeps_found:  # details and remedies may quote a source
            violations = tuple(replace(violation, detail="", remedy="") for violation in violations)
        objected = [  # the sentences with an error
            {"text": without_citations(claim.text), "rule": error.rule}
            for claim in verdict.claims
            for error in verdict.errors
            if claim.start <= error.start < claim.end
        ]
        self.attempts.append({
            "attempt": event.attempt, "draft": event.draft, "passed": verdict.passed,
            "ms": round(self._add("verify", "verify"), 1), "repairs": json_of(verdict.repairs),
            "violations": json_of(violations), "objected": objected,
        })  # fmt: skip

    def record(self, question: Question, outcome: TurnOutcome, *, turn_id: str, model: str) -> dict[str, Any]:
        """Return the whole turn as JSON-ready values."""
        answer = outcome.answer
        shortened = replace(answer, sources=permalinks_only(answer.sources))
        fields = zip(sources_json(shortened), shortened.sources, strict=True)
        return {
            "turn_id": turn_id, "thread": str(question.thread), "user": question.user, "question": question.text,
            "outcome": outcome.name, "verified": answer.verified, "answer": answer.text, "model": model,
            "attempts": self.attempts, "timings_ms": self.timings_ms, "claims": claims_json(shortened),
            # includes the fields that decide who may see a source
            "sources": [{**known, "origin": source.origin, "audience": source.audience} for known, source in fields],
            "usage": self.usage,
        }  # fmt: skip


def claims_json(answer: Answer) -> list[dict[str, Any]]:
    """Return each claim of a verified answer with the passages from its verdict, and who checked it."""
    return [
        {
            "text": without_citations(claim.text),
            "cited": list(claim.cited),
            "passages": [
                {"source": n, "text": text, "marks": spans} for n, text, spans in passages_of(claim, answer.sources)
            ],
            "settled_by": claim.settled_by,
        }
        for claim in (answer.claims if answer.verified else ())
    ]


def json_of(values: Sequence[Repair | Violation]) -> list[dict[str, Any]]:
    """Return repairs or violations with the field names of the public contract."""
    return [asdict(one) for one in values]


def sources_json(answer: Answer, *, text: bool = False) -> list[dict[str, Any]]:
    """Return the answer's sources, with their texts if ``text`` is set."""
    fields = ("id", "title", "url", "updated_at", *(("text",) if text else ()))
    return [{name: getattr(source, name) for name in fields} for source in answer.sources]


def sources_of(record: Mapping[str, Any]) -> list[Source]:
    """Return the sources of a record. A record of an older version may have fewer fields."""
    return [
        Source(
            id=source["id"] if isinstance(source.get("id"), int) else 0,
            title=string(source, "title"),
            url=string(source, "url"),
            updated_at=string(source, "updated_at"),
            origin=string(source, "origin") or "document",
            audience=string(source, "audience") or "public",
        )
        for source in objects(record, "sources")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEntry:
    """One turn's outcome, its answer, and the thread's state afterwards."""

    outcome: OutcomeName
    answer: Answer
    state: ThreadState

    def to_json(self) -> str:
        """One line for ``read_entry``."""
        answer = replace(self.answer, sources=tuple(map(without_slack_text, self.answer.sources)), claims=())
        return compact_json({"outcome": self.outcome, "answer": answer, "state": to_json(self.state)})


def read_entry(stored: str | None) -> OutboxEntry | None:
    """Read an entry, or None if it is missing or unreadable."""
    if not stored:
        return None
    try:
        fields = parse_json(stored)
        kept = fields["answer"]
        answer = Answer(**{
            **kept, "chunks": tuple(kept["chunks"]), "claims": (),
            "sources": tuple(Source(**source) for source in kept["sources"]),
            "repairs": tuple(Repair(**repair) for repair in kept["repairs"]),
            "violations": tuple(Violation(**violation) for violation in kept["violations"]),
        })  # fmt: skip
        return OutboxEntry(outcome=fields["outcome"], answer=answer, state=from_json(fields["state"]))
    except (ValueError, KeyError, TypeError):
        return None


@dataclass(frozen=True, slots=True)
class TurnRecords:
    """Records in Redis, by turn id."""

    redis: Redis
    prefix: str = "orion"

    def key(self, turn_id: str) -> str:
        """Redis key of one record."""
        return f"{self.prefix}:turn:{turn_id}"

    async def save(self, record: dict[str, Any]) -> None:
        """Save a record, which is kept as long as its thread's state."""
        text = compact_json(record)
        # compressed it is half as long
        await self.redis.set(self.key(record["turn_id"]), compress(text), ex=RECORD_TTL_S)
        if record.get("outcome") in _FAILED:
            await self._add_to_list("failed", record["turn_id"])

    async def save_feedback(self, turn_id: str, user: str, *, good: bool) -> bool:
        """Save a person's rating of an answer; the last one counts. Return whether it is the answer's first dislike."""
        await self._save_value("feedback", turn_id, user, "good" if good else "bad")
        return not good and await self._add_to_list("disliked", turn_id)

    async def scan(self) -> AsyncIterator[dict[str, Any]]:
        """Yield every record with a question, in any order, with ``at``: its time in seconds since 1970."""
        start = self.key("")
        async for name in self.redis.scan_iter(match=f"{start}*", count=1000):
            record = await self.load(str(name).removeprefix(start))
            if record and record.get("question") and {"turn_id", "outcome"} <= record.keys():
                left_ms = await self.redis.pttl(name)  # all are stored for the same time
                yield {**record, "at": time.time() - RECORD_TTL_S + left_ms / 1000}

    async def judgements(self, record: Mapping[str, Any]) -> list[str]:
        """Return each person's rating of an answer, ``good`` or ``bad``."""
        return await self._load_values("feedback", record)

    async def complaints(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return each person's complaint about an answer: ``reasons`` and ``said``."""
        found = []
        for words in await self._load_values("complaint", record):
            with suppress(ValueError):  # a damaged one
                fields = parse_json(words)
                reasons = mapping(fields).get("reasons")
                found.append({"reasons": reasons if isinstance(reasons, list) else [], "said": string(fields, "said")})
        return found

    async def save_complaint(self, turn_id: str, user: str, *, reasons: Sequence[str], said: str) -> None:
        """Save a person's complaint about an answer; the last one counts."""
        words = json.dumps({"reasons": list(reasons), "said": said}, ensure_ascii=False)
        await self._save_value("complaint", turn_id, user, words)

    async def list_disliked(self, most: int) -> list[dict[str, Any]]:
        """Return the records of the latest disliked verified answers, with ``complaints`` and ``at``."""
        disliked: list[dict[str, Any]] = []
        for record in await self.list_latest("disliked", MAX_LISTED):
            if len(disliked) < most and record.get("verified") is True and "bad" in await self.judgements(record):
                disliked.append({**record, "complaints": await self.complaints(record)})
        return disliked

    async def _load_values(self, kind: str, record: Mapping[str, Any]) -> list[str]:
        values: Any = self.redis.hvals(f"{self.prefix}:{kind}:{record['turn_id']}")
        return list(map(str, await values))

    async def _save_value(self, kind: str, turn_id: str, user: str, value: str) -> None:
        key = f"{self.prefix}:{kind}:{turn_id}"
        async with self.redis.pipeline(transaction=True) as pipe:
            pipe.hset(key, user, value)
            pipe.expire(key, RECORD_TTL_S)
            await pipe.execute()

    async def _add_to_list(self, kind: str, turn_id: str) -> bool:
        """Add a turn's id and time to a list. Return whether it was not there yet."""
        key = f"{self.prefix}:latest:{kind}"
        async with self.redis.pipeline(transaction=True) as pipe:
            pipe.zadd(key, {turn_id: time.time()})
            pipe.zremrangebyrank(key, 0, -MAX_LISTED - 1)
            pipe.expire(key, RECORD_TTL_S)
            return bool((await pipe.execute())[0])

    async def list_latest(self, kind: Literal["disliked", "failed"], most: int) -> list[dict[str, Any]]:
        """Return the records on a list, newest first, with ``at`` in seconds since 1970; expired ones are skipped."""
        listed: Any = self.redis.zrevrange(f"{self.prefix}:latest:{kind}", 0, -1, withscores=True)
        records = [(await self.load(str(turn_id)), at) for turn_id, at in await listed]
        return [{**record, "at": at} for record, at in records if record is not None][:most]

    async def claim_share(self, turn_id: str) -> bool:
        """Return whether this answer was not shared before, and record that it is now."""
        return bool(await self.redis.set(f"{self.prefix}:share:{turn_id}", "1", nx=True, ex=RECORD_TTL_S))

    async def release_share(self, turn_id: str) -> None:
        """Forget a share that could not be posted, so that the next click counts."""
        await self.redis.delete(f"{self.prefix}:share:{turn_id}")

    async def load_for(self, turn_id: str, place: ThreadKey) -> dict[str, Any] | None:
        """Return the record of a turn in this channel, or None if it is gone or belongs to another channel or team."""
        record = await self.load(turn_id) if turn_id else None
        return record if string(record, "thread").startswith(f"{place.team}:{place.channel}:") else None

    async def load(self, turn_id: str) -> dict[str, Any] | None:
        """Return a record, or None if it is missing or expired."""
        stored = await self.redis.get(self.key(turn_id))
        try:
            record = parse_json(decompress(str(stored))) if stored else None
        except ValueError:
            return None
        return {**record, "turn_id": turn_id} if isinstance(record, dict) else None
