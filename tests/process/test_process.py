"""`orion serve` as a process of its own: killed, restarted, stopped, traced, and its log read afterwards."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from agent.model.prompts import NOT_FOUND
from bot.app import open_orion
from bot.cli.serve import HANDBOOK, run_until_stopped, settings_for
from bot.cli.signals import Stopping
from bot.documents.open import corpus_of
from bot.local.documents import DocsFolder
from bot.local.model.limits import LENIENT
from bot.local.server import LocalWorkspace
from bot.settings import Settings
from tests.support.langfuse_receiver import LangfuseReceiver
from tests.support.openai_server import RESPOND, Scripted, ScriptedOpenAI, calls, says
from tests.support.orion_running import CHANNEL, MENTION, answers, process, serve_environment, settings_in, shown
from tests.support.waiting import wait_until

LIMIT = "How many requests per minute may an API key make?"
GOOD = "<answer>Each API key may make 600 requests a minute [1].</answer>"
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


ANSWERABLE = "How many requests per minute may an API key make? The {word} team asks."
QUESTIONS = {
    "zebrafinch": ANSWERABLE,
    "heliotrope": ANSWERABLE,
    "bandicoot": ANSWERABLE,
    "periwinkle": ANSWERABLE,
    "quetzal": "quetzal?",
    "ocelot": ANSWERABLE,
    "narwhal": ANSWERABLE,
}
"""One question for each ending of a turn, known by a word that stands in no document."""
DRAFTS = {
    "zebrafinch": GOOD,
    "heliotrope": "<answer>Each API key may make 600 requests a minute [1]. A team may make 987654 [1].</answer>",
    "bandicoot": "<answer>Each API key may make 987654 requests a minute [1].</answer>",
    "periwinkle": f"<answer>{NOT_FOUND}</answer>",
    "quetzal": "<answer>The quetzal was first described in 1832 and lives in cloud forests.</answer>",
}
ASKED_BACK = "Which marmoset do you mean?"


def asked_about(request: Mapping[str, Any]) -> str:
    """The word of the question that a request of Orion's is about."""
    text = json.dumps(request["messages"])
    return next(word for word in QUESTIONS if word in text)


def decision(request: Mapping[str, Any]) -> Scripted:
    return (
        calls(("ask_user", {"question": ASKED_BACK, "key": "which"})) if asked_about(request) == "ocelot" else RESPOND
    )


@pytest.mark.parametrize("mode", ["socket", "http"])
async def test_g1_no_text_and_no_secret_in_any_log_line(mode: str, tmp_path: Path) -> None:
    """Every ending of a turn, an edit, a deletion and a bad signature: the log has the events, and nobody's words."""
    never = asyncio.Event()

    def draft(request: Mapping[str, Any]) -> Scripted:
        word = asked_about(request)
        return says(DRAFTS[word]) if word in DRAFTS else says("<answer>Each API key may", before_end=never)

    async with workspace() as opened, ScriptedOpenAI(decisions=decision, drafts=draft) as server:
        environment = serve_environment(
            opened, tmp_path, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="sk-test-abcdefghijklmnop", ORION_MODEL="m"
        )
        log = tmp_path / "log"
        async with process(["serve", "--mode", mode], environment, log) as served:
            if mode == "socket":
                await connected(opened)
            else:
                opened.events_url = f"http://127.0.0.1:{await port_in(log)}/slack/events"
                assert await unsigned(opened.events_url, {"text": ANSWERABLE, "token": "xoxb-forged-badger"}) == 401
            turns = await every_ending(opened, log)
            served.send_signal(signal.SIGTERM)
            assert await served.wait() == 0
        text = log.read_text()
        lines = [json.loads(line) for line in text.splitlines()]
        ended = {line["outcome"] for line in lines if line["event"] == "turn_outcome"}
        assert ended == {"answered", "partial", "failed", "refused", "unsourced", "asked"}
        happened = {line["event"] for line in lines}
        assert {"turn_stopped", "answer_delivered", "event_stored", "turn_ended"} <= happened
        assert ("slack_signature_refused" in happened) is (mode == "http")
        assert {line["turn_id"] for line in lines if line["event"] == "turn_outcome"} <= turns
        words = ["987654", "requests a minute", "requests per minute", "API key", "cloud forests", "marmoset", "badger"]
        secrets = ["sk-test", "You steer Orion", opened.bot_token, opened.app_token, opened.signing_secret]
        assert [word for word in [*QUESTIONS, *words, *secrets] if word in text] == []


