"""The Bolt app and its connections: the proxy, one sign-in, and silent libraries."""

import logging

import pytest

from bot.slack.client import TokenCheck, build_app, library_logger, open_client
from observability.loopback import proxy_for
from tests.support.local_slack import Slack, local_slack


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
