"""`orion bench`: what Orion costs beside something known, as ratios within one run.

Absolute figures depend on the machine and on what else it does; whatever is compared runs in turns.
"""

from __future__ import annotations

import asyncio
import importlib
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

from rich.table import Table

from bot.evals.bench_bots import WAITING, compared
from bot.evals.bench_stream import per_chunk, tool_call_ms
from bot.evals.bench_texts import turn
from verification.check import check
from verification.markup.mrkdwn import repair

ROUNDS: Final = 7
QUICK: Final[Mapping[str, int]] = {"rounds": 1, "alone": 2, "burst": 3, "waiting": 3, "kilobytes": 10, "chunks": 40}
"""Settings for a look that takes seconds."""
_OTHERS: Final = 100_000
"""From this number on the texts are none of those that other figures are of."""
BOLT: Final = "minimal Bolt bot"
CONVERTER: Final = "slackify_markdown"
AIOHTTP: Final = "aiohttp, same decoder"
_MENTION: Final = (  # the whole way of an easy mention: event in, answer out
    ("connected_s", "From start to connected", "s"),
    ("memory_mb", "Memory once connected", "MB"),
    ("p50_ms", "Answer to a mention, instant model, median", "ms"),
    ("cpu_ms", "Processor time a mention", "ms"),
    ("burst_ms", "A burst of mentions, time of each", "ms"),
    ("slack_calls", "Calls to Slack a mention", ""),
    ("added_p50_ms", "Added to a model of 3 s, 50 mentions under way, median", "ms"),
    ("added_p95_ms", "Added to a model of 3 s, 50 mentions under way, 95 in 100", "ms"),
    ("redis_kb", "Kept in Redis a mention", "kB"),
)


class Row(NamedTuple):
    """One figure: what it is called, and the same figure of its yardstick, if there is one."""

    name: str
    value: float
    unit: str
    yardstick: str = ""
    of_yardstick: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many times its yardstick it is."""
        return round(self.value / self.of_yardstick, 2) if self.of_yardstick else None


def bench(  # noqa: PLR0913 - the sizes of its parts, each named at the call
    *,
    rounds: int = ROUNDS,
    alone: int = 30,
    burst: int = 300,
    waiting: int = WAITING,
    kilobytes: int = 1000,
    chunks: int = 500,
) -> list[Row]:
    """Every figure; smaller settings give a quicker, rougher look.

    ``alone`` questions one after the other and ``burst`` at once are asked of each bot in every round; Orion is asked
    ``waiting`` more while the model is slow. Texts to verify
    grow up to ``kilobytes``; a streamed answer has so many ``chunks``.
    """
    ours, theirs = asyncio.run(compared(rounds, alone, burst, waiting))
    streams = asyncio.run(per_chunk(rounds, chunks))
    return [
        *(Row(name, ours[key], unit, *((BOLT, theirs[key]) if key in theirs else ())) for key, name, unit in _MENTION),
        *(Row(f"Processor time a streamed chunk, {how}", x, "µs", AIOHTTP, raw) for how, (x, raw) in streams.items()),
        Row("Round a tool call, median", asyncio.run(tool_call_ms()), "ms"),
        *_verification(rounds),
        *_growth(kilobytes),
    ]


def _verification(rounds: int) -> list[Row]:
    """One answer of 2,000 characters with eight sources of 2,000, other texts in every round."""
    convert = _converter()
    spent: dict[str, list[float]] = {}
    for number in range(rounds * 4 + 2):
        draft = turn(number)
        looks: dict[str, Callable[[], object]] = {
            "Repair of an answer of 2,000 characters": partial(repair, draft.text),
            "Repair and all rules, its words those of its sources": partial(check, draft),
            "The same, in other words": partial(check, turn(_OTHERS + number, reworded=True)),
        }
        if convert:
            looks[CONVERTER] = partial(convert, draft.text)
        for name, look in looks.items():
            spent.setdefault(name, []).append(_ms(look))
    medians = {name: statistics.median(times[2:]) for name, times in spent.items()}  # two rounds warm the caches
    known = medians.pop(CONVERTER, None)
    return [Row(name, value, "ms", CONVERTER if known else "", known) for name, value in medians.items()]


def _growth(kilobytes: int) -> list[Row]:
    """Milliseconds a kilobyte of a long answer, beside those of one kilobyte: 1 where the cost is linear."""
    looks: dict[str, Callable[[Any], object]] = {"Repair": lambda draft: repair(draft.text), "All rules": check}
    rows = []
    for name, look in looks.items():
        small = statistics.median(_ms(partial(look, turn(number, length=1000))) for number in range(10))
        large = _ms(partial(look, turn(0, length=kilobytes * 1000))) / kilobytes
        rows.append(Row(f"{name} of {kilobytes:,} kB, each", large, "ms", "1 kB", small))
    return rows


def _ms(work: Callable[[], object]) -> float:
    """Milliseconds of the processor: what else runs on the machine does not count."""
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1000


def _converter() -> Callable[[str], object] | None:
    """A well-known converter, where the benchmark's extra is installed."""
    with suppress(ImportError):
        convert: Callable[[str], object] = importlib.import_module(CONVERTER).slackify_markdown
        return convert
    return None


def bench_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The figures as JSON has them."""
    shown = []
    for row in rows:
        of_yardstick = None if row.of_yardstick is None else round(row.of_yardstick, 3)
        shown.append({**row._asdict(), "value": round(row.value, 3), "of_yardstick": of_yardstick, "ratio": row.ratio})
    return shown


def bench_table(rows: Sequence[Row]) -> Table:
    """The figures as a table."""
    table = Table("what", "Orion", "yardstick", "its figure", "ratio")
    for row in rows:
        of_yardstick = "" if row.of_yardstick is None else f"{row.of_yardstick:,.3g} {row.unit}"
        table.add_row(row.name, f"{row.value:,.3g} {row.unit}", row.yardstick, of_yardstick, str(row.ratio or ""))
    return table
