"""The HTTP pages, Slack's endpoint, and the limits on connections."""

import asyncio
import gzip
import json
import logging
import resource
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from structlog.testing import capture_logs

from bot.servers.http import (
    ConnectionLimits,
    ProcessStatus,
    SlackEndpoint,
    build,
    has_valid_signature,
    max_connections,
    serve,
)
from tests.support.event_app import SECRET, headers


async def authorize(**_: Any) -> AuthorizeResult:
    return AuthorizeResult(enterprise_id=None, team_id="T1", bot_user_id="UORION", bot_id="BORION", bot_token="xoxb-1")


def bolt(heard: list[dict[str, Any]]) -> AsyncApp:
    app = AsyncApp(
        authorize=authorize, signing_secret="", process_before_response=True, request_verification_enabled=False,
        ignoring_self_events_enabled=False,
    )  # fmt: skip

    async def hear(body: dict[str, Any]) -> None:
        if body["event"].get("text") == "fail":
            raise RuntimeError
        heard.append(body)

    app.event("message")(hear)
    return app


@dataclass
class Shown(ProcessStatus):
    ready: bool = True
    failing: Sequence[str] = ()

    async def checks(self) -> Mapping[str, bool]:
        return {"redis": True, "slack": self.ready}

    async def metrics(self) -> bytes:
        return b"orion_turns_total 1\n"

    def open_circuits(self) -> Sequence[str]:
        return self.failing


