"""The scene of a chaos run: a workspace, a slow model, a Redis, and the processes between them."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.cli.local import settings_for
from bot.local.model.limits import Strictness
from bot.local.model.roster import VISITOR
from bot.local.server import LocalWorkspace
from bot.settings import Settings
from tests.process.chaos.crew import Crew, crew
from tests.support.openai_server import HANGS, RESPOND, Scripted, ScriptedOpenAI, calls, says
from tests.support.orion_running import MENTION, settings_in, text_pages
from tests.support.waiting import wait_until

QUESTION = "How many requests per minute may an API key make?"
DRAFT = ("<answer>Each API key may", " make 600 requests a minute [1].</answer>")
BLOCKS = "<answer>Each API key may make 600 requests a minute [1].\n\nBursts"
REST = (" of up to 50 requests a second are accepted [1].\n\n", "Keys on the partner plan may make 3,000 [1].</answer>")
STEPS = [{"description": "Find the limit of a key"}, {"description": "Compare it with the partner plan"}]
PLANNED = calls(("finish_step", {"step": 1, "result": "600", "plan": STEPS}))
CHANNELS = ("C0GENERAL", "C0HELP", "C0ENGINEERING")
SLACK = Strictness(retry_delays=(0.3, 1.0, 2.0, 4.0, 8.0))
"""With its documented limits. Its own retries after 0, 60 and 300 seconds are too late for a run of minutes."""

Hangs = Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question in the workspace. ``thread`` is None for a direct message without threads."""

    channel: str
    thread: str | None
    ts: str


@dataclass(slots=True, kw_only=True)
class Scene:
    """One workspace and the processes that serve it."""

    workspace: LocalWorkspace
    settings: Settings
    crew: Crew
    dice: random.Random
    prefix: str = "orion"
    asked: list[Asked] = field(default_factory=list)

    def ask(self, channel: str = "C0HELP", thread: str | None = None, text: str = QUESTION) -> Asked:
        """Mention Orion: the mention arrives as two events. The message opens a thread, even a direct one."""
        direct = channel.startswith("D")
        ts = self.workspace.post(VISITOR, channel, text if direct else f"{MENTION} {text}", thread)
        self.asked.append(Asked(channel=channel, thread=thread or ts, ts=ts))
        return self.asked[-1]


def paced_scripts(
    dice: random.Random, least_s: float, most_s: float, hangs: Hangs = lambda _: False, *, streams: bool = False
) -> dict[str, Any]:
    """Scripts of a model that always decides to answer and writes for a while; ``hangs`` looks at the question.

    For ``streams`` it makes a plan and writes blocks, and waits in the second of them or before the first: then only
    the plan is to be seen.
    """

    def decision(request: Mapping[str, Any]) -> Scripted:
        return PLANNED if streams and ": the plan]" not in str(request["messages"]) else RESPOND

    def draft(request: Mapping[str, Any]) -> Scripted:
        if hangs(str(request["messages"])):
            return HANGS
        gate = asyncio.Event()
        asyncio.get_running_loop().call_later(dice.uniform(least_s, most_s), gate.set)
        if not streams:
            return says(*DRAFT, before_end=gate)
        begun = dice.random() < 0.5
        return says(BLOCKS, before_end=gate, after=REST) if begun else says(before_end=gate, after=(BLOCKS, *REST))

    return {"decisions": decision, "drafts": draft}


@asynccontextmanager
async def scene(
    folder: Path,
    redis_url: str,
    model: ScriptedOpenAI,
    dice: random.Random,
    *,
    prefix: str = "orion",
    streams: bool = False,
) -> AsyncIterator[Scene]:
    """An empty workspace over this Redis."""
    async with AsyncExitStack() as stack:
        workspace = await stack.enter_async_context(LocalWorkspace(docs=(text_pages(),), strictness=SLACK))
        settings = settings_in(folder / "home", redis_url, streams=streams, **model.settings)
        hands = stack.enter_context(crew(folder / "logs"))
        yield Scene(
            workspace=workspace,
            settings=settings_for(settings.model_copy(update={"docs": (text_pages(),)}), workspace), crew=hands,
            dice=dice, prefix=prefix,
        )  # fmt: skip


async def patiently(predicate: Callable[[], object], seconds: float) -> bool:
    """Return True if it came true in time. The ledger reports what did not, so this raises no error."""
    try:
        await wait_until(predicate, "it is so", seconds)
    except AssertionError:
        return False
    return True
