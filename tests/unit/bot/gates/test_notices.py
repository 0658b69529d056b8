"""Paused, or nothing left to spend: who is told what, and how often. Whole ways are in ``test_admission``."""

from redis.asyncio import Redis

from agent.texts.catalogue import say
from bot.slack.message import Incoming
from bot.stores.budgets import Limits
from bot.stores.switches import Pausing
from tests.support.gates import gates

CHANNEL = "C0GENERAL"


async def test_notice_whose_sender_died_before_it_was_noted_stands_once(redis_client: Redis) -> None:
    async with gates(redis_client) as at:
        await Pausing(redis_client).pause("stocktaking")
        claimed, lease = await at.store(vouched=True)
        for _ in range(2):
            at.slack.server.faults.lose_response("chat.postMessage")
            assert (await at.flow.handle(claimed, lease)).verb == "giveback"
            async for mark in redis_client.scan_iter("*:mark:*"):
                await redis_client.delete(mark)
        place = Incoming.from_json(claimed.body).thread
        said = [m for m in at.slack.server.messages(CHANNEL, place.thread_ts) if m.get("bot_id")]
        assert [m["text"] for m in said] == [say("paused", None) + "\nstocktaking"]


async def test_on_an_edit_only_its_writer_is_told(redis_client: Redis) -> None:
    async with gates(redis_client, limits=Limits(workspace=1)) as at:
        edit = {"kind": "edit", "edited_ts": "1.0", "vouched": True}
        claimed, lease = await at.store(**edit)
        await Pausing(redis_client).pause()
        for _ in range(2):
            assert (await at.flow.handle(claimed, lease)).verb == "giveback"
        await Pausing(redis_client).resume()
        async with at.budgets.count_turn("t", Incoming.from_json(claimed.body)) as tokens:
            tokens.add(1)
        assert (await at.flow.handle(claimed, lease)).verb == "ok"
        told = [one["text"] for one in at.slack.server.ephemerals(CHANNEL)]
        assert [text.split("\n")[0][:20] for text in told] == [say("paused", None)[:20], told[1][:20]]
        assert say("budget_workspace", None) in told[1]
        assert at.through == []


async def test_notice_that_slack_refuses_for_good_ends_the_question_and_else_it_waits(redis_client: Redis) -> None:
    async with gates(redis_client) as at:
        await Pausing(redis_client).pause()
        claimed, lease = await at.store(vouched=True)
        for error, verb in (("internal_error", "giveback"), ("channel_not_found", "dead")):
            at.slack.server.faults.fail("chat.postMessage", error, times=6)
            assert (await at.flow.handle(claimed, lease)).verb == verb
            at.slack.server.faults.clear()
