"""`orion bench`: what Orion itself costs, as ratios within one run, for absolute times depend on the machine.

Reference and subject run in turns, on texts that differ each time. A model that only waits stands in for a real one.
"""

from __future__ import annotations

import asyncio
import importlib
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rich.table import Table

from agent.model.tag_stream import DraftReader
from bot.evals.bench_texts import answer_text, turn
from bot.evals.bench_turns import turn_figures
from verification.check import check
from verification.markup.mrkdwn import repair

REPEATS = 31
_WARMING = 2
"""Rounds that warm the caches and are not counted."""
_FEW = 5
_OTHERS = 100_000
"""From this number on the turns are none of those that other figures are of."""
TURNS_AT_ONCE = 50
LARGEST_KB = 1000
THINKING_S = (0.3, 2.0)
"""How long a model thinks per call, in seconds: fast for a real one, so the figure errs on the strict side."""

QUICK: dict[str, Any] = {"repeats": 1, "largest_kb": 10, "turns": 3, "thinking_s": (0.0, 0.01)}
"""Settings for a look that takes seconds."""


def median_ms(*works: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """Median milliseconds of each piece of work, run in turn so that a slower moment hits all of them."""
    spent: list[list[float]] = [[] for _ in works]
    for round_ in range(repeats + 2):
        for number, work in enumerate(works):
            began = time.perf_counter()
            work()
            if round_ >= 2:  # noqa: PLR2004 - two rounds warm the caches and are not counted
                spent[number].append((time.perf_counter() - began) * 1000)
    return [statistics.median(times) for times in spent]


def bench(
    *,
    repeats: int = REPEATS,
    largest_kb: int = LARGEST_KB,
    turns: int = TURNS_AT_ONCE,
    thinking_s: tuple[float, float] = THINKING_S,
) -> dict[str, Any]:
    """Every figure, as JSON-ready values. Times in milliseconds. Smaller settings give a quick, rougher look."""
    return {
        "verification": _verification(repeats),
        "linearity": _linearity(repeats, largest_kb),
        "stream": _stream(repeats),
        "turn": asyncio.run(turn_figures(turns, thinking_s)),
    }


def _verification(repeats: int) -> dict[str, Any]:
    """Times of one answer of 2,000 characters with eight sources of 2,000, and their ratios to a known converter.

    Every round has other texts. ``rules`` stands for repair and all rules on sources never seen before, as in a turn,
    where the answer keeps to their sentences; ``reworded`` for the same where it says all in other words; ``rewritten``
    for another answer to sources already read, as in a second attempt; ``again`` for a second look at the same draft;
    ``first`` for a process that has not verified anything yet.
    """
    reference = _reference()
    spent: dict[str, list[float]] = {}
    for number in range(repeats + _WARMING):
        draft = turn(number)
        looks: dict[str, Callable[[], object]] = {
            "repair": partial(repair, draft.text),
            "rules": partial(check, draft),
            "again": partial(check, draft),
            "rewritten": partial(check, turn(number, reworded=True)),
            "reworded": partial(check, turn(_OTHERS + number, reworded=True)),
        }
        if reference is not None:
            looks["slackify_markdown"] = partial(reference, draft.text)
        for name, look in looks.items():
            spent.setdefault(name, []).append(_ms(look))
    figures = {f"{name}_ms": round(statistics.median(times[_WARMING:]), 3) for name, times in spent.items()}
    figures["first_ms"] = round(statistics.median(_first(number) for number in range(min(repeats, _FEW))), 3)
    known = figures.get("slackify_markdown_ms")
    looked_at = ("repair", "rules", "again", "rewritten", "reworded", "first") if known else ()
    return figures | {f"{name}_ratio": round(figures[f"{name}_ms"] / (known or 1), 2) for name in looked_at}


def _ms(work: Callable[[], object]) -> float:
    """Milliseconds of the processor: what else runs on the machine does not count."""
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1000


def _first(number: int) -> float:
    """Milliseconds of a check when nothing is remembered, not even how words are inflected."""
    for name, module in list(sys.modules.items()):
        for value in vars(module).values() if name.startswith("verification.") else ():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
    return _ms(partial(check, turn(number)))


def _reference() -> Callable[[str], object] | None:
    """A well-known converter, where the benchmark's extra is installed."""
    try:
        convert: Callable[[str], object] = importlib.import_module("slackify_markdown").slackify_markdown
    except ImportError:
        return None
    return convert


def _linearity(repeats: int, largest_kb: int) -> dict[str, Any]:
    """Repair, and repair with all rules, per kilobyte of answer from 1 kB up to 1 MB.

    The ratio of the last to the first tells whether it is linear: well below 2 if it is.
    """
    figures: dict[str, float] = {}
    for name in ("repair", "rules"):
        sizes = [size for size in (1, 10, 100, 1000) if size <= largest_kb]
        for kilobytes in sizes:
            look = partial(_look, name, kilobytes)
            times = [look(number) for number in range(max(1, min(repeats, 10 // kilobytes)))]
            figures[f"{name}_ms_per_kb_at_{kilobytes}_kb"] = round(statistics.median(times) / kilobytes, 4)
        first, last = (figures[f"{name}_ms_per_kb_at_{size}_kb"] for size in (sizes[0], sizes[-1]))
        figures[f"{name}_growth"] = round(last / first, 2)
    return figures


def _look(name: str, kilobytes: int, number: int) -> float:
    """Milliseconds for one answer of that many kilobytes, repaired or judged."""
    draft = turn(number, length=kilobytes * 1000)
    return _ms(partial(repair, draft.text) if name == "repair" else partial(check, draft))


def _stream(repeats: int) -> dict[str, Any]:
    text = f"<thinking>{answer_text(2000)}</thinking><answer>{answer_text(8000)}</answer>"
    pieces = [text[start : start + 4] for start in range(0, len(text), 4)]

    def read() -> str:
        reader = DraftReader()
        for piece in pieces:
            reader.feed(piece)
        reader.close()
        return reader.draft

    spent = median_ms(read, repeats=repeats)[0]
    return {"chunks": len(pieces), "microseconds_per_chunk": round(spent * 1000 / len(pieces), 2)}


def bench_table(results: Mapping[str, Mapping[str, Any]]) -> Table:
    """The figures as a table."""
    table = Table("part", "figure", "value")
    for part, figures in results.items():
        for name, value in figures.items():
            table.add_row(part, name, str(value))
    return table
