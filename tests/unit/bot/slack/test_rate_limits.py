"""All workers together keep Slack's limits, and a call with a long wait comes back later for its own slot."""

from itertools import pairwise

import pytest
from redis.asyncio import Redis

from bot.local.model.limits import Strictness
from bot.slack.rate_limits import PACES, RateLimits
from bot.slack.web_api import DeliveryFailed, SlackCalls
from observability.metrics import Metrics
from tests.support.local_slack import CHANNEL, local_slack

POST = "chat.postMessage"
BURST = PACES[POST].burst


def worker(redis: Redis, metrics: Metrics | None = None, team: str = "T1") -> RateLimits:
    return RateLimits(redis, team, metrics=metrics)


def post(number: int, channel: str = "C1") -> dict[str, object]:
    return {"channel": channel, "thread_ts": f"{number}.0", "metadata": {"event_payload": {"turn_id": str(number)}}}


async def test_workers_share_a_pace_and_waiting_calls_keep_their_order(redis_client: Redis) -> None:
    metrics = Metrics()
    one, two = worker(redis_client, metrics), worker(redis_client)
    for number in range(BURST):
        assert await (one, two)[number % 2].reserve(POST, post(number), patience_s=0) == 0
    told = [await one.reserve(POST, post(10 + n), patience_s=0.1, urgency="fresh") for n in range(5)]
    assert [round(wait) for wait in told] == [1, 2, 3, 4, 5]
    waits = [line for line in metrics.render()[0].decode().splitlines() if "slack_wait_seconds_count" in line]
    assert [line.split()[-1] for line in waits] == ["5.0"]
    again = await two.reserve(POST, post(12), patience_s=9)
    assert round(again) == 6, "somebody new stands behind them"
    back = await two.reserve(POST, post(12), patience_s=9, urgency="fresh")
    assert round(back) == 3, "its own place"
    assert not await two.is_waiting(POST, post(12)), "a place that was taken up is nobody's any more"
    assert await two.is_waiting(POST, post(13))
    elsewhere = [post(1, "C2"), post(2, "C3")]
    assert [await one.reserve(POST, body, patience_s=0) for body in elsewhere] == [0, 0]
    assert await worker(redis_client, team="T2").reserve(POST, post(1), patience_s=0) == 0


async def test_a_rate_limit_is_shared_by_all_and_they_do_not_retry_at_once(redis_client: Redis) -> None:
    one, two = worker(redis_client), worker(redis_client)
    method = "conversations.replies"
    await one.note_refusal(method, {}, 30)
    waits = [await two.reserve(method, {"n": n}, patience_s=60) for n in range(4)]
    assert 29 < waits[0] <= 30
    assert all(0.5 < b - a <= 1.21 for a, b in pairwise(waits)), waits  # 1.2 s, less what passed between two calls
    assert await redis_client.pttl(one.key(method, {})) > 0


async def test_a_clock_of_redis_that_was_set_back_an_hour_holds_no_call_up(redis_client: Redis) -> None:
    one = worker(redis_client)
    await one.note_refusal(POST, post(1), 30)
    for field in ("tat", "not_before", "seen"):
        await redis_client.hincrby(one.key(POST, post(1)), field, 3_600_000)
    assert await one.reserve(POST, post(2), patience_s=0) == 0


async def test_low_priority_calls_leave_half_of_a_burst_to_others(redis_client: Redis) -> None:
    one, method = worker(redis_client), "conversations.replies"
    for number in range(PACES[method].burst // 2):
        assert await one.reserve(method, {"n": number}, patience_s=0, urgency="spare") == 0
    assert await one.reserve(method, {}, patience_s=0, urgency="spare") > 0
    assert await one.reserve(method, {}, patience_s=0) == 0


async def test_a_call_that_would_wait_long_fails_at_once_and_says_when_to_retry(redis_client: Redis) -> None:
    async with local_slack(strictness=Strictness(post_burst=1, post_per_second=0.1)) as slack:
        calls = SlackCalls(slack.client, limits=worker(redis_client))
        place, _ = slack.ask()
        body = {"channel": CHANNEL, "thread_ts": place.thread_ts, "text": "Hello"}
        await calls.write(POST, body)
        with pytest.raises(DeliveryFailed) as refused:
            await calls.write(POST, {**body, "text": "Again"}, fresh=True)
        assert (refused.value.reason, refused.value.permanent) == ("ratelimited", False)
        assert 8 < (refused.value.again_s or 0) < 11
        made = slack.count(POST)
        with pytest.raises(DeliveryFailed):
            await calls.call_once(POST, {**body, "text": "Once"})
        assert slack.count(POST) == made, "nobody calls before Slack said"
        assert await worker(redis_client).is_waiting(POST, body)
