"""Redis that is emptied during a turn, or restored from a backup that has an answered question: one answer each."""

import asyncio
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tests.support.openai_server import RESPOND, ScriptedOpenAI, says
from tests.support.orion_running import CHANNEL, MENTION, posts, running, settings_in, text_of, whispers
from tests.support.scripted_orion import LIMIT, quiet, with_server
from tests.support.waiting import wait_until

SENTENCE = "Each API key may make 600 requests a minute [1]."
LONG = f"<thinking>It is [1].</thinking><answer>{SENTENCE}\n\n{SENTENCE}\n\n{SENTENCE}</answer>"


@pytest.mark.parametrize("streams", [False, True])
async def test_a_question_in_work_when_redis_is_emptied_is_answered_once(
    tmp_path: Path, redis_url: str, redis_client: Redis, monkeypatch: pytest.MonkeyPatch, *, streams: bool
) -> None:
    monkeypatch.setattr("bot.turn.recovery.RECHECK_AT_S", (0.0,))
    gate = asyncio.Event()
    async with ScriptedOpenAI(decisions=lambda _: RESPOND, drafts=lambda _: says(LONG, before_end=gate)) as server:
        settings = with_server(tmp_path, redis_url, server).model_copy(update={"streams": streams})
        async with running(settings) as setting:
            ts = setting.ask(f"{MENTION} {LIMIT}")
            await server.wait_for_requests(2)
            calls = setting.workspace.calls
            if streams:
                await setting.workspace.wait_for(lambda: any(call.method == "chat.appendStream" for call in calls))
            await redis_client.flushall()
            gate.set()
            answer = await setting.answer_to(ts)
            assert "600 requests" in text_of(answer)
            await wait_until(lambda: quiet(setting), "nothing is left to do")
            assert [post["ts"] for post in posts(setting.workspace, CHANNEL)] == [answer["ts"]]


async def test_a_question_that_a_backup_brings_back_is_not_answered_again(
    tmp_path: Path, redis_url: str, redis_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.gates.flow.AGED_S", 0.0)
    settings = settings_in(tmp_path, redis_url)
    async with running(settings, part="front") as front:
        ts = front.ask(f"{MENTION} {LIMIT}")
        await wait_until(lambda: is_stored(redis_client), "the question is stored")
        backup = {key: await redis_client.dump(key) or b"" for key in await redis_client.keys()}
        for _ in range(2):
            async with running(settings, inhabited=front.workspace, part="worker") as setting:
                answer = await front.answer_to(ts)
                await wait_until(lambda: quiet(setting), "nothing is left to do")
            await redis_client.flushall()
            for key, value in backup.items():
                await redis_client.restore(key, 0, value)
        assert [post["ts"] for post in posts(front.workspace, CHANNEL)] == [answer["ts"]]
        assert len([call for call in front.workspace.calls if call.method in {"chat.postMessage", "chat.update"}]) == 1


async def is_stored(redis: Redis) -> bool:
    return bool(await redis.keys("*:mb:*"))


async def test_a_click_on_an_answer_whose_record_is_gone_says_so(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    async with running(settings_in(tmp_path, redis_url)) as setting:
        answer = await setting.answer_to(setting.ask(f"{MENTION} {LIMIT}"))
        await wait_until(lambda: quiet(setting), "the turn is over")
        await redis_client.flushall()
        for count, button in enumerate(("orion_feedback", "orion_not_helpful"), 1):
            await setting.workspace.click(CHANNEL, answer["ts"], button)
            await setting.workspace.wait_for(lambda: whispers(setting)[count - 1 :])  # noqa: B023 - waits at once
        assert {text for _, text in whispers(setting)} == {"I no longer have the record of this answer."}
