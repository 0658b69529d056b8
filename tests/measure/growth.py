"""Whether the cost of a question follows what grows round it, and what more workers bring.

Run it by hand: `python -m tests.measure.growth`. For each thing that grows one Orion has little of it and one has much;
both are asked in turns, over a model that needs no time. A ratio of 1 means that the question does not notice.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shlex
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mcp.server.mcpserver import MCPServer

from bot.evals.bench import QUESTION, InstantModel, RunningBot, orion, resources_of, run_bot
from bot.local.model.messages import LocalMessage
from bot.local.model.roster import VISITOR

ROUNDS: Final = 7
ALONE: Final = 20
EARLIER_THREADS: Final = 5_000
MESSAGES: Final = 200
FEW_DOCUMENTS: Final = 30
DOCUMENTS: Final = 3_000
TOOLS: Final = 28
"""More than Orion's own seven."""
BURST: Final = 300
CHANNEL: Final = "C0001"
APART_S: Final = 1.3
"""Between questions in one thread: Slack lets its messages be read 50 times a minute."""
SERVE: Final = (sys.executable, "-m", "bot", "serve")


@dataclass(slots=True, kw_only=True)
class Asked:
    """An Orion and how it is asked: below ``before`` messages of a thread. What was measured is in milliseconds."""

    bot: RunningBot
    before: int = 0
    thread: str = ""
    waited: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    async def round(self) -> None:
        """Ask some questions, one after the other."""
        began = resources_of(self.bot.pid)[0]
        count = ALONE // 4 if self.before else ALONE
        for _ in range(count):
            self.waited.append(await self._one() * 1000)
        self.processor.append((resources_of(self.bot.pid)[0] - began) / count * 1000)

    async def _one(self) -> float:
        if not self.before:
            return (await self.bot.ask(1))[0]
        place = self.bot.workspace
        if not self.thread:
            self.thread = self._long_thread()
            await self._one()
        await asyncio.sleep(APART_S)
        began = time.perf_counter()
        self.bot.answered.pop(self.thread, None)
        place.post(VISITOR, CHANNEL, QUESTION, thread_ts=self.thread)
        await place.wait_for(lambda: self.thread in self.bot.answered, 60)
        return self.bot.answered[self.thread] - began

    def _long_thread(self) -> str:
        log = self.bot.workspace.workspace.log
        root = log.next_ts()
        for number in range(self.before):
            ts = log.next_ts() if number else root
            text = f"Message {number} of a long talk about requests, keys and minutes."
            log.add(LocalMessage(channel=CHANNEL, ts=ts, user=VISITOR, text=text, thread_ts=root if number else ""))
        return root


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 (for a person)


async def _side_by_side(name: str, few: Asked, many: Asked) -> None:
    for _ in range(ROUNDS):
        await few.round()
        await many.round()
    for what, one, other in (("answer", few.waited, many.waited), ("processor", few.processor, many.processor)):
        least, most = statistics.median(one), statistics.median(other)
        _say(f"{name:<34} {what:<10} {least:7.1f} ms {most:7.1f} ms  ratio {most / least:.2f}")


def _write_documents(folder: Path, count: int) -> None:
    """Pages of words from a few thousand, some of those of the question among them."""
    chance = random.Random(7)
    words = ["".join(chance.choices("abdegiklmnoprstu", k=chance.randint(3, 9))) for _ in range(4_000)]
    words += ["requests", "key", "minute", "API"]
    for number in range(count):
        text = "\n\n".join(" ".join(chance.choices(words, k=60)) + "." for _ in range(6))
        (folder / f"page-{number}.md").write_text(f"# Page {number}\n\n{text}\n", encoding="utf-8")


def _many_tools(folder: Path) -> Mapping[str, str]:
    config = folder / "mcp.json"
    server = {
        "command": sys.executable,
        "args": ["-m", "tests.measure.growth", "tools"],
        "env": {"PYTHONPATH": str(Path.cwd())},
        "allow": ["*"],
        "audience": "public",
    }
    config.write_text(json.dumps({"mcpServers": {"many": server}}), encoding="utf-8")
    return {"ORION_MCP_CONFIG": str(config)}


