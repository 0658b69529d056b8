"""The processes of a chaos run, and what is done to them: kill -9, SIGSTOP, SIGTERM.

They are forked from one process that has imported everything (``forkserver``): a start costs a tenth of a second, so
that a kill a second leaves time to work. Only our own children are ever signalled.
"""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from bot.settings import Settings
from tests.process.chaos.member import Role, live
from tests.support.orion_running import fork_context
from tests.support.waiting import wait_until

GONE_S = 30.0
STARTED_S = 60.0


@dataclass(slots=True, kw_only=True, eq=False)
class Member:
    """One process. Times in seconds since 1970; ``frozen`` has the times at which it was frozen."""

    role: Role
    process: ForkServerProcess
    log: Path
    died_at: float | None = None
    frozen: list[float] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        return self.process.is_alive()

    def signal(self, number: signal.Signals) -> None:
        if self.process.pid is not None and self.alive:
            os.kill(self.process.pid, number)

    def kill(self) -> None:
        """As the kernel does when memory runs out."""
        self.process.kill()
        self.process.join(GONE_S)
        self.died_at = time.time()

    async def freeze(self, seconds: float) -> None:
        """Freeze the process for some seconds, then let it continue."""
        self.signal(signal.SIGSTOP)
        self.frozen.append(time.time())
        await asyncio.sleep(seconds)
        self.signal(signal.SIGCONT)

    @property
    def runs(self) -> bool:
        """Return True if it has logged its start. Its HTTP server is open then."""
        return self.alive and b'"orion_started"' in self.log.read_bytes()

    async def ready(self) -> None:
        """Until it runs."""
        await wait_until(lambda: self.runs, f"{self.role.name} runs", STARTED_S)

    async def wait_for_exit(self) -> int | None:
        """Its exit code, once it has one."""
        await asyncio.to_thread(self.process.join, GONE_S)
        return self.process.exitcode


class Crew:
    """Every process of one scenario."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._context = fork_context()
        self.members: list[Member] = []
        self.kills = 0
        self.freezes = 0

    def start(self, role: Role, settings: Settings) -> Member:
        log = self._folder / f"{len(self.members):04}-{role.name}.jsonl"
        log.touch()
        process = self._context.Process(target=live, args=(role, settings, log), name=role.name, daemon=True)
        process.start()
        member = Member(role=role, process=process, log=log)
        self.members.append(member)
        return member

    def kill(self, member: Member) -> None:
        self.kills += 1
        member.kill()

    async def freeze(self, member: Member, seconds: float) -> None:
        self.freezes += 1
        await member.freeze(seconds)

    def end(self) -> None:
        for member in self.members:
            if member.alive:
                member.kill()


@contextmanager
def crew(folder: Path) -> Iterator[Crew]:
    """A crew that is gone when the block is."""
    folder.mkdir(parents=True, exist_ok=True)
    hands = Crew(folder)
    try:
        yield hands
    finally:
        hands.end()
