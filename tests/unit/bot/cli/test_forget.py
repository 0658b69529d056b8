"""`orion forget`: a person's or a thread's traces in Redis go, counted by kind, and nothing comes back."""

from pathlib import Path

from redis.asyncio import Redis

from agent.thread.conversation import ThreadKey
from bot.cli.forget import Forgetting
from bot.local.model.roster import BOT_USER, TEAM_ID, VISITOR
from bot.queue.queue import Mailbox
from bot.slack.message import Incoming
from bot.stores.limits import Budgets, Limits
from tests.support.openai_server import HANGS, ScriptedOpenAI
from tests.support.orion_running import CHANNEL, DIRECT, MENTION, Setting, running, settings_in
from tests.support.redis_contents import everything
from tests.support.waiting import wait_until

LIMIT = "How many requests per minute may an API key make?"
OTHER = "U0RELEASE"


async def left_in(redis: Redis) -> str:
    """All that Redis holds, as one text; event ids and the pace of calls (kept for seconds) aside."""
    kept = (await everything(redis)).items()
    return "\n".join(f"{key} {text}" for key, text in kept if ":seen:" not in key and ":pace:" not in key)


async def forget(
    redis: Redis, mailbox: Mailbox, *, user: str = "", thread: str = "", patience_s: float = 30
) -> Forgetting:
    forgetting = Forgetting(redis, mailbox, patience_s=patience_s)
    await (forgetting.person(user) if user else forgetting.thread(thread))
    return forgetting


async def judge(setting: Setting, channel: str, ts: str, user: str) -> None:
    feedback = next(b for m in setting.workspace.messages(channel, None) + setting.workspace.messages(channel, ts)
                    for b in m.get("blocks", []) if b["type"] == "actions")  # fmt: skip
    message = next(m for m in setting.workspace.messages(channel, ts) if feedback in m.get("blocks", []))
    await setting.workspace.click(channel, message["ts"], "orion_feedback", user=user)


async def test_a_person_is_forgotten_and_others_are_not(tmp_path: Path, redis_url: str, redis_client: Redis) -> None:
    async with running(settings_in(tmp_path, redis_url)) as setting:
        mine = setting.ask(f"{MENTION} {LIMIT}")
        await setting.answer_to(mine)
        await judge(setting, CHANNEL, mine, VISITOR)
        await judge(setting, CHANNEL, mine, OTHER)
        direct = setting.ask(LIMIT, channel=DIRECT)
        await setting.answer_to(direct, channel=DIRECT)
        theirs = setting.ask(f"{MENTION} What does error FH-2002 mean?", user=OTHER)
        await setting.answer_to(theirs)
        await wait_until(lambda: waiting(setting, 0), "everything is written")
        purse = Budgets(redis_client, Limits(workspace=10**9))
        for user in (VISITOR, OTHER):
            place = ThreadKey(team=TEAM_ID, channel=CHANNEL, thread_ts=mine)
            spender = Incoming(kind="question", thread=place, user=user, ts="1", addressed="mention")
            async with purse.count_turn(spender) as tokens:
                tokens.add(5)
        found = await forget(redis_client, setting.orion.mailbox, user=VISITOR)
        assert found.counts.pop("feedback") >= 1
        assert dict(+found.counts) == {
            "conversations": 2,
            "turn records": 2,
            "notes about the person": 1,
            "notes about threads": 1,
            "days of spending": 1,
        }
        left = await left_in(redis_client)
        assert VISITOR not in left
        assert DIRECT not in left
        assert OTHER in left
        again = await forget(redis_client, setting.orion.mailbox, user=VISITOR)
        assert (+again.counts, again.running) == ({}, [])
        later = setting.ask(f"{MENTION} What does error FH-3001 mean?", thread=mine, user=OTHER)
        await setting.answer_to(later, thread=mine)


