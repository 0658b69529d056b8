"""`orion bench`: Orion's cost as ratios to known programs, measured in turn, since absolute figures vary by machine."""

import asyncio
import importlib
import json
import random
import statistics
import time
import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, cycle
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
from anyio.from_thread import start_blocking_portal
from rich.table import Table

from agent.actions import ToolCall
from agent.budget import Budget
from agent.model.address import ServerAddress
from agent.model.openai import OpenAIModel
from agent.thread.conversation import Question, ThreadKey
from agent.thread.state import ThreadState
from agent.tools.tool import ToolResult, ToolSpec, call_tool
from agent.turn.loop import run_turn
from bot.evals.bench_bots import InstantModel, compare_bots, measure_tracing
from bot.stores.turn_records import Recorder
from verification.check import check
from verification.markup.mrkdwn import repair
from verification.types import Draft, Source

_OTHERS: Final = 100_000  # texts from this number on are not used for other figures
BOLT: Final = "minimal Bolt bot"
CONVERTER: Final = "slackify_markdown"
UNTRACED: Final = "untraced"
AIOHTTP: Final = "aiohttp and json"
_FACT: Final = "Each API key may make 600 requests a minute"
_PAGES: Final = 8
_PAGE_LENGTH: Final = 2000
_FACT_LENGTH: Final = 110  # approximate characters of one fact with its mark and its citation
# The names of the figures, and the words of the texts that are verified.
_DATA: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

TOO_NOISY: Final = "too noisy"
Read = Callable[[str], Awaitable[None]]


class Sizes(NamedTuple):
    """Sizes of a measurement."""

    rounds: int = 7
    alone: int = 30  # questions to each bot in every round, one after the other
    burst: int = 300  # and concurrently
    waiting: int = 100  # questions to Orion while the model is slow
    kilobytes: int = 1000  # the longest text that is verified
    chunks: int = 500  # chunks of a streamed answer


QUICK: Final = Sizes(rounds=1, alone=2, burst=3, waiting=3, kilobytes=10, chunks=40)  # for a quick look within seconds


class BenchRow(NamedTuple):
    """One figure, and the same figure of its baseline, if there is one.

    Some figures are differences of two times: on a busy machine they can be zero or negative.
    """

    name: str
    value: float
    unit: str
    yardstick: str = ""
    of_yardstick: float | None = None

    @property
    def ratio(self) -> float | None:
        """The figure divided by its baseline's; None without a baseline or if noise swamped one of them."""
        return round(self.value / self.of_yardstick, 2) if self.of_yardstick and not self.is_noise else None

    @property
    def is_noise(self) -> bool:
        """True if a cost is zero or negative: the machine was too noisy to measure it."""
        return self.value <= 0 or (self.of_yardstick is not None and self.of_yardstick <= 0)

    def shown(self, value: float | None) -> str:
        """Return a figure of this row for a person."""
        if value is None:
            return ""
        return f"{value:,.3g} {self.unit}" if value > 0 else TOO_NOISY


def bench(sizes: Sizes) -> list[BenchRow]:
    """Measure every figure; smaller sizes are quicker and rougher."""
    ours, theirs = asyncio.run(compare_bots(sizes.rounds, sizes.alone, sizes.burst, sizes.waiting))
    sending, silent = asyncio.run(measure_tracing(sizes.rounds, sizes.alone, sizes.burst))
    streams = asyncio.run(_per_chunk(sizes.rounds, sizes.chunks))
    return [
        *(
            BenchRow(name, ours[key], unit, *((BOLT, theirs[key]) if key in theirs else ()))
            for key, (name, unit) in _DATA["mention"].items()
        ),
        BenchRow("Processor time a mention, traced to Langfuse", sending, "ms", UNTRACED, silent),
        *(
            BenchRow(f"Processor time a streamed chunk, {how}", x, "µs", AIOHTTP, raw)
            for how, (x, raw) in streams.items()
        ),
        BenchRow("Round a tool call, median", asyncio.run(_tool_call_ms()), "ms"),
        *_verification(sizes.rounds),
        *_growth(sizes.kilobytes),
    ]


