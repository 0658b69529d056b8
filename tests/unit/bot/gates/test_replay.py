"""A question that Slack delivers hours late is answered once."""

from dataclasses import replace

import pytest
from redis.asyncio import Redis

from bot.delivery.answer_key import AnswerKey
from bot.gates.follow_up import LATE_S
from bot.queue.queue import OK
from bot.slack.message import Access
from tests.support.gates import gates
from tests.support.posted_answers import answer

EVERYBODY = Access(allow_external=True, allow_guests=True)


@pytest.mark.parametrize("answered", [True, False])
async def test_a_late_question_is_answered_unless_slack_shows_an_answer(redis_client: Redis, *, answered: bool) -> None:
    async with gates(redis_client, EVERYBODY) as at:
        place, ts = at.slack.ask()
        if answered:
            await at.slack.delivery.answer(place, answer("So."), AnswerKey(question_ts=ts, turn_id="t1"))
        claimed, lease = await at.store(thread=place, ts=ts, event_ts=ts)
        late = replace(claimed, enqueued_at=claimed.enqueued_at + LATE_S + 60)
        assert await at.flow.handle(late, lease) == OK
        assert len(at.through) == (0 if answered else 1)


async def test_the_shortcut_may_use_an_old_message_again(redis_client: Redis) -> None:
    async with gates(redis_client, EVERYBODY) as at:
        place, ts = at.slack.ask()
        await at.slack.delivery.answer(place, answer("So."), AnswerKey(question_ts=ts, turn_id="t1"))
        claimed, lease = await at.store(thread=place, ts=ts)
        await at.flow.handle(replace(claimed, enqueued_at=claimed.enqueued_at + LATE_S + 60), lease)
        assert len(at.through) == 1
