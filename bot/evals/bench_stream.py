"""What each chunk of a streamed draft costs: a whole turn, beside aiohttp with the same decoder.

The server runs in a thread of its own, and only the time of the thread that reads is counted. The cost of the same text
in one chunk is taken off: what is left grows with the chunks.
"""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import aiohttp

from agent.actions import ToolCall
from agent.budget import Budget
from agent.model.chat_reply import StreamedReply
from agent.model.openai import OpenAIModel
from agent.thread.conversation import Question, ThreadKey
from agent.thread.state import ThreadState
from agent.tools.tool import ToolResult, ToolSpec, call_tool
from agent.turn.loop import run_turn
from bot.evals.bench_bots import InstantModel
from bot.stores.turn_records import Recorder
from verification.types import Source

_CALLS: Final = 200
_FACT: Final = "Each API key may make 600 requests a minute"


class FoundTool:
    """A search that finds one source at once."""

    spec = ToolSpec(name="search", description="Finds.", parameters={"type": "object"})

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """The source."""
        found = (Source(id=1, title="Limits", text=f"{_FACT}."),)
        return ToolResult(ok=bool(arguments), content="1", sources=found)


async def per_chunk(rounds: int, chunks: int) -> dict[str, tuple[float, float]]:
    """Microseconds a chunk, ours and of aiohttp, for chunks that come many to a read and singly."""
    spent: dict[tuple[str, str], list[float]] = {}
    ways = {"in one piece": (1, 0.0), "many to a read": (chunks, 0.0), "one to a read": (chunks, 0.001)}
    for _ in range(rounds + 1):
        for how, (pieces, pause_s) in ways.items():
            with _served(InstantModel(f"{_FACT} [1].", chunks=pieces, pause_s=pause_s)) as url:
                for name, read in (("ours", _turn), ("raw", _raw)):
                    began = time.thread_time()
                    await read(url)
                    spent.setdefault((name, how), []).append(time.thread_time() - began)

    def per_chunk_of(name: str, how: str) -> float:
        whole = zip(spent[name, how][1:], spent[name, "in one piece"][1:], strict=True)  # the first call connects
        return statistics.median((many - one) / chunks * 1e6 for many, one in whole)

    return {how: (per_chunk_of("ours", how), per_chunk_of("raw", how)) for how in ("many to a read", "one to a read")}


async def tool_call_ms() -> float:
    """Milliseconds round a tool that needs no time itself."""
    call, tools = ToolCall(call_id="b", tool="search", input={"query": "limits"}), {"search": FoundTool()}
    spent = []
    for _ in range(_CALLS):
        began = time.perf_counter()
        await call_tool(tools, call, timeout_s=5, max_chars=10_000)
        spent.append((time.perf_counter() - began) * 1000)
    return statistics.median(spent)


async def _turn(url: str) -> None:
    model = OpenAIModel(base_url=url, api_key="", model="m")
    question = Question(thread=ThreadKey(team="T", channel="C", thread_ts="1"), user="U", text=f"{_FACT}?", ts="1")
    await run_turn(
        question, ThreadState(), model=model, tools={"search": FoundTool()}, budget=Budget(), emit=Recorder()
    )
    await model.aclose()


async def _raw(url: str) -> None:
    reader = StreamedReply()
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/chat/completions", json={"stream": True}) as reply,
    ):
        async for chunk in reply.content.iter_any():
            reader.feed(chunk)


@contextmanager
def _served(server: InstantModel) -> Iterator[str]:
    """The server's URL, while it runs in a thread of its own."""
    opened, url = threading.Event(), list[str]()
    loop, closing = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with server.open() as address:
            url.append(address)
            opened.set()
            await closing.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    opened.wait()
    try:
        yield url[0]
    finally:
        loop.call_soon_threadsafe(closing.set)
        thread.join()
        loop.close()
