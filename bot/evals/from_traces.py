"""Writes people's questions of the last 30 days, without names of people or channels, to a file for labelling."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from redis.asyncio import Redis

from bot.errors import WrongUse
from bot.stores.turn_records import TurnRecords

OUTCOMES = ("answered", "partial", "unsourced", "asked", "refused", "failed", "out_of_budget")
MAX_BEFORE: Final = 5  # earlier turns included with a chosen one, if not all are chosen


AskedTurn = tuple[dict[str, Any], Counter[str]]  # a record, and the number of good and bad clicks on it


async def read_rows(redis: Redis, *, prefix: str, outcomes: Collection[str], bad_only: bool) -> list[dict[str, Any]]:
    """Return turns with these outcomes (all if empty) and the turns before them, by conversation, in order of time."""
    conversations: dict[str, list[AskedTurn]] = {}
    records = TurnRecords(redis, prefix=prefix)
    turns = [(record, Counter(await records.judgements(record))) async for record in records.scan()]
    for record, judged in sorted(turns, key=lambda turn: float(turn[0]["at"])):
        conversations.setdefault(str(record.get("thread") or record["turn_id"]), []).append((record, judged))

    def is_chosen(record: dict[str, Any], judged: Counter[str]) -> bool:
        return (not outcomes or record["outcome"] in outcomes) and (judged["bad"] > 0 or not bad_only)

    return [row for turns in conversations.values() for row in _rows(turns, [is_chosen(*turn) for turn in turns])]


def _rows(turns: Sequence[AskedTurn], chosen: Sequence[bool]) -> Iterator[dict[str, Any]]:
    """Yield the chosen turns of a conversation and those before them, with the first one's id as their thread."""
    selected = [turn for at, turn in enumerate(turns) if any(chosen[at : at + MAX_BEFORE + 1])]
    for record, judged in selected:
        sources = [source.get("title", "") for source in record.get("sources") or () if isinstance(source, dict)]
        row = {
            "id": record["turn_id"],
            "question": record["question"],
            "kind": record["outcome"],
            "answer": record.get("answer", ""),
            "sources": sources,
            "judged": {"good": judged["good"], "bad": judged["bad"]},
        }
        yield row | ({"thread": selected[0][0]["turn_id"]} if len(selected) > 1 else {})


def write_rows(rows: Iterable[dict[str, Any]], out: Path) -> None:
    """Write one row per line. Raises ``WrongUse`` if the file exists."""
    try:
        # Never overwrite a file that may have labels.
        with out.open("x", encoding="utf-8", errors="replace") as lines:
            lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    except FileExistsError:
        raise WrongUse(why=f"{out} exists, perhaps with labels. Name another file.") from None