def serve_tools() -> None:
    """An MCP server with many tools, over the standard streams."""
    server = MCPServer("many")
    for number in range(TOOLS):

        def look_up(name: str, *, year: int = 2026, number: int = number) -> str:
            return f"{name} {year} {number}"

        server.tool(name=f"look_up_{number}", description=f"Looks up a record of register {number} by its name.")(
            look_up
        )
    server.run()


async def growth() -> None:
    """Each thing that grows, with little and with much of it."""
    async with AsyncExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="orion-growth-")))
        url = await stack.enter_async_context(InstantModel().open())

        def home(name: str) -> tuple[Path, dict[str, str]]:
            folder = base / name
            folder.mkdir()
            return folder, orion(folder, url)

        folder, environment = home("few")
        few = await stack.enter_async_context(run_bot(SERVE, environment, folder))
        async with AsyncExitStack() as both:
            bots = []
            for count in (FEW_DOCUMENTS, DOCUMENTS):
                folder, environment = home(f"documents-{count}")
                _write_documents(folder / "docs", count)
                bots.append(await both.enter_async_context(run_bot(SERVE, environment, folder)))
            await _side_by_side(f"documents: {FEW_DOCUMENTS}, {DOCUMENTS}", *(Asked(bot=bot) for bot in bots))
        folder, environment = home("tools")
        async with run_bot(SERVE, {**environment, **_many_tools(folder)}, folder) as bot:
            await _side_by_side(f"tools of MCP servers: 0, {TOOLS}", Asked(bot=few), Asked(bot=bot))
        await _side_by_side(
            f"messages above it: 2, {MESSAGES}", Asked(bot=few, before=2), Asked(bot=few, before=MESSAGES)
        )
        folder, environment = home("threads")
        async with run_bot(SERVE, environment, folder) as bot:
            while bot.asked < EARLIER_THREADS:
                await bot.ask(250)
            memory = resources_of(bot.pid)[1]
            await _side_by_side(f"earlier threads: few, {EARLIER_THREADS}", Asked(bot=few), Asked(bot=bot))
            _say(f"memory of the process after {EARLIER_THREADS} threads: {memory:.0f} MB")


async def workers() -> None:
    """A burst over one process that does everything, and over one that listens beside 1 to 3 that answer."""
    async with AsyncExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="orion-growth-")))
        url = await stack.enter_async_context(InstantModel().open())
        found: dict[str, list[float]] = {}
        kinds = {"serve": 0, "serve and 1 worker": 1, "serve and 2 workers": 2, "serve and 3 workers": 3}
        for turn in range(3):
            for name, count in kinds.items():
                folder = base / f"{turn}-{count}"
                folder.mkdir()
                found.setdefault(name, []).append(await _burst(folder, url, count))
        alone = statistics.median(found["serve"])
        for name, each in found.items():
            one = statistics.median(each)
            _say(f"{name:<22} {one:6.1f} ms a question of a burst of {BURST}  rate {alone / one:.2f}")


async def _burst(folder: Path, url: str, count: int) -> float:
    """Milliseconds a question; the workers share the listening process's environment and its Redis."""
    python = shlex.quote(sys.executable)
    listens = f"exec {python} -m bot serve" + (" --concurrency 0" if count else "")
    command = ("sh", "-c", f"{python} -m bot worker --port 0 & " * count + listens)
    async with run_bot(command, orion(folder, url), folder) as bot:
        try:
            for _ in range(2):
                await bot.round(1, BURST)
        finally:
            _end_workers(bot.pid)
    return statistics.median(bot.burst_s) * 1000


def _end_workers(parent: int) -> None:
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split():
        if b"worker" in Path(f"/proc/{child}/cmdline").read_bytes():
            os.kill(int(child), signal.SIGKILL)


if __name__ == "__main__":
    if sys.argv[1:] == ["tools"]:
        serve_tools()
    else:
        asyncio.run(growth())
        asyncio.run(workers())