def _verification(rounds: int) -> list[BenchRow]:
    """One answer of 2,000 characters with eight sources of 2,000, other texts in every round."""
    convert: Callable[[str], object] | None = None
    with suppress(ImportError):  # a well-known converter, where the benchmark's extra is installed
        convert = importlib.import_module(CONVERTER).slackify_markdown
    spent: dict[str, list[float]] = {}
    for number in range(rounds * 4 + 2):
        draft = turn(number)
        looks: dict[str, Callable[[], object]] = {
            "Repair of an answer of 2,000 characters": partial(repair, draft.text),
            "Repair and all rules, its words those of its sources": partial(check, draft),
            "The same, in other words": partial(check, turn(_OTHERS + number, reworded=True)),
        }
        if convert:
            looks[CONVERTER] = partial(convert, draft.text)
        for name, look in looks.items():
            spent.setdefault(name, []).append(_ms(look))
    medians = {name: statistics.median(times[2:]) for name, times in spent.items()}  # two rounds warm the caches
    known = medians.pop(CONVERTER, None)
    return [BenchRow(name, value, "ms", CONVERTER if known else "", known) for name, value in medians.items()]


def _growth(kilobytes: int) -> list[BenchRow]:
    """Milliseconds per kilobyte of a long answer, as a ratio to those of one kilobyte: 1 if the cost is linear."""
    looks: dict[str, Callable[[Any], object]] = {"Repair": lambda draft: repair(draft.text), "All rules": check}
    rows = []
    for name, look in looks.items():
        small = statistics.median(_ms(partial(look, turn(number, length=1000))) for number in range(10))
        large = _ms(partial(look, turn(0, length=kilobytes * 1000))) / kilobytes
        rows.append(BenchRow(f"{name} of {kilobytes:,} kB, each", large, "ms", "1 kB", small))
    return rows


def _ms(work: Callable[[], object]) -> float:
    """Return milliseconds of this thread's processor time."""
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1000


def bench_json(rows: Sequence[BenchRow]) -> list[dict[str, Any]]:
    """Return the figures as JSON-ready values; null if the machine was too noisy."""

    def figure(value: object) -> object:
        return value if not isinstance(value, float) else round(value, 3) if value > 0 else None

    return [
        {name: figure(value) for name, value in row._asdict().items()} | {"ratio": row.ratio, "noise": row.is_noise}
        for row in rows
    ]


def bench_table(rows: Sequence[BenchRow]) -> Table:
    """Return the figures as a table."""
    table = Table("what", "Orion", "yardstick", "its figure", "ratio")
    for row in rows:
        figures = (row.shown(row.value), row.yardstick, row.shown(row.of_yardstick))
        table.add_row(row.name, *figures, str(row.ratio or ""))
    if any(row.is_noise for row in rows):
        table.caption = f"{TOO_NOISY}: the machine was busy. Run it again, without --quick, when it is idle."
    return table


