"""A deploy with two versions side by side: the newer one's messages and states wait for it, uncounted (H3, E4)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from agent.thread.conversation import ThreadKey
from agent.thread.state import SCHEMA, ThreadState
from agent.thread.store import ThreadStore
from bot.gates.newer_schema import AGAIN_S, PATIENCE_S, NewerVersions, message_schema
from bot.queue.lease import Lease
from bot.queue.queue import Claimed, Mailbox
from bot.queue.worker import OK, Ending
from bot.slack.message import MESSAGE_SCHEMA, Incoming

KEY = ThreadKey(team="T1", channel="C1", thread_ts="1700000000.000100")
LETTER = Incoming(kind="question", thread=KEY, user="U1", ts="1.0", addressed="mention", text="diamonds?").to_json()
NEWER = json.dumps({**json.loads(LETTER), "schema": MESSAGE_SCHEMA + 1, "what_we_know_nothing_of": {}})


@dataclass
class Scene:
    redis: Redis
    mailbox: Mailbox
    handled: list[str] = field(default_factory=list)
    now: float = 0.0

    async def answer(self, claimed: Claimed, _lease: Lease) -> Ending:
        self.handled.append(claimed.body)
        return OK

    async def meets(self, body: str) -> Ending:
        """What becomes of a message that this version claims; the ending is told to the mailbox."""
        await self.mailbox.enqueue(str(KEY), body, event_ids=[body])
        (claimed,) = await self.mailbox.claim("w", 1)
        self.now = self.now or claimed.enqueued_at
        versions = NewerVersions(self.answer, ThreadStore(self.redis), clock=lambda: self.now)
        ending = await versions.handle(claimed, Lease(claimed.leased_until))
        assert await self.mailbox.done(claimed, ending.verb, after_s=ending.after_s)
        return ending


@pytest.fixture
async def scene(redis_client: Redis) -> AsyncIterator[Scene]:
    mailbox = Mailbox(redis_client)
    yield Scene(redis_client, mailbox)
    await mailbox.aclose()


async def test_h3_a_newer_letter_is_left_in_its_place_and_no_try_is_counted(scene: Scene) -> None:
    with capture_logs() as logs:
        ending = await scene.meets(NEWER)
    assert (ending.verb, ending.after_s, scene.handled) == ("giveback", AGAIN_S, [])
    (line,) = logs
    assert (line["event"], line["letter_schema"]) == ("left_for_newer_version", MESSAGE_SCHEMA + 1)
    assert "diamonds" not in str(line)
    await scene.redis.zadd(scene.mailbox.ready_key(str(KEY)), {str(KEY): 1})
    (claimed,) = await scene.mailbox.claim("a newer worker", 1)
    assert (claimed.body, claimed.tries) == (NEWER, 1)


async def test_h3_a_thread_that_a_newer_version_saved_is_left_to_it(scene: Scene) -> None:
    await ThreadStore(scene.redis).save(KEY, ThreadState(mission="m"))
    assert await scene.meets(LETTER) == OK
    await scene.redis.hset(ThreadStore(scene.redis).key(KEY), "schema", str(SCHEMA + 1))
    assert (await scene.meets(LETTER.replace("diamonds", "rubies"))).verb == "giveback"
    assert scene.handled == [LETTER]


async def test_e4_what_an_early_version_saved_without_a_schema_is_read(scene: Scene) -> None:
    store = ThreadStore(scene.redis)
    await store.save(KEY, ThreadState(mission="m"))
    assert await store.schema(str(KEY)) == SCHEMA
    await scene.redis.hdel(store.key(KEY), "schema")
    assert await scene.meets(LETTER) == OK


async def test_h3_after_a_deploy_that_was_taken_back_the_question_is_answered_all_the_same(scene: Scene) -> None:
    await scene.meets(NEWER)
    await scene.redis.zadd(scene.mailbox.ready_key(str(KEY)), {str(KEY): 1})
    scene.now += PATIENCE_S + 1
    (claimed,) = await scene.mailbox.claim("w", 1)
    versions = NewerVersions(scene.answer, ThreadStore(scene.redis), clock=lambda: scene.now)
    with capture_logs() as logs:
        assert await versions.handle(claimed, Lease(claimed.leased_until)) == OK
    assert [line["event"] for line in logs] == ["newer_schema_read_as_far_as_known"]
    assert Incoming.from_json(scene.handled[0]).text == "diamonds?"


@pytest.mark.parametrize("body", ["", "no letter", "[]", '{"schema": "two"}', "{}"])
async def test_what_is_no_letter_is_its_handlers_business(scene: Scene, body: str) -> None:
    assert message_schema(body) == 1
    assert await scene.meets(body or " ") == OK