@asynccontextmanager
async def front(shown: ProcessStatus, endpoint: SlackEndpoint | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    async with (
        serve(build(shown, endpoint)) as port,
        aiohttp.ClientSession(base_url=f"http://127.0.0.1:{port}") as session,
    ):
        yield session


@asynccontextmanager
async def door(heard: list[dict[str, Any]], body_s: float = 10.0) -> AsyncIterator[aiohttp.ClientSession]:
    async with front(Shown(), SlackEndpoint(app=bolt(heard), signing_secret=SECRET, body_s=body_s)) as session:
        yield session


def event(text: str = "hello") -> bytes:
    inner = {"type": "message", "channel": "C1", "user": "U1", "text": text, "ts": "1.1"}
    return json.dumps({"type": "event_callback", "team_id": "T1", "event_id": "Ev1", "event": inner}).encode()


@pytest.mark.parametrize(
    ("shown", "status"),
    [(Shown(), 200), (Shown(ready=False), 503), (Shown(failing=["model"]), 200)],
    ids=["ready", "not ready", "circuit open"],
)
async def test_the_three_pages_exist_in_every_mode(shown: Shown, status: int) -> None:
    async with front(shown) as session:
        async with session.get("/healthz") as page:
            assert (page.status, await page.json()) == (200, {"alive": True})
        async with session.get("/readyz") as page:
            checks = {"redis": True, "slack": shown.ready}
            found = {"ready": shown.ready, "checks": checks, "open_circuits": list(shown.failing), "paused": False}
            assert (page.status, await page.json()) == (status, found)
        async with session.get("/metrics") as page:
            assert (page.status, page.content_type, await page.text()) == (200, "text/plain", "orion_turns_total 1\n")
        async with session.post("/slack/events", data=event()) as page:
            assert page.status == 404


CHALLENGE = json.dumps({"type": "url_verification", "challenge": "c-1", "token": "t"}).encode()
PACKED = gzip.compress(event())
LIMITED = json.dumps(
    {"type": "app_rate_limited", "team_id": "T1", "minute_rate_limited": 1, "api_app_id": "A1"}
).encode()


@pytest.mark.parametrize(
    ("body", "status", "text", "count"),
    [
        (event(), 200, "", 1),
        (event("fail"), 500, "", 0),
        (CHALLENGE, 200, "c-1", 0),
        (PACKED, 401, "", 0),
        (LIMITED, 200, "", 0),
    ],
    ids=["heard", "the listener fails, so Slack sends again", "challenge", "compressed, so not unpacked", "limited"],
)
async def test_a_signed_request_is_answered(body: bytes, status: int, text: str, count: int) -> None:
    heard: list[dict[str, Any]] = []
    sent = {**headers(event()), "Content-Encoding": "gzip"} if body is PACKED else headers(body)
    async with door(heard) as session, session.post("/slack/events", data=body, headers=sent) as answer:
        assert (answer.status, text in await answer.text(), len(heard)) == (status, True, count)


@pytest.mark.parametrize(
    "broken",
    [
        {"X-Slack-Signature": "v0=00"},
        {"X-Slack-Signature": "v0=é"},
        {"X-Slack-Signature": ""},
        {"X-Slack-Request-Timestamp": "soon"},
        {"X-Slack-Request-Timestamp": ""},
        {"X-Slack-Request-Timestamp": "9" * 400},
    ],
)
async def test_a_bad_signature_gets_401_and_logs_no_text(
    broken: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[dict[str, Any]] = []
    caplog.set_level(logging.DEBUG)
    with capture_logs() as lines:
        async with door(heard) as session:
            body = event("confidential words")
            async with session.post("/slack/events", data=body, headers={**headers(body), **broken}) as answer:
                assert answer.status == 401
    assert heard == []
    assert lines == [{"event": "slack_signature_refused", "log_level": "warning", "body_length": len(body)}]
    assert "confidential" not in caplog.text


@pytest.mark.parametrize("off_s", [-400, 400])
async def test_a_wrong_clock_is_reported_in_the_log(off_s: int) -> None:
    body, log = event(), []
    async with door([]) as session:
        for secret in (SECRET, "another"):
            sent = headers(body, stamp=str(int(time.time()) - off_s), secret=secret)
            with capture_logs() as lines:
                async with session.post("/slack/events", data=body, headers=sent) as answer:
                    assert answer.status == 401
            log += lines
    named, silent = log
    assert abs(named["seconds_off"] - off_s) <= 2
    assert "seconds_off" not in silent


@pytest.mark.parametrize("age_s", [-305, 305])
async def test_a_signature_is_valid_for_five_minutes(age_s: int) -> None:
    now = int(time.time())
    assert not has_valid_signature(SECRET, headers(b"x", stamp=str(now - age_s - 1)), b"x")
    assert has_valid_signature(SECRET, headers(b"x", stamp=str(now - 290)), b"x")


@pytest.mark.parametrize("form", ["+{}", "-{}", " {}", "{} ", "{}.0", "{}_0", "0x{}", "{}e0", "", "９{}"])
def test_a_timestamp_has_only_digits(form: str) -> None:
    assert not has_valid_signature(SECRET, headers(b"x", stamp=form.format(int(time.time()))), b"x")


async def test_a_body_that_never_arrives_times_out() -> None:
    async with door([], body_s=0.05) as session:

        async def trickle() -> AsyncIterator[bytes]:
            yield b"{"
            await asyncio.Event().wait()

        async with session.post("/slack/events", data=trickle()) as answer:
            assert answer.status == 408


@given(stamp=st.text(), signature=st.text(), body=st.binary())
def test_no_header_makes_the_check_crash(stamp: str, signature: str, body: bytes) -> None:
    assert not has_valid_signature(SECRET, {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": signature}, body)


@asynccontextmanager
async def server(limits: ConnectionLimits) -> AsyncIterator[int]:
    async def page(request: web.Request) -> web.Response:
        if "slow" in request.query:
            await released.wait()
        return web.Response(text="here")

    async def release(_: web.Request) -> web.Response:
        released.set()
        return web.Response()

    released = asyncio.Event()
    application = web.Application()
    application.add_routes([web.get("/", page), web.get("/release", release)])
    async with serve(application, limits=limits) as port:
        yield port


async def wait_for_close(port: int, start: bytes, more: bytes = b"") -> bool:
    """Open a connection, send ``start``, then a byte of ``more`` now and then. Return once the server closes it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(start)

    async def drip() -> None:
        for byte in more * 1_000:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.01)

    async with asyncio.TaskGroup() as group:
        dripping = group.create_task(drip())
        with suppress(ConnectionError):
            while await reader.read(4096):
                pass
        dripping.cancel()
    writer.close()
    return True


STARTS = {
    "nothing": (b"", b""),
    "half a request line": (b"GET / HT", b""),
    "headers without an end": (b"GET / HTTP/1.1\r\nHost: x\r\n", b""),
    "a header a byte at a time": (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ", b"a"),
    "a whole request, then silence": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b""),
    "a whole request, then half a second one": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT", b""),
}


@pytest.mark.parametrize(("start", "more"), STARTS.values(), ids=STARTS)
async def test_a_connection_without_a_whole_request_is_closed(start: bytes, more: bytes) -> None:
    async with server(ConnectionLimits(header_s=0.2, idle_s=0.2)) as port, asyncio.timeout(20):
        assert await wait_for_close(port, start, more)


async def test_a_request_that_takes_longer_than_the_limits_is_answered() -> None:
    async with server(ConnectionLimits(header_s=0.1, idle_s=0.1)) as port, aiohttp.ClientSession() as client:
        async with asyncio.TaskGroup() as group:
            slow = group.create_task(_get(client, f"http://127.0.0.1:{port}/?slow"))
            assert await wait_for_close(port, b"")
            assert await _get(client, f"http://127.0.0.1:{port}/release") == ""
        assert slow.result() == "here"


async def _get(client: aiohttp.ClientSession, url: str) -> str:
    async with client.get(url) as reply:
        return await reply.text()


def test_connections_get_half_of_the_descriptors() -> None:
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert max_connections() <= max(32, soft // 2)
