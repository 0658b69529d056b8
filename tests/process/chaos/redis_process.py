"""The Redis of a chaos run: one on a private socket that is killed with -9, or a fleet whose primary is what dies."""

import asyncio
import random
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.thread.store import hash_tag
from bot.redis.server import probe_server
from tests.support.redis_fleet import Fleet, launch
from tests.support.waiting import wait_until

AWAY_S = 0.7
SHARDS = 16


class RedisProcess:
    """Every write is on disk before it is confirmed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = folder / "redis.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{self._socket}"

    async def start(self) -> None:
        command = ["--port", "0", "--save", "", "--unixsocket", str(self._socket)]
        command += ["--dir", str(self._folder), "--appendonly", "yes", "--appendfsync", "always"]
        self._process = await asyncio.to_thread(launch, self._folder, command)

        async def is_ready() -> bool:
            return await probe_server(self._socket) == "ready"

        await wait_until(is_ready, "Redis answers", 30)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    async def die(self) -> None:
        """Away at once, back a moment later over the same files."""
        self.kill()
        await asyncio.sleep(AWAY_S)
        await self.start()


@asynccontextmanager
async def redis_process() -> AsyncIterator[RedisProcess]:
    """A running server. The folder is short: a socket's path has little more than 100 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="orion-c-"))
    server = RedisProcess(folder)
    try:
        await server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class StruckFleet:
    """A fleet of which one primary at a time dies; its replica takes over, and the dead one comes back as replica."""

    fleet: Fleet
    dice: random.Random

    @property
    def url(self) -> str:
        return self.fleet.url

    async def die(self) -> None:
        thread = f"T0LOCAL:{self.dice.random()}"
        await self.fleet.fail_over(hash_tag(thread, shards=SHARDS) if self.fleet.clustered else "")
        await self.fleet.restore()


@asynccontextmanager
async def struck(
    fleet_of: Callable[[], AbstractAsyncContextManager[Fleet]], dice: random.Random
) -> AsyncIterator[StruckFleet]:
    async with fleet_of() as fleet:
        yield StruckFleet(fleet=fleet, dice=dice)


Mortal = RedisProcess | StruckFleet
"""A Redis that can be killed and then recovers."""
