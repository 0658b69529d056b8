"""Many questions in many threads; workers are killed and frozen, Redis dies, events come twice."""

import asyncio
import random
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.process.chaos.crew import Member
from tests.process.chaos.ledger import Ledger, first_parts, is_answered, left_behind, read_ledger
from tests.process.chaos.member import Role
from tests.process.chaos.redis_process import Mortal, redis_process
from tests.process.chaos.scene import CHANNELS, QUESTION, Asked, Scene, paced_scripts, patiently, scene
from tests.support.openai_server import ScriptedOpenAI
from tests.support.redis_fleet import free_port

CHAT = "D0ORION"
STREAM_CALLS = ("chat.startStream", "chat.appendStream", "chat.stopStream", "chat.update")
RESENT = 0.3
SETTLES_S = 180.0
"""How long after the last answer what is left behind may take to go away: each look is a call of fifty a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """The faults of a storm and their times in seconds.

    Workers are killed until all is answered, ``kills`` are made or ``rages_s`` is over. The processes that
    are alive then get ``patience_s`` more.
    """

    questions: int = 500
    threads: int = 50
    workers: int = 3
    ask_for_s: float = 60.0
    kill_each_s: float = 1.0
    kills: int | None = None
    freezes: int = 4
    redis_deaths: int = 2
    lease_s: float = 2.0
    rages_s: float = 100.0
    slow_posts: float = 0.05
    """Share of questions for which Slack carries out a post only after more than a lease, dead worker or not."""
    late_posts: float = 0.05
    """Share of questions for which Slack carries out a post half a second to five seconds after it was given up."""
    request_s: float = 1.5
    patience_s: float = 150.0
    streams: bool = False
    """Whether the answers are streamed."""


@dataclass(slots=True, kw_only=True)
class Storm:
    """One run: the scene, its workers, and what is done to them."""

    at: Scene
    redis: Mortal
    weather: Weather
    workers: dict[str, Member]
    over: asyncio.Event
    began: float
    redis_deaths: int = 0

    def start_worker(self, name: str) -> None:
        role = Role(name=name, lease_s=self.weather.lease_s, request_s=self.weather.request_s)
        self.workers[name] = self.at.crew.start(role, self.at.settings)

    async def ask_all(self) -> None:
        """The threads interleaved in random order, the first question of each opening it."""
        dice, weather = self.at.dice, self.weather
        order = [thread for thread in range(weather.threads) for _ in range(weather.questions // weather.threads)]
        dice.shuffle(order)
        opened: dict[int, Asked] = {}
        for number, thread in enumerate(order):
            self.at.workspace.faults.duplicate_events = 2 if dice.random() < RESENT else 0  # the mention and its twin
            if dice.random() < weather.slow_posts:
                self._delay(weather.lease_s + 6)
            if dice.random() < weather.late_posts:
                self._delay(weather.request_s + dice.uniform(0.5, 5.0))
            channel = CHAT if thread == 0 else CHANNELS[thread % len(CHANNELS)]
            known = opened.get(thread)
            asked = self.at.ask(channel, known.thread if known else None, f"{QUESTION} No. {number}, please.")
            opened.setdefault(thread, asked)
            await asyncio.sleep(dice.expovariate(weather.questions / weather.ask_for_s))
        await patiently(self.all_answered, max(0.0, self.began + weather.rages_s - asyncio.get_running_loop().time()))
        self.over.set()

    def _delay(self, seconds: float) -> None:
        method = self.at.dice.choice(STREAM_CALLS) if self.weather.streams else "chat.postMessage"
        self.at.workspace.faults.delay(method, seconds)

    def all_answered(self) -> bool:
        return all(is_answered(self.at.workspace, asked) for asked in self.at.asked)

    async def kill_some(self) -> None:
        """A running worker a second, replaced at once. A slow machine's workers get the time to start."""
        weather = self.weather
        while not self.over.is_set() and self.at.crew.kills < (weather.kills or self.at.crew.kills + 1):
            await self._pause(weather.kill_each_s)
            if running := [name for name, worker in self.workers.items() if worker.runs]:
                victim = self.at.dice.choice(running)
                self.at.crew.kill(self.workers[victim])
                self.start_worker(victim)

    async def freeze_some(self) -> None:
        """Freeze a worker now and then for longer than its lease. It wakes unless it is killed meanwhile."""
        for _ in range(self.weather.freezes):
            await self._pause(self.weather.ask_for_s / (self.weather.freezes + 1))
            if not self.over.is_set():
                victim = self.at.dice.choice(list(self.workers.values()))
                await self.at.crew.freeze(victim, self.weather.lease_s + 1)

    async def kill_redis(self) -> None:
        for _ in range(self.weather.redis_deaths):
            await self._pause(self.weather.ask_for_s / (self.weather.redis_deaths + 1))
            if not self.over.is_set():
                await self.redis.die()
                self.redis_deaths += 1

    async def settle(self) -> None:
        """Until all is answered and nothing is left to clear, or patience is at its end."""
        await patiently(self.all_answered, self.weather.patience_s)

        def is_settled() -> bool:
            twice = any(len(first_parts(self.at.workspace, asked)) > 1 for asked in self.at.asked)
            slow = any(not call.done for call in self.at.workspace.calls)  # what is still to land may be a second post
            return not slow and not twice and not left_behind(self.at.workspace, self.at.asked)

        await patiently(is_settled, SETTLES_S)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.over.wait()


async def storm(
    folder: Path, dice: random.Random, weather: Weather, over: AbstractAsyncContextManager[Mortal] | None = None
) -> tuple[Storm, Ledger]:
    """One storm from its first question to the last word, over one Redis or over what is named."""
    async with (
        over or redis_process() as redis,
        ScriptedOpenAI(**paced_scripts(dice, 0.1, 0.6, streams=weather.streams)) as model,
        scene(folder, redis.url, model, dice, streams=weather.streams) as at,
    ):
        port = free_port()
        at.workspace.http.url = f"http://127.0.0.1:{port}/slack/events"
        front = at.crew.start(Role(name="front", concurrency=0, port=port), at.settings)
        await front.ready()
        began = asyncio.get_running_loop().time()
        run = Storm(at=at, redis=redis, weather=weather, workers={}, over=asyncio.Event(), began=began)
        for number in range(weather.workers):
            run.start_worker(f"worker{number}")
        async with asyncio.TaskGroup() as group:
            for part in (run.ask_all, run.kill_some, run.freeze_some, run.kill_redis):
                group.create_task(part(), name=part.__name__)
        await run.settle()
        return run, await read_ledger(at)
