"""One `orion serve` at a time, killed at random moments between a question and its answer.

Several lanes run side by side, each with a workspace of its own: what takes time is waiting, not work.
"""

import asyncio
import random
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.process.chaos.crew import Member
from tests.process.chaos.ledger import Ledger, is_answered, left_behind, read_ledger
from tests.process.chaos.member import Role
from tests.process.chaos.redis_process import redis_process
from tests.process.chaos.scene import Scene, paced_scripts, patiently, scene
from tests.support.openai_server import ScriptedOpenAI

LEASE_S = 1.5
PATIENCE_S = 60.0
LONGEST_S = 0.8
"""A little more than an answer takes here, so that kills fall everywhere between event and answer."""


@dataclass(slots=True, kw_only=True)
class Lane:
    """One workspace and the one process that serves it."""

    at: Scene
    role: Role
    until: float
    serving: Member | None = None
    kills: int = 0

    async def start(self) -> None:
        self.serving = self.at.crew.start(self.role, self.at.settings)
        await patiently(lambda: self.at.workspace.connections == 1, PATIENCE_S)

    async def one(self) -> None:
        """Ask, kill, start again, wait. A kill after the answer does not count: then ask again."""
        asked = self.at.ask()
        await asyncio.sleep(self.at.dice.uniform(0, LONGEST_S))
        if self.serving is None or is_answered(self.at.workspace, asked):
            return
        self.at.crew.kill(self.serving)
        self.kills += 1
        await patiently(lambda: self.at.workspace.connections == 0, PATIENCE_S)
        await self.start()
        await patiently(lambda: is_answered(self.at.workspace, asked), PATIENCE_S)

    async def run(self, kills: int) -> None:
        await self.start()
        while self.kills < kills and asyncio.get_running_loop().time() < self.until:
            await self.one()
        workspace, asked = self.at.workspace, self.at.asked
        await patiently(lambda: all(is_answered(workspace, one) for one in asked), PATIENCE_S)
        await patiently(lambda: not left_behind(workspace, asked), PATIENCE_S)  # a status ends after its answer


async def restarts(
    folder: Path, dice: random.Random, *, kills: int, lanes: int, seconds: float
) -> tuple[int, list[Ledger]]:
    """So many kills in all, in so many lanes; none begins after ``seconds``. Returns how many there were."""
    until = asyncio.get_running_loop().time() + seconds
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(redis_process())
        model = await stack.enter_async_context(ScriptedOpenAI(**paced_scripts(dice, 0.1, 0.4)))
        opened: list[Lane] = []
        for number in range(lanes):
            prefix = f"lane{number}"
            at = await stack.enter_async_context(scene(folder / prefix, redis.url, model, dice, prefix=prefix))
            role = Role(name="serve", socket=True, lease_s=LEASE_S, prefix=prefix)
            opened.append(Lane(at=at, role=role, until=until))
        async with asyncio.TaskGroup() as group:
            for lane in opened:
                group.create_task(lane.run(kills // lanes), name=lane.role.prefix)
        return sum(lane.kills for lane in opened), [await read_ledger(lane.at) for lane in opened]