class FoundTool:
    """A search that returns one source at once."""

    spec = ToolSpec(name="search", description="Finds.", parameters={"type": "object"})

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Return the source."""
        found = (Source(id=1, title="Limits", text=f"{_FACT}."),)
        return ToolResult(ok=bool(arguments), content="1", sources=found)


async def _per_chunk(rounds: int, chunks: int) -> dict[str, tuple[float, float]]:
    """Return microseconds per chunk of a streamed draft, in a whole turn and read by aiohttp alone."""
    spent: dict[tuple[Read, str], list[float]] = {}
    ways = {"in one piece": (1, 0.0), "many to a read": (chunks, 0.0), "one to a read": (chunks, 0.001)}
    for _ in range(rounds + 1):
        for how, (pieces, pause_s) in ways.items():
            # The server runs in its own thread; only the reading thread is timed.
            server = InstantModel(f"{_FACT} [1].", chunks=pieces, pause_s=pause_s)
            with start_blocking_portal() as portal, portal.wrap_async_context_manager(server.open()) as url:
                for read in (_turn, _raw):
                    began = time.thread_time()
                    await read(url)
                    spent.setdefault((read, how), []).append(time.thread_time() - began)

    def cost(read: Read, how: str) -> float:
        # The cost of the same text in one chunk is subtracted: the rest grows with the chunks.
        whole = zip(spent[read, how][1:], spent[read, "in one piece"][1:], strict=True)  # the first call connects
        return statistics.median((many - one) / chunks * 1e6 for many, one in whole)

    return {how: (cost(_turn, how), cost(_raw, how)) for how in ways if how != "in one piece"}


async def _tool_call_ms() -> float:
    call, tools = ToolCall(call_id="b", tool="search", input={"query": "limits"}), {"search": FoundTool()}
    spent = []
    for _ in range(200):
        began = time.perf_counter()
        await call_tool(tools, call, timeout_s=5, max_chars=10_000)
        spent.append((time.perf_counter() - began) * 1000)
    return statistics.median(spent)


async def _turn(url: str) -> None:
    model = OpenAIModel(address=ServerAddress(base_url=url), model="m")
    question = Question(thread=ThreadKey(team="T", channel="C", thread_ts="1"), user="U", text=f"{_FACT}?", ts="1")
    tools = {"search": FoundTool()}
    await run_turn(question, ThreadState(), model=model, tools=tools, budget=Budget(), emit=Recorder())
    await model.aclose()


async def _raw(url: str) -> None:
    async with aiohttp.ClientSession() as http, http.post(f"{url}/chat/completions", json={"stream": True}) as reply:
        async for line in reply.content:
            if line.startswith(b"data: {"):
                json.loads(line.removeprefix(b"data: "))


def turn(number: int, *, length: int = 2000, reworded: bool = False) -> Draft:
    """Return an answer of about ``length`` characters with eight sources of 2,000, in the Markdown of models.

    The same number gives the same texts; other numbers share only the vocabulary. A long answer repeats its
    sources; ``reworded``, in other words.
    """
    chance = random.Random(number)  # noqa: S311 - the same texts in every run
    each = min(1 + length // (_FACT_LENGTH * _PAGES), _PAGE_LENGTH // 200)
    pages = [[_fill(chance, *chance.choice(_DATA["facts"])) for _ in range(each)] for _ in range(_PAGES)]
    # The facts of every source, in an endless cycle.
    sentences = (f"{page[at][reworded]} [{n}]" for at in cycle(range(each)) for n, page in enumerate(pages, start=1))
    text = ""
    while len(text) < length:
        items = "".join(f"- {next(sentences)}\n" for _ in range(3))
        text += f"## Rules\n\n**{next(sentences)}.** {next(sentences)}.\n\n{items}\n"
    (question,) = _fill(chance, "What is there to know about the {system} and its {things}?")
    sources = tuple(_source(n, page, chance) for n, page in enumerate(pages, start=1))
    return Draft(text=text[:length].rpartition("\n")[0], question=question, sources=sources)


def _source(number: int, facts: Sequence[Sequence[str]], chance: random.Random) -> Source:
    fillers = [_fill(chance, _DATA["filler"])[0] for _ in range(len(facts) + _PAGE_LENGTH // 60)]
    pairs = chain.from_iterable(zip((f"{fact}." for fact, _ in facts), fillers, strict=False))
    text = "\n\n".join([*pairs, *fillers[len(facts) :]])[:_PAGE_LENGTH]
    (title,) = _fill(chance, "Handbook of the {system}")
    return Source(id=number, title=title, url=f"https://docs.example/page-{number}", text=text)


def _fill(chance: random.Random, *templates: str) -> tuple[str, ...]:
    picked = {name: chance.choice(words) for name, words in _DATA["words"].items()}
    host = f"{chance.choice('abcdefgh')}{chance.randrange(10_000)}-{chance.randrange(1_000)}"
    numbers = {"n": chance.randrange(2, 95), "day": chance.randrange(1, 28), "year": chance.randrange(1990, 2026)}
    hour = chance.randrange(10, 19)
    return tuple(template.format(**picked, **numbers, hour=hour, host=host) for template in templates)
