"""The gates in a row: messages that are not for Orion, follow-ups without a mention, bystanders."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path

import pytest
from redis.asyncio import Redis
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from agent.texts.catalogue import say
from agent.thread.conversation import ThreadKey, ThreadMessage
from agent.thread.state import SCHEMA, PendingQuestion, ThreadState
from agent.thread.store import ThreadStore
from bot.delivery.answer_key import AnswerKey
from bot.gates.flow import AGED_S, LATE_S, MAX_NEWER_WAIT_S, NEWER_RETRY_S, RETRY_S
from bot.local.model.roster import TEAM_ID, VISITOR
from bot.queue.claim import OK, Claimed, Ending, Lease, LeaseLost, give_back
from bot.slack.message import MESSAGE_SCHEMA, Access, Incoming, ThreadMode
from bot.stores.stores import ThreadModes
from tests.support.gates import ASKS, GateScene, gates
from tests.support.openai_server import RESPOND, ScriptedOpenAI, says
from tests.support.orion_running import (
    CHANNEL,
    DIRECT,
    MENTION,
    Setting,
    answers,
    idle,
    running,
    settings_in,
    text_of,
    whispers,
)
from tests.support.posted_answers import answer
from tests.support.waiting import wait_until

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A thread older than what Redis remembers."""

    at: GateScene
    place: ThreadKey
    ts: str
    thread_modes: ThreadModes

    async def follow_up(self, place: ThreadKey | None = None) -> tuple[Claimed, Lease]:
        """A person continues in the thread without a mention."""
        here = {"thread": place or self.place, "ts": "8000000000.0", "addressed": "follow_up", "user": VISITOR}
        return await self.at.store(**here, unproven=True, vouched=True)

    async def handle(self) -> Ending:
        return await self.at.flow.handle(*await self.follow_up())


@pytest.fixture
async def lost(at: GateScene, redis_client: Redis) -> Lost:
    place, ts = at.slack.ask()
    thread_modes = at.services.stores.thread_modes
    await redis_client.set(thread_modes.key("remembers_since"), "9e9")
    return Lost(at=at, place=place, ts=ts, thread_modes=thread_modes)


@pytest.mark.parametrize(
    ("own", "thread_mode"),
    [
        (("On Tuesdays.",), "engaged"),
        (("On Tuesdays.", say("muted", "de")), "muted"),
        ((say("muted", "de"), "On Tuesdays."), "engaged"),
        ((), "unknown"),
    ],
)
async def test_orions_last_message_decides_the_threads_mode(
    own: Sequence[str], thread_mode: ThreadMode, lost: Lost
) -> None:
    slack = lost.at.slack
    for text in own:
        answer_key = AnswerKey(question_ts=lost.ts, may_exist=False)
        await slack.delivery.post_answer(lost.place, replace(answer(text), sources=()), answer_key)
    claimed, lease = await lost.follow_up()
    assert await lost.at.flow.handle(claimed, lease) == OK
    assert await lost.thread_modes.get(lost.place) == thread_mode
    looks = slack.count("conversations.replies")
    assert await lost.at.flow.handle(claimed, lease) == OK
    assert slack.count("conversations.replies") == looks, "a message that waits for an admin asks Slack once"
    assert len(lost.at.through) == (2 if thread_mode == "engaged" else 0)


async def test_a_later_mention_does_not_count_for_earlier_messages(lost: Lost) -> None:
    await lost.thread_modes.set(lost.place, "engaged")
    assert await lost.handle() == OK
    assert lost.at.through == []
    assert await lost.thread_modes.get(lost.place) == "engaged"


async def test_orion_waits_for_an_outage_of_slack_but_not_for_a_deleted_thread(lost: Lost) -> None:
    lost.at.slack.server.faults.fail("conversations.replies", "internal_error", times=20)
    assert await lost.handle() == give_back(RETRY_S)
    lost.at.slack.server.faults.clear()
    claimed, lease = await lost.follow_up(replace(lost.place, thread_ts="1.000001"))
    assert await lost.at.flow.handle(claimed, lease) == OK
    assert lost.at.through == []


async def test_no_one_is_notified_about_a_message_that_may_not_be_for_orion(lost: Lost) -> None:
    claimed, lease = await lost.follow_up()
    await lost.at.flow.notify_given_up(claimed, lease, "crashed")
    assert lost.at.dead == []
    await lost.thread_modes.set(lost.place, "engaged")
    await lost.at.flow.notify_given_up(claimed, lease, "crashed")
    assert lost.at.dead == [], "nor of one that nobody addressed to Orion"


@pytest.mark.parametrize("answered", [True, False])
async def test_a_late_question_is_answered_unless_slack_shows_an_answer(redis_client: Redis, *, answered: bool) -> None:
    async with gates(redis_client, EVERYBODY) as at:
        place, ts = at.slack.ask()
        if answered:
            await at.slack.delivery.post_answer(place, answer("So."), AnswerKey(question_ts=ts, turn_id="t1"))
        claimed, lease = await at.store(thread=place, ts=ts, event_ts=ts)
        late = replace(claimed, enqueued_at=claimed.enqueued_at + LATE_S + 60)
        assert await at.flow.handle(late, lease) == OK
        assert len(at.through) == (0 if answered else 1)


async def test_a_late_question_that_a_later_turn_read_in_slack_is_answered(redis_client: Redis) -> None:
    async with gates(redis_client, EVERYBODY) as at:
        place, ts = at.slack.ask()
        claimed, lease = await at.store(thread=place, ts=ts, event_ts=ts)
        read = ThreadMessage(role="user", text="How many?", user=VISITOR, ts=ts)
        await at.services.stores.save(claimed, place, ThreadState(history=(read,)))
        assert await at.flow.handle(replace(claimed, enqueued_at=claimed.enqueued_at + AGED_S + 1), lease) == OK
        assert len(at.through) == 1


async def test_the_shortcut_may_use_an_old_message_again(redis_client: Redis) -> None:
    async with gates(redis_client, EVERYBODY) as at:
        place, ts = at.slack.ask()
        await at.slack.delivery.post_answer(place, answer("So."), AnswerKey(question_ts=ts, turn_id="t1"))
        claimed, lease = await at.store(thread=place, ts=ts)
        await at.flow.handle(replace(claimed, enqueued_at=claimed.enqueued_at + LATE_S + 60), lease)
        assert len(at.through) == 1


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
        await setting.answer_to(setting.ask("👋", channel=DIRECT), channel=DIRECT)


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
