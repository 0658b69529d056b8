"""A small slice of `make chaos`: the same scenarios, a few kills each."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.local.model.roster import VISITOR
from tests.process.chaos.crew import Member
from tests.process.chaos.crowds import drain
from tests.process.chaos.ledger import is_answered, left_behind
from tests.process.chaos.member import Role
from tests.process.chaos.redis_process import redis_process
from tests.process.chaos.report import Row, sum_ledgers
from tests.process.chaos.restarts import restarts
from tests.process.chaos.scene import BLOCKS, PLANNED, REST, Asked, Scene, scene
from tests.process.chaos.storm import Weather, storm
from tests.support.openai_server import RESPOND, Scripted, ScriptedOpenAI, says
from tests.support.waiting import wait_until

pytestmark = pytest.mark.chaos


@dataclass(frozen=True, slots=True)
class Stream:
    """A question whose answer is streamed, and the process that is killed over it."""

    at: Scene
    first: Member
    asked: Asked

    def own(self) -> list[dict[str, Any]]:
        return [m for m in self.at.workspace.messages(self.asked.channel, self.asked.ts) if m.get("bot_id")]

    async def kill_and_wait_for_answer(self) -> None:
        """Kill the process. The next one answers, and nothing is left to clear."""
        self.at.crew.kill(self.first)
        self.at.crew.start(Role(name="second", socket=True, lease_s=1.0), self.at.settings)
        await wait_until(lambda: is_answered(self.at.workspace, self.asked), "it is answered", 60)
        await wait_until(lambda: not left_behind(self.at.workspace, self.at.asked), "nothing is left to clear")


@asynccontextmanager
async def streaming(folder: Path, decisions: Any, drafts: Any) -> AsyncIterator[Stream]:
    async with (
        redis_process() as redis,
        ScriptedOpenAI(decisions=decisions, drafts=drafts) as model,
        scene(folder, redis.url, model, random.Random(1), streams=True) as at,
    ):
        first = at.crew.start(Role(name="first", socket=True, lease_s=1.0), at.settings)
        await wait_until(lambda: at.workspace.connections, "the first takes events", 60)
        yield Stream(at, first, at.ask())


async def test_lone_serve_that_is_killed_answers_each_question_once(tmp_path: Path) -> None:
    kills, ledgers = await restarts(tmp_path, random.Random(1), kills=2, lanes=2, seconds=30)
    row = Row(name="restarts", done="", ledger=sum_ledgers(ledgers), seconds=0)
    assert kills == 2
    assert row.holds, row.ledger


async def test_a_turn_that_outlasts_the_grace_period_is_answered_once_by_the_next_worker(tmp_path: Path) -> None:
    ending = await drain(tmp_path, random.Random(1), turns=5, slow=2, grace_s=1.5)
    row = Row(name="drain", done="", ledger=ending.ledger, seconds=0)
    assert ending.exit_code == 0
    assert ending.given_back >= 2, "the slow ones, on a busy machine others too"
    assert row.holds, row.ledger


async def test_a_stream_killed_midway_is_finished_in_place_by_the_next_worker(tmp_path: Path) -> None:
    never, whole = asyncio.Event(), says(BLOCKS, after=REST)
    drafts = [says(BLOCKS, before_end=never, after=REST), whole, whole]
    async with streaming(tmp_path, lambda _: RESPOND, drafts) as stream:
        await stream.at.workspace.wait_for(lambda: [m for m in stream.own() if "600" in m["text"]], 30)
        grown = [m["ts"] for m in stream.own()]
        await stream.kill_and_wait_for_answer()
        assert [m["ts"] for m in stream.own()] == grown
        never.set()


async def test_a_turn_killed_at_its_plan_is_answered_by_the_next_worker_without_one(tmp_path: Path) -> None:
    never, killed, whole = asyncio.Event(), asyncio.Event(), says(BLOCKS, after=REST)

    def draft(_: object) -> Scripted:
        return whole if killed.is_set() else says(before_end=never)

    async with streaming(tmp_path, [PLANNED, *[RESPOND] * 3], draft) as stream:
        await stream.at.workspace.wait_for(lambda: "in_progress" in str([m.get("blocks") for m in stream.own()]))
        killed.set()
        await stream.kill_and_wait_for_answer()
        (ended,) = stream.own()
        assert "task_card" not in {block["type"] for block in ended["blocks"]}
        never.set()


async def test_a_stop_accepted_before_a_kill_is_confirmed_by_the_next_worker(tmp_path: Path) -> None:
    never = asyncio.Event()
    async with streaming(tmp_path, lambda _: RESPOND, lambda _: says(before_end=never)) as stream:
        at, asked = stream.at, stream.asked
        await wait_until(lambda: at.workspace.workspace.threads.statuses, "the turn runs")
        at.workspace.post(VISITOR, asked.channel, "stop", asked.ts)
        stop = at.workspace.workspace.deliveries.log[-1]
        await wait_until(lambda: stop.acknowledged, "the stop was taken")
        at.crew.kill(stream.first)
        at.crew.start(Role(name="second", socket=True, lease_s=1.0), at.settings)
        await wait_until(lambda: [m["text"] for m in stream.own()] == ["Stopped."], "it is confirmed", 60)
        never.set()


async def test_a_storm_of_kills_and_a_freeze_leaves_each_stream_whole_and_once(tmp_path: Path) -> None:
    weather = Weather(
        questions=15, threads=3, workers=2, ask_for_s=2, kills=3, freezes=1, redis_deaths=0, lease_s=1.0,
        slow_posts=0, late_posts=0, rages_s=30, streams=True,
    )  # fmt: skip
    after = await storm(tmp_path, random.Random(1), weather)
    row = Row(name="streams", done="", ledger=after.ledger, seconds=0)
    assert (after.ledger.asked, after.kills, after.freezes) == (15, 3, 1)
    assert row.holds, row.ledger
