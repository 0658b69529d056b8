"""The outbox of answers, and records of turns, which people look at later.

An answer is in the outbox before it is posted, so that after a crash only the delivery is repeated, not the turn.
Records contain texts, so never log them.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import TypeAdapter

from agent.json_data import compact_json, compress, decompress, mapping, objects, parse_json, string
from agent.outcome import OutcomeName, TurnOutcome
from agent.thread.conversation import Question, ThreadKey
from agent.thread.state import ThreadState, from_json, to_json
from agent.tools.builtin.knowledge import SLACK_SEARCH, permalinks_only, without_slack_text
from agent.turn.events import Done, ModelEnd, ModelStart, ToolEnd, ToolStart, TurnEvent, Verification
from bot.stores.passages import passages_of
from verification.evidence.verbatim import without_citations
from verification.markup.lines import split_cells
from verification.types import Answer, Claim, Source

if TYPE_CHECKING:  # `orion ask` records a turn and has no Redis: its client takes a tenth of a second to import
    from redis.asyncio import Redis

RECORD_TTL_S: Final = 30 * 86_400  # kept as long as a thread's state
MAX_LISTED: Final = 200  # maximum turns on a list for admins
_FAILED: Final = frozenset({"failed", "out_of_budget"})
_ANSWER: Final = TypeAdapter(Answer)
# Parts of an answer that its delivery does not need. Another version may name a rule that this one does not have.
_NOT_POSTED: Final[dict[str, Any]] = {"claims": (), "repairs": (), "violations": ()}
UNANSWERED: Final = _FAILED | {"refused"}


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
            "ms": round(self._add("verify", "verify"), 1), "repairs": list(map(asdict, verdict.repairs)),
            "violations": list(map(asdict, violations)), "objected": objected,
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
            "text": _text_of(claim),
            "cited": list(claim.cited),
            "passages": [
                {"source": n, "text": text, "marks": spans, "url": url, "title": title, "is_cut": is_cut}
                for n, text, spans, url, title, is_cut in passages_of(claim, answer.sources)
            ],
            "settled_by": claim.settled_by,
            "is_absent": claim.absent,
            # The judge finds that it states nothing, such as a greeting.
            "is_empty": claim.settled_by == "judge" and not (claim.lines or claim.absent),
        }
        for claim in (answer.claims if answer.verified else ())
    ]


def _text_of(claim: Claim) -> str:
    """Return the claim without citations, the cells of a row after the names of their columns."""
    text, names = without_citations(claim.text), split_cells(claim.head)
    if not claim.head or len(cells := split_cells(text)) != len(names):
        return text
    return " · ".join(f"{name}: {cell}" if name else cell for name, cell in zip(names, cells, strict=True) if cell)


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
        sources = tuple(map(without_slack_text, self.answer.sources))
        answer = replace(self.answer, sources=sources, **_NOT_POSTED)
        return compact_json({"outcome": self.outcome, "answer": answer, "state": to_json(self.state)})


def read_entry(stored: str | None) -> OutboxEntry | None:
    """Read an entry, or None if it is missing or unreadable."""
    if not stored:
        return None
    try:
        fields = parse_json(stored)
        answer = _ANSWER.validate_python(fields["answer"] | _NOT_POSTED)  # drops a newer version's fields
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
        """Save a person's complaint about an answer. The latest one counts."""
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
