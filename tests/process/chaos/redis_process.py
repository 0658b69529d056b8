"""The Redis of a chaos run: one on a private socket that is killed with -9, or a fleet whose primary is what dies."""

import asyncio
import random
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent.thread.store import hash_tag
from bot.redis.server import find_server, probe_server
from tests.support.redis_fleet import Fleet, cluster, sentinel
from tests.support.waiting import wait_until

AWAY_S = 0.7
SHARDS = 16


class Mortal(Protocol):
    """A Redis of any kind that a test can stop."""

    @property
    def url(self) -> str:
        """Its ``REDIS_URL``."""

    async def die(self) -> None:
        """Strike it, and return when it is whole again."""


class RedisProcess:
    """Every write is on disk before it is confirmed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = folder / "redis.sock"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self._socket}"

    async def start(self) -> None:
        command = [str(find_server()), "--port", "0", "--save", "", "--unixsocket", str(self._socket)]
        command += ["--dir", str(self._folder), "--appendonly", "yes", "--appendfsync", "always"]
        self._process = await asyncio.to_thread(self._popen, command)
        await wait_until(self._ready, "Redis answers", 30)

    async def _ready(self) -> bool:
        return await probe_server(self._socket) == "ready"

    def _popen(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

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
async def struck_cluster(dice: random.Random) -> AsyncIterator[StruckFleet]:
    async with cluster() as fleet:
        yield StruckFleet(fleet=fleet, dice=dice)


@asynccontextmanager
async def struck_sentinel(dice: random.Random) -> AsyncIterator[StruckFleet]:
    async with sentinel() as fleet:
        yield StruckFleet(fleet=fleet, dice=dice)
