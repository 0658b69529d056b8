"""Orion beside other bots over the same local Slack API and model server, asked in turns: `make bench-peers`.

Each peer runs from its own registry's package: Agno in `.venv-agno` beside this, the Chat SDK in `node_modules`.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from bot.evals.bench import HERE, InstantModel, RunningBot, orion, run_bot

EVENTS: Final = {"agno": "/slack/events"}  # peers that take events over HTTP, and where
ROUNDS: Final = 5
ALONE: Final = 20  # questions to each bot in every round, one after the other
BURST: Final = 200  # and at once


async def main() -> None:
    """Ask every bot in turns and print the table."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="orion-peers-")))
        url = await stack.enter_async_context(InstantModel().open())
        bots: dict[str, RunningBot] = {}
        for name, command in commands().items():
            place = folder / name
            place.mkdir()
            environment = orion(place, url) if name == "orion" else {"OPENAI_BASE_URL": url}
            bots[name] = await stack.enter_async_context(
                run_bot(command, environment, place, events=EVENTS.get(name, ""))
            )
        for _ in range(ROUNDS):
            for bot in bots.values():
                await bot.round(ALONE, BURST)
        show(bots)


def commands() -> dict[str, tuple[str, ...]]:
    """Every bot that is installed here."""
    found = {"orion": (sys.executable, "-m", "bot", "serve"), "bolt": (sys.executable, str(HERE / "bolt_bot.py"))}
    agno, node = HERE / ".venv-agno" / "bin" / "python", shutil.which("node")
    if agno.exists():
        found["agno"] = (str(agno), str(HERE / "agno_bot.py"))
    if node and (HERE / "node_modules" / "chat").exists():
        found["chat-sdk"] = (node, str(HERE / "chat_bot.mjs"))
    return found


def show(bots: dict[str, RunningBot]) -> None:
    """One line a bot; the ratio is to the smallest one."""
    names = ("p50_ms", "cpu_ms", "burst_ms", "slack_calls", "memory_mb", "connected_s")
    least = bots["bolt"].figures()
    print("| bot | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 1) + "|")
    for name, bot in bots.items():
        figures = bot.figures()
        pairs = ((figures[each], least[each]) for each in names)
        print(f"| {name} | " + " | ".join(f"{value:.3g} ({value / of:.1f})" for value, of in pairs) + " |")


if __name__ == "__main__":
    asyncio.run(main())
