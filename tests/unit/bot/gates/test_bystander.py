"""While Orion waits for one person's answer: others are left in peace, noted, and answered if they ask."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import pytest
from redis.asyncio import Redis

from agent.texts.catalogue import say
from agent.thread.conversation import ThreadKey
from agent.thread.state import PendingQuestion, ThreadState
from agent.thread.store import ThreadStore
from bot.local.model.roster import TEAM_ID, VISITOR
from bot.queue.claim import OK, LeaseLost
from tests.support.gates import ASKS, GateScene
from tests.support.openai_server import RESPOND, ScriptedOpenAI, says
from tests.support.orion_running import (
    CHANNEL,
    MENTION,
    Setting,
    answers,
    idle,
    running,
    settings_in,
    text_of,
    whispers,
)
from tests.support.waiting import wait_until

DRAFT = says("<answer>What do you need it for?</answer>")
OTHER = "U0ONCALL"


@asynccontextmanager
async def asked_back(home: Path, redis_url: str) -> AsyncIterator[tuple[Setting, ScriptedOpenAI, str]]:
    """An Orion that asked its asker for the plan, its model, and the thread."""
    async with ScriptedOpenAI(decisions=[ASKS, *[RESPOND] * 3], drafts=repeat(DRAFT)) as server:
        settings = settings_in(home, redis_url, openai_base_url=server.url, model="m")
        async with running(settings) as setting:
            root = setting.ask(f"{MENTION} How many requests per minute may an API key make?")
            assert "For which plan?" in text_of(await setting.answer_to(root))
            await wait_until(lambda: idle(setting), "Orion asked back")
            yield setting, server, root


async def test_a_bystanders_message_does_not_answer_the_open_question_and_is_not_lost(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    async with asked_back(tmp_path, redis_url) as (setting, server, root):

        async def state() -> ThreadState:
            return await ThreadStore(redis_client).load(ThreadKey(team=TEAM_ID, channel=CHANNEL, thread_ts=root))

        aside = [setting.ask(text, thread=root, user=OTHER) for text in ("The big plan, I think", "Or is it?")]
        await wait_until(lambda: idle(setting), "the bystander is noted")
        assert [answers(setting.workspace, ts, root) for ts in aside] == [[], []]
        assert whispers(setting) == [(OTHER, say("beside", None))]
        waiting = await state()
        assert [(m.user, m.addressed) for m in waiting.history[-2:]] == [(OTHER, False), (OTHER, False)]
        assert waiting.pending_question is not None

        asked = setting.ask(f"{MENTION} How many requests may a key make?", thread=root, user=OTHER)
        assert "What do you need it for?" in text_of(await setting.answer_to(asked, thread=root))
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


async def test_emoji_alone_in_a_thread_are_a_reaction_unless_they_answer_a_question(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    async with asked_back(tmp_path, redis_url) as (setting, _, root):
        beside = setting.ask(":eyes:", thread=root, user=OTHER)
        await wait_until(lambda: idle(setting), "it is left alone")
        assert (answers(setting.workspace, beside, root), whispers(setting)) == ([], [])
        yes = setting.ask(":+1::skin-tone-3:", thread=root)
        await setting.answer_to(yes, thread=root)
        place = ThreadKey(team=TEAM_ID, channel=CHANNEL, thread_ts=root)
        await wait_until(lambda: idle(setting), "the turn is over")
        assert (await ThreadStore(redis_client).load(place)).answers == {"plan": ":+1::skin-tone-3:"}
        thanks = setting.ask(":tada: :raised_hands:", thread=root)
        await wait_until(lambda: idle(setting), "it is left alone")
        assert answers(setting.workspace, thanks, root) == []
        more = setting.ask(":+1: and for partners?", thread=root)
        await setting.answer_to(more, thread=root)


async def test_only_the_lease_holder_records_and_an_ephemeral_message_may_fail(
    redis_client: Redis, at: GateScene
) -> None:
    place, _ = at.slack.ask()
    pending = PendingQuestion(key="plan", text="Which?", user=VISITOR)
    await ThreadStore(redis_client).save(place, ThreadState(pending_question=pending))
    said = {"thread": place, "addressed": "follow_up", "vouched": True}
    claimed, lease = await at.store(**said, user=OTHER, ts="9.0", text="Hm")
    stale = replace(claimed, fence=replace(claimed.fence, token="0"))
    with pytest.raises(LeaseLost):
        await at.flow.handle(stale, lease)
    at.slack.server.faults.fail("chat.postEphemeral", "user_not_in_channel")
    assert [await at.flow.handle(claimed, lease) for _ in range(2)] == [OK, OK]
    assert [m.text for m in (await ThreadStore(redis_client).load(place)).history] == ["Hm"]
    assert at.through == []
    await at.mailbox.finish(claimed, "ok")
    await at.knock(**said, user=VISITOR, ts="9.1", text="The partner plan")
    assert len(at.through) == 1
