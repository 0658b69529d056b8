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
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tests.process.chaos.crowds import Crowd, crowd, drain
from tests.process.chaos.fleets import struck_cluster, struck_sentinel
from tests.process.chaos.report import Row, show, summed
from tests.process.chaos.restarts import restarts
from tests.process.chaos.storm import Aftermath, Weather, storm

WHOLE_S = 300.0
Scenario = Callable[[Path, random.Random, float], Awaitable[Row]]


async def in_a_storm(folder: Path, dice: random.Random, scale: float) -> Row:
    return await _weathered("storm", storm(folder, dice, stormy(scale)), "Redis deaths")


async def with_streams(folder: Path, dice: random.Random, scale: float) -> Row:
    weather = replace(stormy(scale), streams=True)
    return await _weathered("streams", storm(folder, dice, weather), "Redis deaths")


def stormy(scale: float) -> Weather:
    threads = max(4, round(50 * scale))
    deaths = 2 if scale > 0.5 else 1
    return Weather(
        questions=threads * 10,
        threads=threads,
        ask_for_s=60 * scale,
        freezes=max(1, round(5 * scale)),
        redis_deaths=deaths,
        rages_s=100 * scale,
    )


async def in_a_cluster(folder: Path, dice: random.Random, scale: float) -> Row:
    return await _weathered("cluster", storm(folder, dice, over_fleets(scale), struck_cluster(dice)), "fail-overs")


async def behind_a_sentinel(folder: Path, dice: random.Random, scale: float) -> Row:
    return await _weathered("sentinel", storm(folder, dice, over_fleets(scale), struck_sentinel(dice)), "fail-overs")


def over_fleets(scale: float) -> Weather:
    """Smaller than over one Redis: nine more servers want their share of the machine."""
    threads = max(4, round(20 * scale))
    return Weather(
        questions=threads * 10, threads=threads, ask_for_s=40 * scale, freezes=1, redis_deaths=2, rages_s=70 * scale
    )


async def _weathered(name: str, storming: Awaitable[Aftermath], deaths: str) -> Row:
    began = time.monotonic()
    after = await storming
    done = (
        f"{after.kills} kill -9 of 3 workers, {after.freezes} freezes, {after.redis_deaths} {deaths}, "
        f"{after.events} events"
    )
    return Row(name=name, done=done, ledger=after.ledger, seconds=time.monotonic() - began)


async def killed_again_and_again(folder: Path, dice: random.Random, scale: float) -> Row:
    wanted = max(5, round(100 * scale))
    began = time.monotonic()
    kills, ledgers = await restarts(folder, dice, kills=wanted, lanes=5, seconds=100 * scale + 20)
    done = f"{kills} kill -9 of a lone serve between event and answer"
    return Row(name="restarts", done=done, ledger=summed(ledgers), seconds=time.monotonic() - began)


async def in_one_channel(folder: Path, dice: random.Random, scale: float) -> Row:
    mentions = max(20, round(100 * scale))
    return await _crowded("burst", "at once in one channel", folder, dice, Crowd(mentions=mentions, channels=1))


async def over_twenty_channels(folder: Path, dice: random.Random, scale: float) -> Row:
    mentions = max(20, round(100 * scale))
    return await _crowded("channels", "at once over 20 channels", folder, dice, Crowd(mentions=mentions, channels=20))


async def a_thousand(folder: Path, dice: random.Random, scale: float) -> Row:
    seconds = 60 * scale
    what = Crowd(mentions=max(20, round(1000 * scale)), channels=20, seconds=seconds, workers=2)
    return await _crowded("thousand", f"within {seconds:.0f} s over 20 channels, 2 workers", folder, dice, what)


async def _crowded(name: str, how: str, folder: Path, dice: random.Random, what: Crowd) -> Row:
    began = time.monotonic()
    found = await crowd(folder, dice, what)
    done = f"{what.mentions} mentions {how}; {found.told()}"
    return Row(name=name, done=done, ledger=found.ledger, seconds=time.monotonic() - began, wrong=found.wrong())


async def asked_to_end(folder: Path, dice: random.Random, scale: float) -> Row:
    began = time.monotonic()
    ending = await drain(folder, dice, turns=20, slow=5)
    done = f"SIGTERM with 20 turns in flight; {ending.given_back} given back to the next"
    wrong = () if ending.exit_code == 0 else (f"it ended with {ending.exit_code}, not 0",)
    return Row(name="drain", done=done, ledger=ending.ledger, seconds=time.monotonic() - began, wrong=wrong)


SCENARIOS: dict[str, Scenario] = {
    "drain": asked_to_end,
    "burst": in_one_channel,
    "channels": over_twenty_channels,
    "storm": in_a_storm,
    "restarts": killed_again_and_again,
    "thousand": a_thousand,
    "cluster": in_a_cluster,
    "sentinel": behind_a_sentinel,
    "streams": with_streams,
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
            rows.append(await scenario(folder / name, random.Random(f"{seed} {name}"), min(1.0, seconds / WHOLE_S)))
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
    return 0 if all(row.held for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
