"""A small slice of `make chaos`: the same scenarios, a few kills each."""

import random
from pathlib import Path

import pytest

from tests.process.chaos.crowds import drain
from tests.process.chaos.report import Row, sum_ledgers
from tests.process.chaos.restarts import restarts
from tests.process.chaos.storm import Weather, storm

pytestmark = pytest.mark.chaos


async def test_lone_serve_that_is_killed_answers_each_question_once(tmp_path: Path) -> None:
    kills, ledgers = await restarts(tmp_path, random.Random(1), kills=2, lanes=2, seconds=30)
    row = Row(name="restarts", done="", ledger=sum_ledgers(ledgers))
    assert kills == 2
    assert row.holds, row.ledger


async def test_a_turn_that_outlasts_the_grace_period_is_answered_once_by_the_next_worker(tmp_path: Path) -> None:
    ledger, exit_code, given_back = await drain(tmp_path, random.Random(1), turns=5, slow=2, grace_s=1.5)
    row = Row(name="drain", done="", ledger=ledger)
    assert exit_code == 0
    assert given_back >= 2, "the slow ones, on a busy machine others too"
    assert row.holds, row.ledger


async def test_a_storm_of_kills_and_a_freeze_leaves_each_stream_whole_and_once(tmp_path: Path) -> None:
    weather = Weather(
        questions=15, threads=3, workers=2, ask_for_s=2, kills=3, freezes=1, redis_deaths=0, lease_s=1.0,
        slow_posts=0, late_posts=0, rages_s=30, streams=True,
    )  # fmt: skip
    run, ledger = await storm(tmp_path, random.Random(1), weather)
    row = Row(name="streams", done="", ledger=ledger)
    assert (ledger.asked, run.at.crew.kills, run.at.crew.freezes) == (15, 3, 1)
    assert row.holds, row.ledger
