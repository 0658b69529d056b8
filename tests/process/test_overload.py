"""Attacks on what a process has little of: descriptors, and the tokens of a day."""

import asyncio
import json
import signal
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from itertools import chain, cycle, repeat
from pathlib import Path

import aiohttp
from redis.asyncio import Redis

from bot.cli.local import settings_for
from bot.local.model.limits import LENIENT
from bot.local.model.roster import BOT_USER, VISITOR, Channel
from bot.local.server import LocalWorkspace
from tests.process.chaos.crew import crew
from tests.process.chaos.ledger import read_log
from tests.process.chaos.member import Role
from tests.support.openai_server import RESPOND, ScriptedOpenAI, says
from tests.support.orion_running import (
    CHANNEL,
    MENTION,
    answers,
    posts,
    process,
    serve_environment,
    settings_in,
    text_of,
    text_pages,
)
from tests.support.waiting import wait_until

LIMIT = "How many requests per minute may an API key make?"
STARTS = [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n", b"POST /slack/events HTTP/1.1\r\nX-A: ", b"\x16\x03\x01"]
HEADERS_END_S = 10


async def test_idle_and_slow_connections_do_not_block_events_for_orion_serve(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(LocalWorkspace(docs=(text_pages(),), strictness=LENIENT))
        command = ["serve", "--mode", "http", "--port", "0"]
        environment = serve_environment(opened, tmp_path)
        orion = await stack.enter_async_context(process(command, environment, log, descriptors=256))
        await wait_until(lambda: "pages_open" in log.read_text(), "the pages are open", 60)
        (port,) = [json.loads(line)["port"] for line in log.read_text().splitlines() if "pages_open" in line]
        opened.http.url = f"http://127.0.0.1:{port}/slack/events"
        client = await stack.enter_async_context(aiohttp.ClientSession())
        group = await stack.enter_async_context(asyncio.TaskGroup())
        closed = []
        for _ in range(5):  # the kernel queues 128: it forgets a silent connection beyond that, but not at the client
            opened_now = [await asyncio.open_connection("127.0.0.1", port) for _ in range(12) for _ in STARTS]
            closed += [
                group.create_task(_wait_for_close(*each, start))
                for each, start in zip(opened_now, cycle(STARTS), strict=False)
            ]
            async with client.get(f"http://127.0.0.1:{port}/healthz") as reply:  # those before it are accepted
                assert reply.status == 200
        for _ in range(3):
            ts = opened.post(VISITOR, CHANNEL, f"{MENTION} {LIMIT}")
            found = await opened.wait_for(lambda ts=ts: answers(opened, ts, ts), 30)  # type: ignore[misc]
            assert "600 requests" in text_of(found[0])
            async with client.get(f"http://127.0.0.1:{port}/healthz") as reply:
                assert reply.status == 200
        async with asyncio.timeout(2 * HEADERS_END_S):
            await asyncio.wait(closed)
        orion.send_signal(signal.SIGTERM)
        assert await orion.wait() == 0


async def _wait_for_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, start: bytes) -> None:
    """Send the first bytes, and a header now and then. Return once the server closes the connection."""
    with suppress(ConnectionError):
        writer.write(start)
        while True:
            try:
                async with asyncio.timeout(1):
                    if not await reader.read(4096):
                        break
            except TimeoutError:
                writer.write(b"a" if start else b"")
    writer.close()


BURST, TOKENS = 30, 1_000
GOOD = "<answer>Each API key may make 600 requests a minute [1].</answer>"


async def test_a_burst_stays_within_a_daily_budget_even_if_a_worker_is_killed(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    usage = (TOKENS - 100, 100)
    # Time to kill a worker, which may be another one than the worker that asked first; then a second for all to begin.
    decisions = (replace(RESPOND, usage=usage, wait_s=wait_s) for wait_s in chain([5], repeat(1)))
    async with (
        ScriptedOpenAI(decisions=decisions, drafts=repeat(says(GOOD, usage=usage))) as server,
        LocalWorkspace(docs=(text_pages(),), strictness=LENIENT) as opened,
    ):
        more = {**server.settings, "judge": False, "daily_tokens_user": 2 * TOKENS}
        limited = settings_in(tmp_path, redis_url, docs=(text_pages(),), **more)
        with crew(tmp_path / "logs") as processes:
            roles = [Role(name="front", socket=True, concurrency=0), *[Role(name="worker", lease_s=1.0)] * 2]
            front, *workers = [processes.start(role, settings_for(limited, opened)) for role in roles]
            for member in (front, *workers):
                await member.ready()
            await wait_until(lambda: opened.connections == 1, "the front is connected", 60)
            channels = [f"C0BURST{number}" for number in range(BURST)]
            for channel in channels:
                members = {VISITOR, BOT_USER}
                opened.workspace.roster.channels[channel] = Channel(id=channel, name=channel.lower(), members=members)
                opened.post(VISITOR, channel, f"{MENTION} {LIMIT}")
            await wait_until(lambda: "decide" in server.phases(), "a turn has begun", 60)
            begun = {line["at"]: one for one in workers for line in read_log(one) if line["event"] == "mission_set"}
            processes.kill(begun[min(begun)])
            await wait_until(lambda: all(posts(opened, channel) for channel in channels), "each has its reply", 120)
        replies = [text_of(posts(opened, channel)[-1]) for channel in channels]
        assert sum("600 requests" in reply for reply in replies) == 1
        assert sum("budget for today" in reply for reply in replies) == BURST - 1
        (key,) = [key async for key in redis_client.scan_iter("*:tokens:*")]
        assert int(await redis_client.hget(key, f"user:{VISITOR}") or 0) <= 3 * TOKENS  # with those of the killed try
