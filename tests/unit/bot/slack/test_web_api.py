"""Calls of Slack: an outage is waited out, nothing is posted twice, and nonsense is an outage."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from agent.circuit_breaker import CircuitBreaker
from bot.local.model.limits import LENIENT
from bot.local.server import LocalWorkspace
from bot.queue.claim import LeaseLost
from bot.servers.http import serve
from bot.slack.client import open_client
from bot.slack.web_api import DeliveryFailed, Reply, SlackCalls
from tests.support.http_server import LoopServer
from tests.support.local_slack import CHANNEL, Slack, local_slack


def post(text: str = "hello") -> dict[str, str]:
    return {"channel": CHANNEL, "text": text}


async def test_the_retry_after_header_is_obeyed(slack: Slack) -> None:
    slack.server.faults.rate_limit("chat.postMessage", retry_after=1)
    began = time.monotonic()
    await slack.calls.write("chat.postMessage", post())
    assert time.monotonic() - began >= 1.0
    assert len(slack.server.messages(CHANNEL)) == 1


@pytest.mark.parametrize(
    ("error", "status"), [("internal_error", 200), ("fatal_error", 500), ("", 503), ("team_added_to_org", 200)]
)
async def test_slacks_own_errors_are_waited_out(error: str, status: int, slack: Slack) -> None:
    slack.server.faults.fail("chat.postMessage", error, times=3, status=status)
    await slack.calls.write("chat.postMessage", post())
    assert slack.count("chat.postMessage") == 4


async def test_a_permanent_error_is_not_retried(slack: Slack) -> None:
    with pytest.raises(DeliveryFailed) as failed:
        await slack.calls.write("chat.postMessage", {"channel": "C0NOWHERE", "text": "hello"})
    assert (failed.value.reason, failed.value.permanent) == ("channel_not_found", True)
    assert slack.count("chat.postMessage") == 1


async def test_a_wait_longer_than_the_limit_is_not_begun() -> None:
    async with local_slack(patience_s=20) as slack:
        slack.server.faults.rate_limit("chat.postMessage", retry_after=30)
        began = time.monotonic()
        with pytest.raises(DeliveryFailed, match="ratelimited"):
            await slack.calls.write("chat.postMessage", post())
        assert time.monotonic() - began < 15  # neither the 30 s asked for nor the 20 s of its patience


async def test_a_possible_effect_is_looked_for_before_the_call_is_repeated(slack: Slack) -> None:
    slack.server.faults.lose_response("chat.postMessage")

    async def look() -> Reply | None:
        return {"ts": slack.server.messages(CHANNEL)[0]["ts"]}

    reply = await slack.calls.write("chat.postMessage", post(), look=look)
    assert [message["ts"] for message in slack.server.messages(CHANNEL)] == [reply["ts"]]


async def test_a_call_that_had_no_effect_is_repeated(slack: Slack) -> None:
    slack.server.faults.reset("chat.postMessage", times=2)
    looks: list[int] = []

    async def look() -> Reply | None:
        looks.append(len(slack.server.messages(CHANNEL)))
        return None

    await slack.calls.write("chat.postMessage", post(), look=look)
    assert (looks, len(slack.server.messages(CHANNEL))) == ([0, 0], 1)


async def test_a_possible_effect_is_looked_for_even_after_a_later_failed_try() -> None:
    async with (
        LocalWorkspace(strictness=LENIENT) as server,
        open_client(server.bot_token, api_url=server.api_url) as client,
    ):
        calls = SlackCalls(client, request_s=0.2, first_pause_s=0.01)
        server.faults.hold("chat.postMessage")
        server.faults.rate_limit("chat.postMessage", retry_after=1)
        looks: list[int] = []

        async def look() -> Reply | None:
            found = server.messages(CHANNEL)
            looks.append(len(found))
            server.faults.release()  # carried out while the second attempt waits
            return found[0] if found else None

        await calls.write("chat.postMessage", post(), look=look)
        assert (looks, len(server.messages(CHANNEL))) == ([0, 1], 1)


async def test_the_lease_is_checked_before_each_attempt(slack: Slack) -> None:
    slack.server.faults.fail("chat.postMessage", times=5)
    checks: list[int] = []

    def lease_check() -> None:
        checks.append(slack.count("chat.postMessage"))
        if len(checks) == 3:
            message = "lost"
            raise PermissionError(message)

    with pytest.raises(PermissionError, match="lost"):
        await slack.calls.write("chat.postMessage", post(), lease_check=lease_check)
    assert checks == [0, 1, 2]


async def test_a_call_that_was_made_once_is_not_repeated(slack: Slack) -> None:
    slack.server.faults.fail("views.open", times=2)
    with pytest.raises(DeliveryFailed, match="internal_error"):
        await slack.calls.call_once("views.open", {})
    assert slack.count("views.open") == 1


@asynccontextmanager
async def answering(
    body: str, status: int, content_type: str, **headers: str
) -> AsyncIterator[tuple[SlackCalls, Callable[[str, int, str], None]]]:
    """A server that gives every call this reply, until the second value is called with another one."""
    replies = [(body, status, content_type)]

    async def answer(_: web.Request) -> web.Response:
        text, code, kind = replies[-1]
        return web.Response(text=text, status=code, content_type=kind, headers=headers)

    application = web.Application()
    application.router.add_route("*", "/api/{method}", answer)
    async with serve(application) as port, open_client("xoxb-1", api_url=f"http://127.0.0.1:{port}/api/") as client:
        calls = SlackCalls(client, patience_s=0.0, first_pause_s=0.01)
        yield calls, lambda *reply: replies.append(reply)


NONSENSE = [
    ("<html>bad gateway</html>", 502, "text/html", "http_502"),
    ("upstream gone", 503, "text/plain", "http_503"),
    ("{not json", 500, "application/json", "http_500"),
    ("<html>proxy</html>", 200, "text/html", "http_200"),
    ("<html>login</html>", 403, "text/html", "http_403"),
    ("sign in first", 200, "text/plain", "http_200"),
    ("", 200, "application/json", "http_200"),
    ("[1]", 200, "application/json", "http_200"),
    ('{"ok": false}', 200, "application/json", "http_200"),
    ('{"ok": false, "error": {"code": 7}}', 200, "application/json", "http_200"),
    ('{"ok": false, "error": "No route to the upstream."}', 200, "application/json", "http_200"),
    ('{"ok": true, "user": ' + '{"a":' * 3_000 + "1" + "}" * 3_001, 200, "application/json", "http_200"),
    ("\x1f\x8b", 200, "application/gzip", "malformed_reply"),
]
WHOLE = {
    "ts": "1.000001", "channel": "C1", "channels": [], "messages": [], "view": {"id": "V1"}, "url": "wss://slack/1",
    "results": {"messages": []}, "user_id": "U1", "team_id": "T1", "permalink": "https://slack/1", "message_ts": "1.1",
    "file": {"id": "F1"}, "access_token": "xoxb-1", "user": {"id": "U1", "team_id": "T1"}, "usergroups": [],
}  # fmt: skip
FIELDS = {
    "apps.connections.open": ["url"], "assistant.search.context": ["results"], "auth.test": ["user_id", "team_id"],
    "chat.delete": ["ts"], "chat.getPermalink": ["permalink"], "chat.postEphemeral": ["message_ts"],
    "chat.postMessage": ["ts", "channel"], "chat.startStream": ["ts"], "chat.stopStream": ["ts"],
    "chat.update": ["ts"], "conversations.history": ["messages"], "conversations.info": ["channel"],
    "conversations.list": ["channels"], "conversations.replies": ["messages"], "files.info": ["file"],
    "oauth.v2.access": ["access_token"], "usergroups.list": ["usergroups"], "users.conversations": ["channels"],
    "users.info": ["user"], "views.open": ["view"], "views.publish": ["view"],
}  # fmt: skip
BARE = ["agents.sessions.rename", "agents.sessions.setStatus", "assistant.threads.setStatus", "auth.revoke"]
BARE += ["assistant.threads.setSuggestedPrompts", "chat.appendStream"]


def test_every_method_that_orion_calls_is_tried_with_nonsense() -> None:
    named = re.compile(
        r'"((?:agents|apps|assistant|auth|chat|conversations|files|oauth|usergroups|users|views)\.[\w.]+)"'
    )
    sources = [path for path in Path("bot").rglob("*.py") if not {"local", "evals"} & {*path.parts}]
    called = {method for path in sources for method in named.findall(path.read_text(encoding="utf-8"))}
    assert called - {"users.lock"} == {*FIELDS, *BARE}


@pytest.mark.parametrize("method", [*FIELDS, *BARE])
async def test_nonsense_in_slacks_name_counts_as_an_outage(method: str) -> None:
    replies = [*NONSENSE, ('{"ok": "yes"}', 200, "application/json", "malformed_reply")]
    whole = {**WHOLE, "ok": True} | ({"channel": {"id": "C1"}} if method == "conversations.info" else {})
    for name in FIELDS.get(method, ()):
        wrong: list[Any] = [None, "", 7, {}, "x" if isinstance(whole[name], list) else [1]]
        wrong += [{"id": ""}, {"team_id": "T1"}] if name in {"channel", "file", "user"} else []
        wrong += [{"id": "U1"}] if name == "user" else []
        replies += [(json.dumps({**whole, name: one}), 200, "application/json", "malformed_reply") for one in wrong]
    async with answering("", 200, "application/json") as (calls, reply_with):
        for body, status, kind, reason in replies:
            reply_with(body, status, kind)
            with pytest.raises(DeliveryFailed) as failed:
                await calls.read(method)
            assert (failed.value.reason, failed.value.permanent, failed.value.doubt) == (reason, False, True), body
        reply_with(json.dumps(whole), 200, "application/json")
        assert await calls.read(method)


async def test_an_impossibly_long_reply_from_slack_counts_as_an_outage() -> None:
    body = json.dumps({**WHOLE, "ok": True, "pad": "x" * 50_000_000})
    async with answering(body, 200, "application/json") as (calls, _):
        for call, arguments in ((calls.read, ()), (calls.write, ({},)), (calls.call_once, ({},))):
            with pytest.raises(DeliveryFailed, match="ClientPayloadError") as failed:
                await call("auth.test", *arguments)
            assert not failed.value.permanent


class Endless(LoopServer):
    """Answers each call with an empty page and the cursor of the next one, of which there are ``cursors``."""

    def __init__(self, cursors: int) -> None:
        super().__init__()
        self.cursors, self.asked = cursors, 0

    def routes(self) -> list[web.RouteDef]:
        return [web.route("*", "/{path:.*}", self._page)]

    async def _page(self, _: web.Request) -> web.Response:
        self.asked += 1
        page = {"next_cursor": f"page-{self.asked % self.cursors}"}
        return web.json_response({"ok": True, "channels": [], "response_metadata": page})


@pytest.mark.parametrize(("cursors", "calls"), [(1, 2), (2, 3), (1_000_000, 9)])
async def test_pages_without_end_count_as_an_outage(cursors: int, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.slack.web_api._MAX_PAGES", 9)
    async with Endless(cursors) as server, open_client("xoxb-1", api_url=f"{server.url}/") as client:
        with pytest.raises(DeliveryFailed, match="malformed_reply"):
            assert [one async for one in SlackCalls(client).read_pages("conversations.list")]
        assert server.asked == calls


async def test_a_day_that_a_proxy_asks_for_does_not_silence_a_workspace(slack: Slack) -> None:
    slack.server.faults.rate_limit("chat.postMessage", retry_after=86_400)
    slack.calls.patience_s = 0.0
    with pytest.raises(DeliveryFailed) as failed:
        await slack.calls.write("chat.postMessage", {"channel": CHANNEL, "text": "x"})
    assert failed.value.again_s == 600.0


@pytest.mark.parametrize(("off_s", "lines"), [(-400, 1), (400, 1), (5, 0)])
async def test_a_clock_that_differs_from_slacks_is_reported_once(off_s: int, lines: int) -> None:
    date = format_datetime(datetime.now(UTC) - timedelta(seconds=off_s), usegmt=True)
    async with answering(json.dumps({**WHOLE, "ok": True}), 200, "application/json", Date=date) as (calls, _):
        with capture_logs() as logs:
            for _ in range(2):
                await calls.read("auth.test")
    offsets = [line["seconds_off"] for line in logs if line["event"] == "clock_differs"]
    assert len(offsets) == lines
    assert all(abs(found - off_s) < 5 for found in offsets)


async def test_waiting_logs_the_method_and_never_the_text(slack: Slack) -> None:
    slack.server.faults.fail("chat.postMessage")
    with capture_logs() as lines:
        await slack.calls.write("chat.postMessage", post("confidential words"))
    assert [{k: v for k, v in line.items() if k != "wait_s"} for line in lines] == [
        {"event": "slack_call_waits", "log_level": "warning", "method": "chat.postMessage", "reason": "internal_error"}
    ]


async def test_a_failing_slack_gets_one_call_at_a_time_until_it_is_back(slack: Slack) -> None:
    breaker = CircuitBreaker("slack", failures=3, first_pause_s=0.5)
    calls = SlackCalls(slack.client, patience_s=0.04, first_pause_s=0.01, breaker=breaker)
    slack.server.faults.fail("chat.postMessage", status=503, times=3)
    for _ in range(2):
        with pytest.raises(DeliveryFailed) as failed:
            await calls.write("chat.postMessage", post())
    assert (failed.value.reason, failed.value.permanent) == ("circuit_open", False)
    assert slack.count("chat.postMessage") == 3
    assert breaker.is_open
    patient = SlackCalls(slack.client, first_pause_s=0.01, breaker=breaker)
    await patient.write("chat.postMessage", post())
    assert slack.count("chat.postMessage") == 4
    assert not breaker.is_open


@pytest.mark.parametrize("error", ["channel_not_found", "ratelimited"])
async def test_a_slack_that_refuses_is_reachable(error: str, slack: Slack) -> None:
    breaker = CircuitBreaker("slack", failures=1)
    calls = SlackCalls(slack.client, patience_s=0.0, first_pause_s=0.01, breaker=breaker)
    slack.server.faults.fail("chat.postMessage", error)
    with pytest.raises(DeliveryFailed):
        await calls.write("chat.postMessage", post())
    assert not breaker.is_open


async def test_a_call_that_was_cancelled_leaves_the_probe_to_the_next(slack: Slack) -> None:
    breaker = CircuitBreaker("slack", failures=1, first_pause_s=0.001)
    calls = SlackCalls(slack.client, first_pause_s=0.01, breaker=breaker)
    breaker.record_failure()
    await asyncio.sleep(0.01)
    slack.server.faults.hang("chat.postMessage")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await calls.write("chat.postMessage", post())
    slack.server.faults.clear()
    await calls.write("chat.postMessage", post())
    assert not breaker.is_open


@pytest.mark.parametrize(
    ("error", "status", "rechecks"),
    [("internal_error", 200, 1), ("", 503, 1), ("ratelimited", 429, 0), ("channel_not_found", 200, 0)],
)
async def test_only_calls_that_slack_may_still_carry_out_are_rechecked(error: str, status: int, rechecks: int) -> None:
    await_reply: list[None] = []

    async def maybe_posted() -> None:
        await_reply.append(None)

    async with local_slack(patience_s=0.0) as slack:
        slack.server.faults.fail("chat.postMessage", error, status=status)
        with pytest.raises(DeliveryFailed):
            await slack.calls.write("chat.postMessage", post(), maybe_posted=maybe_posted)
    assert len(await_reply) == rechecks


async def test_an_unreachable_slack_carries_out_nothing() -> None:
    async def maybe_posted() -> None:
        pytest.fail("no connection was opened")

    async with open_client("xoxb-1", api_url="http://127.0.0.1:9/api/") as client:
        calls = SlackCalls(client, patience_s=0.0, first_pause_s=0.01)
        with pytest.raises(DeliveryFailed) as failed:
            await calls.write("chat.postMessage", post(), maybe_posted=maybe_posted)
    assert not failed.value.permanent


async def test_a_hanging_workspace_leaves_connections_for_others(slack: Slack) -> None:
    slow, other = SlackCalls(slack.client, at_once=2), SlackCalls(slack.client, at_once=2)
    slack.server.faults.hang("users.info", times=2)
    async with asyncio.TaskGroup() as group:
        hanging = [group.create_task(slow.read("users.info", user="U0YOU")) for _ in range(3)]
        await slack.server.wait_for(lambda: slack.count("users.info") == 2)
        assert await other.read("users.info", user="U0YOU"), "its own calls go through"
        assert not any(task.done() for task in hanging), "the third waits for one of the two"
        slack.server.faults.release()
    assert slack.count("users.info") == 4


async def test_a_turn_that_lost_its_lease_while_waiting_for_a_slot_posts_nothing() -> None:
    held = asyncio.Event()
    held.set()

    def lease_check() -> None:
        if not held.is_set():
            message = "another worker has it"
            raise LeaseLost(message)

    async with local_slack() as slack:
        calls = SlackCalls(slack.client, at_once=1)
        slack.server.faults.hang("users.info")
        async with asyncio.TaskGroup() as group:
            group.create_task(calls.read("users.info", user="U0YOU"))
            await slack.server.wait_for(lambda: slack.count("users.info") == 1)
            waiting = group.create_task(lease_loss(calls.write("chat.postMessage", post(), lease_check=lease_check)))
            await asyncio.sleep(0)
            held.clear()
            slack.server.faults.release()
        assert isinstance(waiting.result(), LeaseLost)
        assert slack.count("chat.postMessage") == 0


async def test_a_call_that_would_be_stale_does_not_wait_for_a_slot(slack: Slack) -> None:
    calls = SlackCalls(slack.client, at_once=1)
    slack.server.faults.hang("users.info")
    async with asyncio.TaskGroup() as group:
        hanging = group.create_task(calls.read("users.info", user="U0YOU"))
        await slack.server.wait_for(lambda: slack.count("users.info") == 1)
        async with asyncio.timeout(20):
            with pytest.raises(DeliveryFailed, match="TimeoutError"):
                await calls.call_once("views.publish", {}, timeout_s=0.05)
        assert not hanging.done()
        slack.server.faults.release()
    assert slack.count("views.publish") == 0


async def lease_loss(call: Awaitable[Reply]) -> Exception | None:
    try:
        await call
    except LeaseLost as error:
        return error
    return None


async def test_auth_test_uses_post_and_a_missing_status_method_is_tried_once() -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.match_info['method']}")
        if request.match_info["method"] != "auth.test":
            raise web.HTTPNotFound
        return web.json_response({"ok": True, "user_id": "U1", "team_id": "T1"})

    application = web.Application()
    application.router.add_post("/api/{method}", answer)
    async with serve(application) as port, open_client("xoxb-1", api_url=f"http://127.0.0.1:{port}/api/") as client:
        calls = SlackCalls(client, patience_s=0.1, first_pause_s=0.01)
        assert (await calls.read("auth.test"))["team_id"] == "T1"
        for _ in range(3):
            with pytest.raises(DeliveryFailed) as failed:
                await calls.call_once("assistant.threads.setStatus", {"status": ""})
            assert failed.value.permanent
    assert asked == ["POST auth.test", "POST assistant.threads.setStatus"]


@pytest.mark.parametrize(("error", "calls"), [("missing_scope", 2), ("unknown_method", 1)])
async def test_a_missing_scope_turns_a_method_off_for_its_token_alone(error: str, calls: int) -> None:
    method = "assistant.threads.setStatus"
    async with local_slack() as slack:
        slack.server.faults.fail(method, error, times=9)
        for token in (slack.client.token, "xoxb-installed-again"):
            slack.client.token = token
            for _ in range(2):
                with pytest.raises(DeliveryFailed, match=error):
                    await slack.calls.call_once(method, {})
        assert slack.count(method) == calls
