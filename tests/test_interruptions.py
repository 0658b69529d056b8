"""People change their mind while Orion is at it, or while it waits: stop, edit, delete (A3, A6)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bot.status import MODEL_AWAY
from tests.openai_server import RESPOND, ScriptedOpenAI, fails, says
from tests.orion_running import CHANNEL, MENTION, Setting, answers, running, shown
from tests.test_end_to_end import DRAFTS, LIMIT, with_server
from tests.waiting import wait_until


async def quiet(setting: Setting) -> bool:
    """Whether nothing is at work or stored."""
    return setting.orion.turns.in_flight == 0 and (await setting.orion.mailbox.depth()).messages == 0


async def test_a6_a_question_that_waits_for_a_rate_limit_is_stopped_at_once(tmp_path: Path, redis_url: str) -> None:
    async with (
        ScriptedOpenAI(decisions=[fails(429, retry_after="60")]) as server,
        running(with_server(tmp_path, redis_url, server)) as setting,
    ):
        ts = setting.ask(f"{MENTION} {LIMIT}")
        calls = setting.workspace.calls
        await setting.workspace.wait_for(lambda: any(c.arguments.get("status") == MODEL_AWAY for c in calls), 20)
        await wait_until(lambda: setting.orion.turns.in_flight == 0, "the question waits")
        setting.ask("stop", thread=ts)
        answer = await setting.answer_to(ts)
        assert shown(answer).startswith("Stopped")
        await wait_until(lambda: quiet(setting), "nothing is left to do")
        assert [c.arguments["status"] for c in calls if c.method == "assistant.threads.setStatus"][-1] == ""


async def test_a3_an_edit_while_the_turn_runs_is_answered_in_place(tmp_path: Path, redis_url: str) -> None:
    gate = asyncio.Event()
    drafts = [says(DRAFTS["good"], before_end=gate), says(DRAFTS["good"])]
    async with (
        ScriptedOpenAI(decisions=[RESPOND, RESPOND], drafts=drafts) as server,
        running(with_server(tmp_path, redis_url, server)) as setting,
    ):
        ts = setting.ask(f"{MENTION} {LIMIT}")
        await server.wait_for_requests(2)
        setting.workspace.edit(CHANNEL, ts, f"{MENTION} How many requests per minute may one key make?")
        gate.set()
        await server.wait_for_requests(4)
        await wait_until(lambda: quiet(setting), "both are done")
        (answer,) = answers(setting.workspace, ts, ts)
        assert "600 requests" in shown(answer)


async def test_a3_an_edit_of_an_older_question_changes_nothing(tmp_path: Path, redis_url: str) -> None:
    drafts = [says(DRAFTS["good"])] * 2
    async with (
        ScriptedOpenAI(decisions=[RESPOND] * 2, drafts=drafts) as server,
        running(with_server(tmp_path, redis_url, server)) as setting,
    ):
        ts = setting.ask(f"{MENTION} {LIMIT}")
        first = await setting.answer_to(ts)
        later = setting.ask("How many requests per minute again?", thread=ts)
        await setting.answer_to(later, thread=ts)
        await wait_until(lambda: quiet(setting), "both are answered")
        setting.workspace.edit(CHANNEL, ts, f"{MENTION} What does error FH-2002 mean?")
        events = setting.workspace.workspace.deliveries.log
        await wait_until(lambda: all(event.acknowledged for event in events), "the edit has arrived")
        await wait_until(lambda: quiet(setting), "the edit is done with")
        assert len(server.requests) == 4
        assert [shown(one) for one in answers(setting.workspace, ts, ts)] == [shown(first)]


async def test_a6_a_stop_while_the_post_is_in_flight_leaves_one_answer(tmp_path: Path, redis_url: str) -> None:
    async with (
        ScriptedOpenAI(decisions=[RESPOND], drafts=[says(DRAFTS["good"])]) as server,
        running(with_server(tmp_path, redis_url, server)) as setting,
    ):
        setting.workspace.faults.hang("chat.postMessage")
        ts = setting.ask(f"{MENTION} {LIMIT}")
        calls = setting.workspace.calls
        await setting.workspace.wait_for(lambda: any(c.method == "chat.postMessage" for c in calls), 20)
        setting.ask("stop", thread=ts)
        await setting.answer_to(ts)
        setting.workspace.faults.release()
        await wait_until(lambda: quiet(setting), "the turn has ended")
        (answer,) = answers(setting.workspace, ts, ts)
        assert "600 requests" in shown(answer)
