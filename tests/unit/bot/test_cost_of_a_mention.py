"""The cost of one easy mention: trips and commands of Redis, bytes kept there, calls of Slack, log lines."""

from itertools import repeat
from pathlib import Path

import structlog
from redis.asyncio import Redis
from structlog.testing import LogCapture

from bot.queue.queue import load_script
from tests.support.openai_server import RESPOND, ScriptedOpenAI, says
from tests.support.orion_running import MENTION, Setting, running, settings_in
from tests.support.redis_tap import tap_redis
from tests.support.scripted_orion import DRAFTS
from tests.support.waiting import wait_until

QUESTION = f"{MENTION} How many requests per minute may one API key send?"
POLLING = ("claim", "waiting", "beat")


async def test_one_easy_mention_costs_few_round_trips_bytes_and_log_lines(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    polled = frozenset(load_script(redis_client, name).sha for name in POLLING)
    async with (
        ScriptedOpenAI(decisions=repeat(RESPOND), drafts=repeat(says(DRAFTS["good"]))) as model,
        tap_redis(redis_url, polled) as tap,
        running(settings_in(tmp_path, tap.url, **model.settings, judge="off")) as setting,
    ):
        await ask_and_wait(setting)  # warms up what is asked once
        tap.trips.clear()
        setting.workspace.calls.clear()
        before = await memory(redis_client)
        informed = await ask_and_wait(setting)
        assert [call.method for call in setting.workspace.calls] == ["chat.postMessage"]
        trips = [trip for trip in tap.trips if "HINCRBY" not in trip]  # the figures of all turns, once a second
        assert len(trips) <= 12, trips
        assert sum(map(len, trips)) <= 32, trips  # 14 are one pipeline of GET
        assert len(informed) <= 6, informed
        # A third of it is the evidence that "Why trust this?" shows. Sources have the links of their sections.
        assert await memory(redis_client) - before <= 3_500


async def ask_and_wait(setting: Setting) -> list[str]:
    """Ask and wait until all is over; what the log said of it."""
    lines = LogCapture()
    structlog.configure(processors=[lines])
    await setting.answer_to(setting.ask(QUESTION))
    await wait_until(lambda: any(line["event"] == "turn_ended" for line in lines.entries), "the turn is over")
    return [line["event"] for line in lines.entries if line["log_level"] == "info"]


async def memory(redis: Redis) -> int:
    """Bytes of all keys except a day's figures, which do not grow with its questions."""
    keys = [key async for key in redis.scan_iter() if ":stats:" not in str(key)]
    return sum([await redis.memory_usage(key) or 0 for key in keys])