async def every_ending(opened: LocalWorkspace, log: Path) -> set[str]:
    """Ask each question, stop one, edit one, delete one. Returns the ids of the turns whose answers stood in Slack."""
    asked = {
        word: opened.post(opened.visitor, CHANNEL, f"{MENTION} {question.format(word=word)}")
        for word, question in QUESTIONS.items()
    }
    running = asked.pop("narwhal")
    shown_for = {word: await answered(opened, ts) for word, ts in asked.items()}
    assert "marmoset" in shown_for["ocelot"]
    assert "left out" in shown_for["heliotrope"]
    turns = {turn_of(opened, ts) for ts in asked.values()}
    opened.post(opened.visitor, CHANNEL, "stop", running)
    await wait_until(lambda: "turn_stopped" in log.read_text(), "the turn is stopped")
    edited = asked["zebrafinch"]
    opened.edit(CHANNEL, edited, f"{MENTION} {QUESTIONS['bandicoot'].format(word='bandicoot')}")
    await opened.wait_for(lambda: turn_of(opened, edited) not in turns, 30)
    opened.delete(CHANNEL, asked["heliotrope"])
    await opened.wait_for(lambda: not answers(opened, asked["heliotrope"], asked["heliotrope"]), 30)
    return turns | {turn_of(opened, edited)}


def turn_of(opened: LocalWorkspace, ts: str) -> str:
    """The id of the turn whose answer stands under this question."""
    return str(answers(opened, ts, ts)[0]["metadata"]["event_payload"]["turn_id"])


async def port_in(log: Path) -> int:
    """The port that a process says it opened."""
    found: list[int] = []

    def opened() -> bool:
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        found.extend(line["port"] for line in lines if line["event"] == "pages_open")
        return bool(found)

    await wait_until(opened, "the pages are open", 60)
    return found[0]


async def unsigned(url: str, body: Mapping[str, str]) -> int:
    """What somebody who does not know the signing secret is told."""
    headers = {"X-Slack-Request-Timestamp": str(int(time.time())), "X-Slack-Signature": "v0=badger"}
    async with aiohttp.ClientSession() as attacker, attacker.post(url, json=body, headers=headers) as reply:
        return reply.status


async def test_h3_drain_lets_a_running_turn_end(tmp_path: Path) -> None:
    gate = asyncio.Event()
    drafts = [says("<answer>Each API key may make 600", " requests a minute [1].</answer>", before_end=gate)]
    async with workspace() as opened, ScriptedOpenAI(decisions=[RESPOND], drafts=drafts) as server:
        environment = serve_environment(
            opened, tmp_path, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="sk-test", ORION_MODEL="m"
        )
        log = tmp_path / "log"
        async with process(["serve"], environment, log) as served:
            await connected(opened)
            ts = opened.post(opened.visitor, CHANNEL, f"{MENTION} {LIMIT}")
            await server.wait_for_requests(2)
            served.send_signal(signal.SIGTERM)
            await wait_until(lambda: "turns_draining" in log.read_text(), "it drains")
            gate.set()
            assert await served.wait() == 0
            assert len(answers(opened, ts, ts)) == 1


async def test_h3_a_turn_that_outlasts_the_drain_is_given_back_and_answered_once(
    tmp_path: Path, redis_url: str
) -> None:
    """The same way as `orion serve` ends, with less patience than a deployment has."""
    never = asyncio.Event()
    drafts = [says("<answer>Each API key may", before_end=never), says(GOOD)]
    async with (
        workspace() as opened,
        ScriptedOpenAI(decisions=[RESPOND] * 2, drafts=drafts) as server,
    ):
        key = SecretStr("sk-test")
        settings = settings_in(tmp_path, redis_url, openai_base_url=server.url, openai_api_key=key, model="m")
        settings = settings_for(settings.model_copy(update={"docs": (HANDBOOK,)}), opened)
        with capture_logs() as log:
            async with serving(settings, drain_s=0.2):
                await connected(opened)
                ts = opened.post(opened.visitor, CHANNEL, f"{MENTION} {LIMIT}")
                await server.wait_for_requests(2)
        assert [line["verb"] for line in log if line["event"] == "turn_ended"] == ["giveback"]
        assert answers(opened, ts, ts) == []
        async with serving(settings, drain_s=5):
            assert "600 requests" in await answered(opened, ts)
        assert len(answers(opened, ts, ts)) == 1


@asynccontextmanager
async def serving(settings: Settings, *, drain_s: float) -> AsyncIterator[None]:
    """Orion at work as `orion serve` runs it; leaving the block is its first signal."""
    whole = asyncio.current_task()
    assert whole
    stopping = Stopping(whole=whole)
    async with (
        open_orion(settings, corpus_of(settings), concurrency=5, socket=True, drain_s=drain_s) as orion,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(run_until_stopped(orion, stopping, work=True))
        yield
        stopping.heard()
