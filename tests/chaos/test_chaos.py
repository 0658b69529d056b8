"""A small slice of `make chaos`: the same scenarios, a few kills each (H3, E5, A3)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.chaos.crowds import drain
from tests.chaos.report import Row, summed
from tests.chaos.restarts import restarts
from tests.chaos.storm import Weather, storm

pytestmark = pytest.mark.chaos


async def test_h3_e5_a_storm_loses_doubles_and_reorders_nothing(tmp_path: Path) -> None:
    weather = Weather(
        questions=20,
        threads=4,
        workers=2,
        ask_for_s=2,
        kills=3,
        freezes=0,
        redis_deaths=0,
        lease_s=1.0,
        slow_posts=0,
        rages_s=30,
    )
    after = await storm(tmp_path, random.Random(1), weather)
    row = Row(name="storm", done="", ledger=after.ledger, seconds=0)
    assert (after.ledger.asked, after.kills) == (20, 3)
    assert row.held, row.ledger


async def test_h3_a_lone_serve_that_is_killed_answers_each_question_once(tmp_path: Path) -> None:
    kills, ledgers = await restarts(tmp_path, random.Random(1), kills=2, lanes=2, seconds=30)
    row = Row(name="restarts", done="", ledger=summed(ledgers), seconds=0)
    assert kills == 2
    assert row.held, row.ledger


async def test_h3_what_outlasts_the_grace_is_answered_once_by_the_next(tmp_path: Path) -> None:
    ending = await drain(tmp_path, random.Random(1), turns=5, slow=2, grace_s=1.5)
    row = Row(name="drain", done="", ledger=ending.ledger, seconds=0)
    assert (ending.exit_code, ending.given_back) == (0, 2)
    assert row.held, row.ledger
