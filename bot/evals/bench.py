"""`orion bench`: Orion compared with the smallest useful bot, each in its own process, over a local Slack and model.

A question is timed from the event that Slack sends to the answer in its thread. Processor time is that of the bot's
own process. Absolute figures vary by machine, so both are asked in turn and compared.
"""

import asyncio
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port
from rich.table import Table

from agent.actions import ToolCall
from agent.tools.tool import ToolResult, ToolSpec, call_tool
from bot.evals.rows import percentile
from bot.local.model.limits import LENIENT
from bot.local.model.roster import BOT_USER, VISITOR, Channel
from bot.local.server import LocalWorkspace
from bot.redis.server import connect

SERVED: Final = (sys.executable, "-m", "bot", "serve")
HERE: Final = Path(__file__).parents[2] / "bench" / "peers"  # folder of the other bots in the repository
CHANNELS: Final = 500  # questions rotate over these channels, because Slack allows one post a second in each
PAGE: Final = "# Limits\n\nEach API key may make 600 requests a minute.\n"
ANSWER: Final = "Each API key may make 600 requests a minute [1]."
QUESTION: Final = f"<@{BOT_USER}> How many requests may an API key make a minute?"
START_TIMEOUT_S: Final = 120.0
ANSWER_TIMEOUT_S: Final = 600.0
STOP_TIMEOUT_S: Final = 10.0
_FIGURES: Final = {  # each with its unit
    "connected_s": ("From start to connected", "s"),
    "memory_mb": ("Memory once connected", "MB"),
    "p50_ms": ("Answer to a mention, instant model, median", "ms"),
    "cpu_ms": ("Processor time a mention", "ms"),
    "burst_ms": ("A burst of mentions, time of each", "ms"),
    "slack_calls": ("Calls to Slack a mention", ""),
    "added_p50_ms": ("Added to a slow model, 50 mentions under way, median", "ms"),
    "added_p95_ms": ("Added to a slow model, 50 mentions under way, 95 in 100", "ms"),
    "redis_kb": ("Kept in Redis a mention", "kB"),
}
_USAGE: Final = {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920}


class Sizes(NamedTuple):
    """The number of questions in each part of a measurement."""

    rounds: int = 7
    alone: int = 30  # questions to each bot in every round, one after the other
    burst: int = 300  # questions to each bot in every round, at the same time
    waiting: int = 100  # questions to Orion while the model is slow
    thinks_s: float = 3.0  # seconds that the slow model takes for each answer
    warming: int = 30  # questions to each bot before the measurement


# for a quick result within seconds
QUICK: Final = Sizes(rounds=1, alone=2, burst=3, waiting=3, thinks_s=0.2, warming=3)


class BenchRow(NamedTuple):
    """Orion's figure, the smallest bot's if there is one, and the ratio of the two."""

    name: str
    value: float
    unit: str
    smallest: float | None = None
    ratio: float | None = None


class InstantModel:
    """A chat-completions server that decides to respond, agrees, and writes the answer in a few chunks."""

    def __init__(self) -> None:
        self.thinks_s = 0.0
        pieces = ["<thinking>", *["word "] * 10, f"</thinking><answer>{ANSWER}</answer>"]
        chunks_sent = [_chunk({"content": piece}) for piece in pieces] + [_chunk({}, finish_reason="stop")]
        sent = [json.dumps(one) for one in (*chunks_sent, {"choices": [], "usage": _USAGE})]
        self._events = [f"data: {one}\n\n".encode() for one in (*sent, "[DONE]")]

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        """Serve, and yield the base URL."""
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/v1/chat/completions", self._complete)
        async with TestServer(app) as server:
            yield str(server.make_url("/v1"))

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        await asyncio.sleep(self.thinks_s)
        if not body.get("stream"):
            return web.json_response(_reply(body))
        return web.Response(body=b"".join(self._events), content_type="text/event-stream")


