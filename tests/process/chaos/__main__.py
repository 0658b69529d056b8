"""The whole chaos run: one table, exit code 1 if a promise broke.

`python -m tests.process.chaos [--seed N] [--seconds 300] [--only NAME]`. ``--seconds`` scales how much is done. What a
slow machine has not done in that time it may still do a little later: what is judged is Orion, not the machine.
"""

import argparse
import asyncio
import logging
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tests.process.chaos.crowds import Crowd, crowd, drain
from tests.process.chaos.redis_process import Mortal, struck
from tests.process.chaos.report import Row, show, sum_ledgers
from tests.process.chaos.restarts import restarts
from tests.process.chaos.storm import Weather, storm
from tests.support.redis_fleet import cluster, sentinel

WHOLE_S = 300.0
Scenario = Callable[[Path, random.Random, float], Awaitable[Row]]
Fleets = Callable[[random.Random], AbstractAsyncContextManager[Mortal]]


async def in_a_storm(
    folder: Path, dice: random.Random, scale: float, *, name: str = "storm", over: Fleets | None = None
) -> Row:
    """Over one Redis or, smaller since nine more servers want their share of the machine, over a fleet."""
    threads = max(4, round((20 if over else 50) * scale))
    weather = Weather(
        questions=threads * 10, threads=threads, ask_for_s=(40 if over else 60) * scale,
        freezes=1 if over else max(1, round(5 * scale)), redis_deaths=2 if over or scale > 0.5 else 1,
        rages_s=(70 if over else 100) * scale, streams=name == "streams",
    )  # fmt: skip
    run, ledger = await storm(folder, dice, weather, over(dice) if over else None)
    crew, events = run.at.crew, len(run.at.workspace.workspace.deliveries.log)
    deaths = f"{run.redis_deaths} {'fail-overs' if over else 'Redis deaths'}"
    done = f"{crew.kills} kill -9 of 3 workers, {crew.freezes} freezes, {deaths}, {events} events"
    return Row(name=name, done=done, ledger=ledger)


async def killed_again_and_again(folder: Path, dice: random.Random, scale: float) -> Row:
    kills, ledgers = await restarts(folder, dice, kills=max(5, round(100 * scale)), lanes=5, seconds=100 * scale + 20)
    done = f"{kills} kill -9 of a lone serve between event and answer"
    return Row(name="restarts", done=done, ledger=sum_ledgers(ledgers))


async def in_a_crowd(folder: Path, dice: random.Random, scale: float, *, name: str, what: Crowd) -> Row:
    what = replace(what, mentions=max(20, round(what.mentions * scale)), seconds=what.seconds * scale)
    found = await crowd(folder, dice, what)
    how = f"within {what.seconds:.0f} s" if what.seconds else "at once"
    done = f"{what.mentions} mentions {how}, channels: {what.channels}, workers: {what.workers}; {found.summary()}"
    return Row(name=name, done=done, ledger=found.ledger, wrong=found.wrong())


async def asked_to_end(folder: Path, dice: random.Random, scale: float) -> Row:
    ledger, code, given_back = await drain(folder, dice, turns=20, slow=5)
    done = f"SIGTERM with 20 turns in flight; {given_back} given back to the next"
    return Row(name="drain", done=done, ledger=ledger, wrong=() if code == 0 else (f"it ended with {code}, not 0",))


CROWDS = {
    "burst": Crowd(mentions=100, channels=1),
    "channels": Crowd(mentions=100, channels=20),
    "thousand": Crowd(mentions=1000, channels=20, seconds=60, workers=2),
}
SCENARIOS: dict[str, Scenario] = {
    "drain": asked_to_end,
    **{name: partial(in_a_crowd, name=name, what=what) for name, what in CROWDS.items()},
    "storm": in_a_storm,
    "restarts": killed_again_and_again,
    "cluster": partial(in_a_storm, name="cluster", over=partial(struck, cluster)),
    "sentinel": partial(in_a_storm, name="sentinel", over=partial(struck, sentinel)),
    "streams": partial(in_a_storm, name="streams"),
}
ON_DEMAND = frozenset({"thousand", "cluster", "sentinel", "streams"})
"""Not among the five minutes; ``--only`` runs them."""


async def run(seed: int, seconds: float, only: str | None) -> list[Row]:
    """The scenarios one after the other, each with dice of its own: one alone throws as it does among the others."""
    folder = Path(tempfile.mkdtemp(prefix="orion-chaos-"))
    rows: list[Row] = []
    for name, scenario in SCENARIOS.items():
        if name == only or (only is None and name not in ON_DEMAND):
            print(f"{name} … (logs in {folder / name})", file=sys.stderr, flush=True)  # noqa: T201 - progress
            began = time.monotonic()
            row = await scenario(folder / name, random.Random(f"{seed} {name}"), min(1.0, seconds / WHOLE_S))
            rows.append(replace(row, seconds=time.monotonic() - began))
    return rows


def main() -> int:
    """As the module says."""
    parser = argparse.ArgumentParser(prog="python -m tests.process.chaos")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=WHOLE_S)
    parser.add_argument("--only", choices=sorted(SCENARIOS))
    chosen = parser.parse_args()
    # Killed workers break connections to the scripted model; its server would tell each with a stack trace.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    rows = asyncio.run(run(chosen.seed, chosen.seconds, chosen.only))
    show(rows, f"Orion under chaos, seed {chosen.seed}, {datetime.now(UTC):%Y-%m-%d}")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
