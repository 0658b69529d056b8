"""Many questions at once, and an Orion that is asked to end while many are in work (H3, B4)."""

from __future__ import annotations

import asyncio
import random
import signal
from dataclasses import dataclass
from pathlib import Path

from tests.process.chaos.ledger import Ledger, answered, read_ledger
from tests.process.chaos.member import Role
from tests.process.chaos.redis_process import redis_process
from tests.process.chaos.scene import QUESTION, Scene, free_port, paced, patiently, scene
from tests.support.openai_server import ScriptedOpenAI

CHANNELS = ("C0GENERAL", "C0HELP", "C0ENGINEERING")
SLOW = "Take your time."


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """So many mentions within ``seconds`` (0: at once), answered by one `serve` or by a front and ``workers``."""

    mentions: int
    seconds: float = 0.0
    workers: int = 0
    patience_s: float = 120.0


async def crowd(folder: Path, dice: random.Random, what: Crowd) -> tuple[Ledger, float]:
    """The books, and how many seconds after the last mention the last answer stood."""
    async with (
        redis_process() as redis,
        ScriptedOpenAI(**paced(dice, 0.1, 0.3)) as model,
        scene(folder, redis.url, model, dice) as at,
    ):
        await _open(at, what.workers)
        for _ in range(what.mentions):
            at.ask(dice.choice(CHANNELS))
            await asyncio.sleep(what.seconds / what.mentions)
        began = asyncio.get_running_loop().time()
        await patiently(lambda: _all_answered(at), what.patience_s)
        return await read_ledger(at), asyncio.get_running_loop().time() - began


def _all_answered(at: Scene) -> bool:
    return all(answered(at.workspace, asked) for asked in at.asked)


async def _open(at: Scene, workers: int) -> None:
    """A front and its workers, or one process that does both. Nobody is killed here: leases may be long."""
    port = free_port()
    at.workspace.events_url = f"http://127.0.0.1:{port}/slack/events"
    role = Role(name="serve", port=port, concurrency=0 if workers else 50, lease_s=10)
    started = [at.crew.start(role, at.settings)]
    started += [at.crew.start(Role(name=f"worker{number}", lease_s=10), at.settings) for number in range(workers)]
    for member in started:
        await member.ready()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What a drain left: the books, the exit code, and how many questions the next process had to answer."""

    ledger: Ledger
    exit_code: int | None
    given_back: int


async def drain(folder: Path, dice: random.Random, *, turns: int, slow: int, grace_s: float = 5.0) -> Ending:
    """SIGTERM with all turns in flight, of which ``slow`` outlast the grace; then another Orion starts."""
    ended = asyncio.Event()
    pace = paced(
        dice, grace_s / 5, grace_s / 3, lambda request: SLOW in request.rpartition(QUESTION)[2] and not ended.is_set()
    )
    async with (
        redis_process() as redis,
        ScriptedOpenAI(**pace) as model,
        scene(folder, redis.url, model, dice) as at,
    ):
        role = Role(name="serve", socket=True, drain_s=grace_s, lease_s=10)
        first = at.crew.start(role, at.settings)
        await patiently(lambda: at.workspace.connections == 1, 60)
        for number in range(turns):
            at.ask(dice.choice(CHANNELS), text=f"{QUESTION} {SLOW}" if number < slow else QUESTION)
        await patiently(lambda: model.phases().count("write") >= turns, 60)
        first.signal(signal.SIGTERM)
        code = await first.ended()
        ended.set()
        given_back = sum(not answered(at.workspace, asked) for asked in at.asked)
        second = at.crew.start(role, at.settings)
        await patiently(lambda: _all_answered(at), 60)
        second.signal(signal.SIGTERM)
        await second.ended()
        return Ending(ledger=await read_ledger(at), exit_code=code, given_back=given_back)
