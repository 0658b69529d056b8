"""Where Slack lets an app read one thread a minute, a mention in a thread is answered all the same."""

import asyncio
from pathlib import Path

from agent.texts.catalogue import say
from bot.local.model.limits import Strictness
from tests.support.orion_running import CHANNEL, MENTION, running, settings_in, shown

QUESTION = f"{MENTION} How many requests per minute may one API key send?"
ONE_A_MINUTE = Strictness(calls_a_minute={"conversations.replies": 1})


async def test_one_reading_a_minute_keeps_nobody_waiting_and_the_answer_says_what_it_did_not_see(
    tmp_path: Path, redis_url: str
) -> None:
    async with running(settings_in(tmp_path, redis_url), strictness=ONE_A_MINUTE) as setting:
        roots = [setting.workspace.post("U0ONCALL", CHANNEL, f"Thread {number}") for number in range(2)]
        first = setting.ask(QUESTION, thread=roots[0])
        assert say("file_unseen", None) not in shown(await setting.answer_to(first, thread=roots[0]))
        async with asyncio.timeout(10):
            second = setting.ask(QUESTION, thread=roots[1])
            assert say("file_unseen", None) in shown(await setting.answer_to(second, thread=roots[1]))
        refused = [call for call in setting.workspace.calls if call.method == "conversations.replies"]
        assert len(refused) == 2, "the refusal is remembered, and nobody asks again before its time"
