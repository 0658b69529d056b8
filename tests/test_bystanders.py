"""While Orion waits for one person's answer: others are left in peace, noted, and answered if they ask (B6)."""

from __future__ import annotations

from pathlib import Path

from redis.asyncio import Redis

from agent.conversation import ThreadKey
from agent.thread_state import ThreadState
from agent.thread_store import ThreadStore
from bot.local.roster import TEAM_ID, VISITOR
from bot.notices import notice
from tests.openai_server import RESPOND, ScriptedOpenAI, calls, says
from tests.orion_running import CHANNEL, MENTION, answers, running, settings_in, shown
from tests.test_admission import idle, whispers
from tests.waiting import wait_until

ASKS = calls(("ask_user", {"question": "For which plan?", "key": "plan"}))
DRAFT = says("<answer>What do you need it for?</answer>")
OTHER = "U0ONCALL"


async def test_b6_a_bystander_neither_answers_the_open_question_nor_is_lost(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    async with ScriptedOpenAI(decisions=[ASKS, RESPOND, RESPOND], drafts=[DRAFT, DRAFT]) as server:
        settings = settings_in(tmp_path, redis_url, openai_base_url=server.url, model="m")
        async with running(settings) as setting:
            root = setting.ask(f"{MENTION} How many requests per minute may an API key make?")
            assert "For which plan?" in shown(await setting.answer_to(root))

            async def state() -> ThreadState:
                return await ThreadStore(redis_client).load(ThreadKey(team=TEAM_ID, channel=CHANNEL, thread_ts=root))

            aside = [setting.ask(text, thread=root, user=OTHER) for text in ("The big plan, I think", "Or is it?")]
            await wait_until(lambda: idle(setting), "the bystander is noted")
            assert [answers(setting.workspace, ts, root) for ts in aside] == [[], []]
            assert whispers(setting) == [(OTHER, notice("beside", None))]
            waiting = await state()
            assert [(m.user, m.addressed) for m in waiting.history[-2:]] == [(OTHER, False), (OTHER, False)]
            assert waiting.pending_question is not None

            asked = setting.ask(f"{MENTION} How many requests may a key make?", thread=root, user=OTHER)
            assert "What do you need it for?" in shown(await setting.answer_to(asked, thread=root))
            await wait_until(lambda: idle(setting), "the turn is over")
            still = await state()
            assert (still.pending_question, still.mission, still.plan) == (
                waiting.pending_question,
                waiting.mission,
                waiting.plan,
            )

            reply = setting.ask("The small one", thread=root, user=VISITOR)
            await setting.answer_to(reply, thread=root)
            await wait_until(lambda: idle(setting), "the turn is over")
            after = await state()
            assert (after.answers, after.pending_question) == ({"plan": "The small one"}, None)
            assert after.mission == waiting.mission
            assert "The small one" in str(server.requests[-2]["messages"])
