"""A deploy with two versions side by side: the newer one's messages and states wait for it, uncounted."""

import json
from dataclasses import replace

from redis.asyncio import Redis
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from agent.thread.conversation import ThreadKey
from agent.thread.state import SCHEMA, ThreadState
from agent.thread.store import ThreadStore
from bot.gates.flow import MAX_NEWER_WAIT_S, NEWER_RETRY_S
from bot.local.model.roster import VISITOR
from bot.queue.claim import OK
from bot.slack.message import MESSAGE_SCHEMA, Access, Incoming
from tests.support.gates import gates

EVERYBODY = Access(allow_external=True, allow_guests=True)
KEY = ThreadKey(team="T1", channel="C1", thread_ts="1700000000.000100")
MESSAGE = Incoming(
    kind="question", thread=KEY, user=VISITOR, ts="1.0", addressed="mention", text="diamonds?", vouched=True
).to_json()
NEWER = json.dumps({**json.loads(MESSAGE), "schema": MESSAGE_SCHEMA + 1, "what_we_know_nothing_of": {}})


async def test_a_newer_message_waits_uncounted_for_its_version_but_not_forever(redis_client: Redis) -> None:
    async with gates(redis_client, EVERYBODY) as at:
        claimed, lease = await at.store_body(str(KEY), NEWER)
        with capture_logs(processors=[merge_contextvars]) as logs:
            ending = await at.flow.handle(claimed, lease)
        assert (ending.verb, ending.after_s, at.through) == ("give_back", NEWER_RETRY_S, [])
        (line,) = logs
        assert (line["event"], line["thread"], len(line["turn_id"])) == ("left_for_newer_version", str(KEY), 32)
        assert "diamonds" not in str(logs)
        assert await at.mailbox.finish(claimed, ending.verb, after_s=ending.after_s)
        await redis_client.zadd(at.mailbox.key(str(KEY), "ready", KEY.team), {str(KEY): 1})
        (again,) = await at.mailbox.claim("a newer worker", 1)
        assert (again.body, again.tries) == (NEWER, 1)
        old = replace(again, enqueued_at=again.enqueued_at - MAX_NEWER_WAIT_S - 1)
        assert await at.flow.handle(old, lease) == OK, "the deploy was taken back"
        assert at.through[0].incoming.text == "diamonds?"


async def test_a_message_kind_that_only_a_newer_version_knows_waits_and_then_ends(redis_client: Redis) -> None:
    async with gates(redis_client, EVERYBODY) as at:
        claimed, lease = await at.store_body(str(KEY), json.dumps({**json.loads(NEWER), "kind": "reaction"}))
        old = replace(claimed, enqueued_at=claimed.enqueued_at - MAX_NEWER_WAIT_S - 1)
        assert await at.flow.handle(old, lease) == OK


async def test_a_thread_that_a_newer_version_saved_is_left_to_it(redis_client: Redis) -> None:
    store = ThreadStore(redis_client)
    await store.save(KEY, ThreadState(mission="m"))
    async with gates(redis_client, EVERYBODY) as at:
        claimed, lease = await at.store_body(str(KEY), MESSAGE)
        assert await at.flow.handle(claimed, lease) == OK
        await redis_client.hset(store.key(KEY), "schema", str(SCHEMA + 1))
        assert (await at.flow.handle(claimed, lease)).verb == "give_back"
        await redis_client.hdel(store.key(KEY), "schema")
        assert await at.flow.handle(claimed, lease) == OK, "an early version saved it without a schema"
        assert [job.facts.state.mission for job in at.through] == ["m", "m"]
