"""`orion serve` as a process of its own: killed, restarted, stopped, traced, and its log read afterwards."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from bot.local.documents import DocsFolder
from bot.local.limits import LENIENT
from bot.local.server import LocalWorkspace
from bot.serving import HANDBOOK
from tests.langfuse_receiver import LangfuseReceiver
from tests.openai_server import RESPOND, ScriptedOpenAI, says
from tests.orion_running import CHANNEL, MENTION, answers, process, serve_environment, shown
from tests.waiting import wait_until

LIMIT = "How many requests per minute may an API key make?"
GOOD = "<answer>Each API key may make 600 requests a minute [1].</answer>"
SECRET_QUESTION = "Which colour has the zebrafinch protocol of the heliotrope department?"
STOPS_WITHIN_S = 10


@asynccontextmanager
async def workspace() -> AsyncIterator[LocalWorkspace]:
    opened = LocalWorkspace(DocsFolder(roots=(HANDBOOK,)), strictness=LENIENT)
    await opened.start()
    try:
        yield opened
    finally:
        await opened.stop()


async def connected(opened: LocalWorkspace) -> None:
    await wait_until(lambda: opened.connections == 1, "orion serve is connected", 60)


async def answered(opened: LocalWorkspace, ts: str, thread: str | None = None) -> str:
    found = await opened.wait_for(lambda: answers(opened, ts, thread or ts), 60)
    return shown(found[0])


@pytest.mark.chaos
async def test_h3_question_of_a_killed_process_is_answered_exactly_once(tmp_path: Path) -> None:
    never = asyncio.Event()
    drafts = [says("<answer>Each API key may", before_end=never), says(GOOD), says(GOOD)]
    async with workspace() as opened, ScriptedOpenAI(decisions=[RESPOND] * 3, drafts=drafts) as server:
        environment = serve_environment(
            opened, tmp_path, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="sk-test", ORION_MODEL="scripted"
        )
        async with process(["serve"], environment, tmp_path / "first.log") as first:
            await connected(opened)
            ts = opened.post(opened.visitor, CHANNEL, f"{MENTION} {LIMIT}")
            await server.wait_for_requests(2)
            first.kill()
            await first.wait()
        assert answers(opened, ts, ts) == []
        async with process(["serve"], environment, tmp_path / "second.log") as second:
            assert "600 requests" in await answered(opened, ts)
            later = opened.post(opened.visitor, CHANNEL, f"{MENTION} {LIMIT}", ts)
            await answered(opened, later, ts)
            assert len(answers(opened, ts, ts)) == 1
            second.send_signal(signal.SIGTERM)
            assert await second.wait() == 0


@pytest.mark.parametrize("host", ["receiver", "closed", "hanging"])
async def test_g2_langfuse_neither_slows_nor_keeps_the_process(host: str, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(workspace())
        receiver = await stack.enter_async_context(LangfuseReceiver(hang=host == "hanging"))
        url = "http://127.0.0.1:9" if host == "closed" else receiver.url
        environment = serve_environment(
            opened,
            tmp_path,
            LANGFUSE_PUBLIC_KEY="pk-lf-test",
            LANGFUSE_SECRET_KEY="sk-lf-test",
            LANGFUSE_HOST=url,
        )
        served = await stack.enter_async_context(process(["serve"], environment, tmp_path / "log"))
        await connected(opened)
        for _ in range(3):
            ts = opened.post(opened.visitor, CHANNEL, f"{MENTION} {LIMIT}")
            assert "600 requests" in await answered(opened, ts)
        began = time.monotonic()
        served.send_signal(signal.SIGTERM)
        assert await served.wait() == 0
        assert time.monotonic() - began < STOPS_WITHIN_S
        if host == "receiver":
            assert receiver.score("verify_pass") == [1, 1, 1]
            assert {span.kind for span in receiver.spans} >= {"agent", "generation", "retriever", "guardrail"}


async def test_g1_no_text_and_no_secret_in_any_log_line(tmp_path: Path) -> None:
    """Every ending of a turn, and a bad signature: the log has the events, and nothing anybody wrote."""
    drafts = [says(GOOD), *[says("<answer>Each API key may make 987654 requests a minute [1].</answer>")] * 3]
    async with workspace() as opened, ScriptedOpenAI(decisions=[RESPOND] * 2, drafts=drafts) as server:
        environment = serve_environment(
            opened, tmp_path, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="sk-test-abcdefghijklmnop", ORION_MODEL="m"
        )
        log = tmp_path / "log"
        async with process(["serve"], environment, log) as served:
            await connected(opened)
            ts = opened.post(opened.visitor, CHANNEL, f"{MENTION} {LIMIT}")
            await answered(opened, ts)
            second = opened.post(opened.visitor, CHANNEL, SECRET_QUESTION, ts)
            await answered(opened, second, ts)
            served.send_signal(signal.SIGTERM)
            await served.wait()
        text = log.read_text()
        assert '"event":"turn_outcome"' in text
        private = ["zebrafinch", "heliotrope", "987654", "requests a minute", "API key", "sk-test", "You steer Orion"]
        secrets = [opened.bot_token, opened.app_token, opened.signing_secret]
        assert [word for word in [*private, *secrets] if word in text] == []


async def test_h3_drain_ends_with_running_turns_given_back_or_done(tmp_path: Path) -> None:
    gate = asyncio.Event()
    drafts = [says("<answer>Each API key may make 600", " requests a minute [1].</answer>", before_end=gate)]
    async with workspace() as opened, ScriptedOpenAI(decisions=[RESPOND], drafts=drafts) as server:
        environment = serve_environment(
            opened, tmp_path, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="sk-test", ORION_MODEL="m"
        )
        async with process(["serve"], environment, tmp_path / "log") as served:
            await connected(opened)
            ts = opened.post(opened.visitor, CHANNEL, f"{MENTION} {LIMIT}")
            await server.wait_for_requests(2)
            served.send_signal(signal.SIGTERM)
            gate.set()
            assert await served.wait() == 0
            assert len(answers(opened, ts, ts)) == 1