def _reply(body: Mapping[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": ANSWER.removesuffix(" [1].")}
    if "tools" in body:
        call = {"id": "c1", "type": "function", "function": {"name": "respond", "arguments": "{}"}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    elif "response_format" in body:
        claims = re.findall(r"^claim (\d+), cites \[(\d+)\]", body["messages"][-1]["content"], re.MULTILINE)
        verdicts = [{"claim": int(n), "lines": [f"{cited}.1"], "supported": True} for n, cited in claims]
        message["content"] = json.dumps({"verdicts": verdicts})
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": _USAGE}


def _chunk(delta: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, **more}]}


@dataclass(slots=True)
class RunningBot:
    """A bot in its own workspace. ``warm``: questions and Slack calls before the measurement."""

    pid: int
    workspace: LocalWorkspace
    connected_s: float
    memory_mb: float = 0.0
    asked: int = 0
    warm: tuple[int, int] = (0, 0)
    answered: dict[str, float] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    burst_s: list[float] = field(default_factory=list)

    async def watch(self) -> None:
        """Record each answer, until cancelled."""
        shown = self.workspace.workspace
        with shown.feed.watching() as updates:
            while update := await updates.get():
                message = shown.log.get(update.get("channel", ""), update.get("ts", ""))
                if message and message.bot_id and message.thread_ts:
                    self.answered.setdefault(message.thread_ts, time.perf_counter())
                    shown.feed.touch()

    async def ask(self, count: int, *, apart_s: float = 0.0) -> list[float]:
        """Ask ``count`` questions at once or ``apart_s`` seconds apart; return the seconds until each answer."""
        asked = {}
        for _ in range(count):
            self.asked += 1
            ts = self.workspace.post(VISITOR, f"C{self.asked % CHANNELS:04}", QUESTION)
            asked[ts] = time.perf_counter()
            if apart_s:
                await asyncio.sleep(apart_s)
        await self.workspace.wait_for(lambda: asked.keys() <= self.answered.keys(), ANSWER_TIMEOUT_S)
        return [self.answered[ts] - began for ts, began in asked.items()]

    async def round(self, alone: int, burst: int) -> None:
        """Ask ``alone`` questions one after the other, then ``burst`` at once."""
        before = resources_of(self.pid)[0]
        for _ in range(alone):
            self.seconds += await self.ask(1)
        began = time.perf_counter()
        await self.ask(burst)
        self.burst_s.append((time.perf_counter() - began) / burst)
        self.cpu_s.append((resources_of(self.pid)[0] - before) / (alone + burst))

    def figures(self) -> dict[str, float]:
        """Return medians so far. ``burst_ms`` is the time of each question of a burst."""
        return {
            "connected_s": self.connected_s,
            "memory_mb": self.memory_mb,
            "p50_ms": statistics.median(self.seconds) * 1000,
            "cpu_ms": statistics.median(self.cpu_s) * 1000,
            "burst_ms": statistics.median(self.burst_s) * 1000,
            "slack_calls": (len(self.workspace.calls) - self.warm[1]) / (self.asked - self.warm[0]),
        }


def resources_of(pid: int) -> tuple[float, float]:
    """Return a process's seconds of processor time and its resident megabytes (Linux)."""
    of_process = Path("/proc", str(pid))
    fields = (of_process / "stat").read_text(encoding="ascii").rpartition(")")[2].split()
    pages = int((of_process / "statm").read_text(encoding="ascii").split()[1])
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@asynccontextmanager
async def run_bot(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    *,
    events: str = "",
    warming: int = Sizes().warming,
) -> AsyncIterator[RunningBot]:
    """Start a bot, connect and warm it. ``events`` is its path over HTTP; without it, Socket Mode."""
    workspace = LocalWorkspace(strictness=LENIENT)  # otherwise only Slack's rate limits would be measured
    for number in range(CHANNELS):
        place = Channel(id=f"C{number:04}", name=f"channel-{number}", members={VISITOR, BOT_USER})
        workspace.workspace.roster.channels[place.id] = place
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(workspace)
        port = unused_port()
        own = {
            "PORT": str(port),
            "SLACK_BOT_TOKEN": workspace.bot_token,
            "SLACK_APP_TOKEN": workspace.app_token,
            "SLACK_SIGNING_SECRET": workspace.signing_secret,
            "SLACK_API_URL": workspace.api_url,
            "PATH": os.defpath,  # no other variables of ours: a key in the environment would make it a different bot
            "HOME": str(folder),
            **environment,
        }
        began = time.perf_counter()
        with (folder / "log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(*command, env=own, cwd=folder, stdout=log, stderr=log)
        stack.push_async_callback(_end, process)
        await _wait_until_connected(workspace, events, port)
        bot = RunningBot(process.pid, workspace, time.perf_counter() - began, resources_of(process.pid)[1])
        group = await stack.enter_async_context(asyncio.TaskGroup())
        watching = group.create_task(bot.watch())
        stack.callback(watching.cancel)
        await bot.ask(warming)
        bot.warm = (bot.asked, len(workspace.calls))
        yield bot


async def _wait_until_connected(workspace: LocalWorkspace, events: str, port: int) -> None:
    if not events:
        await workspace.wait_for(lambda: workspace.connections > 0, START_TIMEOUT_S)
        return
    workspace.http.url = f"http://127.0.0.1:{port}{events}"
    async with asyncio.timeout(START_TIMEOUT_S):
        while True:
            with suppress(ConnectionError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.1)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Stop the bot as an operator does: an Orion that is killed leaves its Redis running."""
    with suppress(TimeoutError, ProcessLookupError):
        async with asyncio.timeout(STOP_TIMEOUT_S):
            process.terminate()
            await process.wait()
    if process.returncode is None:
        process.kill()
    await process.wait()


def orion(folder: Path, model_url: str) -> dict[str, str]:
    """Return the environment of an Orion with a single page."""
    docs = folder / "docs"
    docs.mkdir()
    (docs / "limits.md").write_text(PAGE, encoding="utf-8")
    return {
        "ORION_HOME": str(folder / "home"), "ORION_DOCS": str(docs), "ORION_PORT": "0",
        "OPENAI_BASE_URL": model_url, "ORION_MODEL": "m",
    }  # fmt: skip


async def compare_bots(sizes: Sizes) -> tuple[dict[str, float], dict[str, float]]:
    """Return the figures of Orion and the smallest bot. Orion is also measured with a slow model."""
    model = InstantModel()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="orion-bench-")))
        url = await stack.enter_async_context(model.open())
        ours, theirs = folder / "orion", folder / "bolt"
        for place in (ours, theirs):
            place.mkdir()
        one = await stack.enter_async_context(run_bot(SERVED, orion(ours, url), ours, warming=sizes.warming))
        smallest = (sys.executable, str(HERE / "bolt_bot.py"))
        other = await stack.enter_async_context(
            run_bot(smallest, {"OPENAI_BASE_URL": url}, theirs, warming=sizes.warming)
        )
        redis = await stack.enter_async_context(connect(ours / "home"))
        asked, before = one.asked, (await redis.info("memory"))["used_memory"]
        for _ in range(sizes.rounds):
            await one.round(sizes.alone, sizes.burst)
            await other.round(sizes.alone, sizes.burst)
        kept = ((await redis.info("memory"))["used_memory"] - before) / (one.asked - asked) / 1000
        model.thinks_s = thinks_s = sizes.thinks_s
        # Fifty run at any moment.
        added = [(seconds - thinks_s) * 1000 for seconds in await one.ask(sizes.waiting, apart_s=thinks_s / 50)]
        more = {"added_p50_ms": percentile(added, 0.5), "added_p95_ms": percentile(added, 0.95), "redis_kb": kept}
        return one.figures() | more, other.figures()


async def _tool_call_ms() -> float:
    call, tools = ToolCall(call_id="b", tool="search", input={"query": "limits"}), {"search": FoundTool()}
    spent = []
    for _ in range(200):
        began = time.perf_counter()
        await call_tool(tools, call, timeout_s=5, max_chars=10_000)
        spent.append((time.perf_counter() - began) * 1000)
    return statistics.median(spent)


class FoundTool:
    """A search that answers at once."""

    spec = ToolSpec(name="search", description="Finds.", parameters={"type": "object"})

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Return the page."""
        return ToolResult(ok=bool(arguments), content=PAGE)


async def bench(sizes: Sizes) -> list[BenchRow]:
    """Return all figures, each with its unit."""
    ours, theirs = await compare_bots(sizes)
    rows = []
    for key, (name, unit) in _FIGURES.items():
        smallest = theirs.get(key)
        rows.append(BenchRow(name, ours[key], unit, smallest, round(ours[key] / smallest, 2) if smallest else None))
    return [*rows, BenchRow("Overhead of a tool call, median", await _tool_call_ms(), "ms")]


def bench_table(rows: Sequence[BenchRow]) -> Table:
    """Return the figures as a table."""
    table = Table("what", "Orion", "minimal Bolt bot", "ratio")
    for row in rows:
        figures = ["" if figure is None else f"{figure:,.3g} {row.unit}" for figure in (row.value, row.smallest)]
        table.add_row(row.name, *figures, str(row.ratio or ""))
    return table
