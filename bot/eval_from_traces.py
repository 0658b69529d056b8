"""Questions that people really asked, as a file for `orion eval answers` once somebody has labelled it (G5).

Promises: one row a turn whose record is still kept (30 days), the id being that of its trace; what became of it and how
people judged it stand beside it. Must never guess a label: ``expect`` is left to a person, and `orion eval answers`
refuses a row without it. Writes people's words, so only where it is told to, and nobody's name.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from bot.turn_record import TurnRecords
from bot.wrong_use import WrongUse

OUTCOMES = ("answered", "partial", "unsourced", "asked", "refused", "failed", "out_of_budget")


async def read_rows(redis: Redis, *, prefix: str, outcomes: Collection[str], bad_only: bool) -> list[dict[str, Any]]:
    """A row for each turn that ended in one of ``outcomes`` (none: however it ended). Raises ``RedisError``."""
    rows = []
    async for record in _records(redis, TurnRecords(redis, prefix=prefix), prefix):
        judged = await _judged(redis, prefix, record["turn_id"])
        if (not outcomes or record["outcome"] in outcomes) and (judged["bad"] or not bad_only):
            rows.append(_row(record, judged))
    return rows


def write_rows(rows: Iterable[dict[str, Any]], out: Path) -> None:
    """One row a line. Raises ``WrongUse`` where the file is there already."""
    try:
        with out.open("x", encoding="utf-8", errors="replace") as lines:
            lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    except FileExistsError:
        message = f"{out} is there already, perhaps with labels. Name another file."
        raise WrongUse(message) from None


async def _records(redis: Redis, records: TurnRecords, prefix: str) -> AsyncIterator[dict[str, Any]]:
    """Every record that can be read and holds a question."""
    start = f"{prefix}:turn:"
    async for name in redis.scan_iter(match=f"{start}*", count=1000):
        record = await records.load(str(name).removeprefix(start))
        if isinstance(record, dict) and record.get("question") and {"turn_id", "outcome"} <= record.keys():
            yield record


async def _judged(redis: Redis, prefix: str, turn_id: str) -> Counter[str]:
    """How many people found the answer good and bad."""
    clicks: Any = redis.hvals(f"{prefix}:feedback:{turn_id}")
    return Counter(await clicks)


def _row(record: dict[str, Any], judged: Counter[str]) -> dict[str, Any]:
    sources = [source.get("title", "") for source in record.get("sources") or () if isinstance(source, dict)]
    return {
        "id": record["turn_id"],
        "question": record["question"],
        "kind": record["outcome"],
        "answer": record.get("answer", ""),
        "sources": sources,
        "judged": {"good": judged["good"], "bad": judged["bad"]},
    }
