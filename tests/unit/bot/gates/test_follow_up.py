"""A thread that Redis lost is looked up in Slack once. A question that Slack delivers hours late is answered once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from redis.asyncio import Redis

from agent.texts.catalogue import say
from agent.thread.conversation import ThreadKey, ThreadMessage
from agent.thread.state import ThreadState
from bot.delivery.answer_key import AnswerKey
from bot.gates.flow import AGED_S, LATE_S, RETRY_S
from bot.local.model.roster import VISITOR
from bot.queue.claim import OK, Claimed, Ending, Lease, give_back
from bot.slack.message import Access, ThreadMode
from bot.stores.stores import ThreadModes
from tests.support.gates import GateScene, gates
from tests.support.posted_answers import answer


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


EVERYBODY = Access(allow_external=True, allow_guests=True)


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
