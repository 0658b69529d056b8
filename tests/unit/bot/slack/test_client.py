"""The client of Slack's Web API: its manifest, its scopes and its pace."""

import logging
from itertools import pairwise

import pytest
from redis.asyncio import Redis

from bot.local.model.limits import Strictness
from bot.slack.client import TokenCheck, build_app, library_logger, open_client
from bot.slack.manifest import BOT_SCOPES, SEARCH_SCOPE, manifest
from bot.slack.rate_limits import PACES, RateLimits
from bot.slack.web_api import DeliveryFailed, SlackCalls
from observability.loopback import proxy_for
from observability.metrics import Metrics
from tests.support.local_slack import CHANNEL, Slack, local_slack


async def test_loopback_never_goes_through_a_proxy() -> None:
    async with open_client("xoxb-1", api_url="http://127.0.0.1:1/api/") as client:
        assert client.proxy is None
    async with local_slack() as slack:
        slack.client.proxy = None
        app = build_app(slack.client, slack.workspace.authorize)
        assert (app.client.proxy, app.client.base_url) == (None, slack.server.api_url)


async def test_the_hosts_proxy_and_its_exceptions_are_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "intern.example")
    assert proxy_for("https://slack.com/api/") == "http://proxy.example:3128"
    assert proxy_for("https://slack.intern.example/api/") is None
    assert proxy_for("http://127.0.0.1:8765/api/") is None
    assert proxy_for("wss://wss-primary.slack.com/link/?ticket=1") == "http://proxy.example:3128"
    assert proxy_for("ws://127.0.0.1:8765/link/") is None
    async with open_client("xoxb-1", api_url="http://localhost:1/api/") as client:
        assert client.proxy is None


async def test_orion_asks_once_who_it_is(slack: Slack) -> None:
    first = await slack.workspace.identity()
    assert await slack.workspace.identity() is first
    assert (first.team, first.user, first.bot) == ("T0LOCAL", "U0ORION", "B0ORION")
    result = await slack.workspace.authorize()
    assert (result.bot_user_id, result.bot_token) == ("U0ORION", slack.server.bot_token)
    assert slack.count("auth.test") == 1


def test_log_lines_of_libraries_lose_their_texts(caplog: pytest.LogCaptureFixture) -> None:
    logger = library_logger()
    assert library_logger().filters == logger.filters
    with caplog.at_level(logging.ERROR, logger=logger.name):
        logger.warning("confidential %s", "words")
        try:
            int("confidential words")
        except ValueError:
            logger.exception("confidential %s", "words")
        logger.error("confidential words")
    assert [record.getMessage() for record in caplog.records] == [
        "slack library: ValueError in test_client.test_log_lines_of_libraries_lose_their_texts",
        "slack library: error in test_client.test_log_lines_of_libraries_lose_their_texts",
    ]
    assert "confidential" not in caplog.text


async def test_readiness_distinguishes_a_revoked_token_from_an_outage(slack: Slack) -> None:
    check = TokenCheck(slack.client, every_s=0)
    seen = [await check.is_accepted()]
    for error in ("internal_error", "token_revoked", "internal_error"):
        slack.server.faults.fail("auth.test", error)
        seen.append(await check.is_accepted())
    assert [*seen, await check.is_accepted()] == [True, True, False, False, True]
    asked = slack.count("auth.test")
    rare = TokenCheck(slack.client)
    assert [await rare.is_accepted(), await rare.is_accepted()] == [True, True]
    assert slack.count("auth.test") == asked + 1


BOT_EVENTS = manifest()["settings"]["event_subscriptions"]["bot_events"]

NEEDED = {
    "app_mention": {"app_mentions:read"},
    "message.channels": {"channels:history"},
    "message.groups": {"groups:history"},
    "message.im": {"im:history"},
    "message.mpim": {"mpim:history"},
    "app_home_opened": set(),
    "member_joined_channel": {"channels:read", "groups:read"},
    "agent_session_stopped": {"assistant:write"},
}


def test_http_mode_names_its_url_for_events_and_clicks() -> None:
    settings = manifest(url="https://orion.example/")["settings"]
    assert settings["socket_mode_enabled"] is False
    assert settings["event_subscriptions"]["request_url"] == "https://orion.example/slack/events"
    assert settings["interactivity"]["request_url"] == "https://orion.example/slack/events"


def test_new_apps_are_agents_whose_messages_tab_can_be_written_in() -> None:
    features = manifest()["features"]
    assert "assistant_view" not in features
    assert 1 <= len(features["agent_view"]["suggested_prompts"]) <= 4
    assert features["app_home"]["messages_tab_enabled"] is True
    assert features["app_home"]["messages_tab_read_only_enabled"] is False
    assert features["shortcuts"][0]["callback_id"] == "orion_ask"
    assert "commands" in BOT_SCOPES, "a shortcut needs it"


@pytest.mark.parametrize("event", BOT_EVENTS)
def test_each_event_has_its_scope(event: str) -> None:
    assert NEEDED[event] <= set(BOT_SCOPES)


def test_the_scopes_allow_a_sharing_lookup_for_every_kind_of_channel() -> None:
    """``conversations.info`` needs the scope of the kind; a direct message is never asked about."""
    kinds = {event.rpartition(".")[2] for event in BOT_EVENTS if event.startswith("message.")} - {"im"}
    assert {f"{kind}:read" for kind in kinds} <= set(BOT_SCOPES)


def test_an_admin_may_refuse_optional_scopes_but_none_that_an_answer_needs() -> None:
    for search in (False, True):
        scopes = manifest(slack_search=search)["oauth_config"]["scopes"]
        assert set(scopes["bot_optional"]) < set(scopes["bot"])
        assert {"app_mentions:read", "chat:write", "im:history", "users:read"} <= set(scopes["bot"]) - set(
            scopes["bot_optional"]
        )
        assert {"files:read", "groups:history", "groups:read", "assistant:write"} <= set(scopes["bot_optional"])
        assert (SEARCH_SCOPE in scopes["bot_optional"]) is search


def test_the_manifest_requests_no_unused_scopes() -> None:
    assert "user" not in manifest()["oauth_config"]["scopes"]
    assert not {"chat:write.public", "chat:write.customize"} & set(BOT_SCOPES)


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


async def test_a_redis_clock_set_back_an_hour_delays_no_call(redis_client: Redis) -> None:
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