async def test_a_thread_is_forgotten_by_its_key_or_by_a_link(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    link = f"https://acme.slack.com/archives/{CHANNEL}/p{{}}"
    async with running(settings_in(tmp_path, redis_url)) as setting:
        other = setting.ask(f"{MENTION} What does error FH-2002 mean?")
        await setting.answer_to(other)
        for form in ("key", "link", "reply"):
            ts = setting.ask(f"{MENTION} {LIMIT}")
            answer = await setting.answer_to(ts)
            await judge(setting, CHANNEL, ts, VISITOR)
            await wait_until(lambda: waiting(setting, 0), "everything is written")
            references = {
                "key": f"{TEAM_ID}:{CHANNEL}:{ts}",
                "link": link.format(ts.replace(".", "")),
                "reply": link.format(answer["ts"].replace(".", "")) + f"?thread_ts={ts}&cid={CHANNEL}",
            }
            found = await forget(redis_client, setting.orion.mailbox, thread=references[form])
            assert found.counts["conversations"] == found.counts["turn records"] == found.counts["feedback"] == 1
            left = await left_in(redis_client)
            assert (ts in left, other in left) == (False, True), form


async def test_a_running_turn_is_cancelled_first_and_writes_nothing_back(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    async with ScriptedOpenAI(decisions=[HANGS]) as server:
        more = {"openai_base_url": server.url, "model": "m"}
        async with running(settings_in(tmp_path, redis_url, **more)) as setting:
            ts = setting.ask(f"{MENTION} {LIMIT}")
            await server.wait_for_requests(1)
            setting.ask("And what of FH-2002?", thread=ts)
            behind = setting.ask(f"{MENTION} What does FH-2002 mean?", thread=ts)
            await wait_until(lambda: waiting(setting, 3), "both wait behind")
            found = await forget(redis_client, setting.orion.mailbox, user=VISITOR)
            assert found.running == []
            assert (found.counts["questions"], found.counts["turns cancelled"]) == (2, 1)
            assert VISITOR not in await left_in(redis_client)
            said = [m["text"] for m in setting.workspace.messages(CHANNEL, ts) if m.get("user") == BOT_USER]
            assert said == []
            assert behind
            assert await waiting(setting, 0)


async def waiting(setting: Setting, count: int) -> bool:
    return (await setting.orion.mailbox.depth()).messages == count


def incoming(user: str, ts: str, place: ThreadKey) -> str:
    return Incoming(kind="question", thread=place, user=user, ts=ts, addressed="mention", text="?").to_json()


async def test_messages_can_be_removed_anywhere_in_a_mailbox_and_the_rest_keeps_its_order(redis_client: Redis) -> None:
    place = ThreadKey(team="T1", channel="C1", thread_ts="1.0")
    mailbox = Mailbox(redis_client, lease_s=0.4)
    for number, user in enumerate(("U1", "U2", "U1", "U2", "U1")):
        await mailbox.enqueue(str(place), incoming(user, f"{number}.0", place), event_ids=[f"e{number}"])
    await mailbox.enqueue(str(place), "garbage", event_ids=["g"])
    found = await forget(redis_client, mailbox, user="U1")
    assert found.counts["questions"] == 3
    heads = []
    for _ in range(3):
        (claimed,) = await mailbox.claim("w", 5)
        heads.append(claimed.body)
        if claimed.body == "garbage":
            await mailbox.finish(claimed, "dead", reason="unreadable")
        else:
            await mailbox.finish(claimed, "dead" if len(heads) > 1 else "ok", reason="no end")
    assert [Incoming.from_json(body).ts for body in heads[:2]] == ["1.0", "3.0"]
    gone = await forget(redis_client, mailbox, thread="T1:C1:1.0")
    assert gone.counts["dead letters"] == 2
    assert await mailbox.claim("w", 5) == []
    assert not [key async for key in redis_client.scan_iter() if "1.0" in key and ":seen:" not in key]
    await mailbox.aclose()


async def test_a_hanging_worker_is_named_and_a_dead_one_is_not_waited_for_long(redis_client: Redis) -> None:
    place = ThreadKey(team="T1", channel="C1", thread_ts="1.0")
    for lease_s, running_still in ((30.0, ["T1:C1:1.0"]), (0.2, [])):
        await redis_client.flushall()
        mailbox = Mailbox(redis_client, lease_s=lease_s)
        await mailbox.enqueue(str(place), incoming("U1", "1.0", place), event_ids=["e"])
        await mailbox.enqueue(str(place), incoming("U2", "2.0", place), event_ids=["f"])
        await mailbox.claim("w", 1)
        found = await forget(redis_client, mailbox, user="U1", patience_s=0.6)
        assert (found.running, found.counts["questions"]) == (running_still, 0 if running_still else 1)
        assert len(await mailbox.claim("w", 1)) == (0 if running_still else 1)
        await mailbox.aclose()


async def test_account_data_is_deleted_too(redis_client: Redis) -> None:
    for key in ("orion:person:T1:U1", "orion:told:T1:U1:guest", "orion:told:T1:U11:guest"):
        await redis_client.set(key, "{}")
    await redis_client.set("orion:handed:T1:C1:1.2", "turn U1 U2")
    await redis_client.hset("orion:proposals:T1", mapping={"a": '{"proposer": "U1"}', "b": '{"proposer": "U11"}'})
    mailbox = Mailbox(redis_client)
    counts = (await forget(redis_client, mailbox, user="U1")).counts
    assert counts == {"notes about the person": 2, "notes about threads": 1, "proposed answers": 1}
    assert await redis_client.dbsize() == 2
    await mailbox.aclose()
