"""Delivery to Langfuse through its SDK: what is retried, logged once, masked and sampled, and which TLS is trusted."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from structlog.testing import capture_logs

from bot.settings import load_settings
from bot.turn.observer import open_tracer
from observability.langfuse.connection import Connection
from observability.langfuse.dashboards import DashboardsError, make_dashboard
from observability.langfuse.datasets import send_correction
from observability.langfuse.tracing import Generation, TracedAttempt, Tracer, trace_id_of
from observability.redaction import known_secrets
from tests.support.http_server import behind_tls, own_certificate
from tests.support.langfuse_receiver import LangfuseReceiver, tracer_to
from tests.support.waiting import wait_until

SECRET = "glpat-abcdefghij0123456789"
KNOWN = "correct horse"


async def one_turn(tracer: Tracer, turn_id: str = "t", text: str = "q") -> None:
    trace = await tracer.turn(turn_id, thread="T:C:1", user="U1", question=text)
    trace.end(outcome="answered", answer="a")


def report_lines(logs: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    return [(entry["event"], entry["data"], entry.get("reason")) for entry in logs]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (lambda receiver: receiver.refuse_scores.extend([400, 401]), "http_400"),
        (lambda receiver: receiver.refuse_scores.extend([413, 413]), "http_413"),
        (lambda receiver: setattr(receiver, "reject_scores", 1), "rejected_1"),
    ],
)
async def test_refused_scores_are_logged_once(
    fault: Callable[[LangfuseReceiver], None], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("langfuse").setLevel(logging.WARNING)  # as the SDK does when it is imported
    async with LangfuseReceiver() as receiver:
        fault(receiver)
        with capture_logs() as logs:
            async with tracer_to(receiver.url) as tracer:
                await one_turn(tracer)
                await wait_until(lambda: bool(logs), "the first batch was refused")
                await tracer.feedback("t", user="U1", good=True)
                await wait_until(lambda: len(receiver.refuse_scores) < 2, "another batch was sent")
                before = len(receiver.headers)
                await tracer.feedback("t", user="U2", good=True)
                await wait_until(lambda: len(receiver.headers) > before, "another batch was sent")
                receiver.reject_scores, receiver.refuse_scores = 0, []
    assert [entry for entry in report_lines(logs) if entry[0] == "langfuse_failing"] == [
        ("langfuse_failing", "scores", reason)
    ]
    assert [record for record in caplog.records if record.name == "langfuse"] == []


async def test_another_page_is_not_mistaken_for_langfuse() -> None:
    async def sign_in(_: web.Request) -> web.Response:
        return web.Response(text="<html>Sign in</html>", content_type="text/html")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", sign_in)
    with capture_logs() as logs:
        async with TestServer(app) as host, tracer_to(str(host.make_url("/langfuse"))) as tracer:
            await one_turn(tracer)
            await wait_until(lambda: len(logs) == 2, "both kinds of data are refused")
    assert {entry[1:] for entry in report_lines(logs)} == {("scores", "html"), ("traces", "html")}


async def test_a_busy_host_is_asked_again() -> None:
    async with LangfuseReceiver() as receiver:
        receiver.refuse_traces, receiver.refuse_scores = [503], [429]
        with capture_logs() as logs:
            async with tracer_to(receiver.url) as tracer:
                await one_turn(tracer)
                await wait_until(lambda: bool(receiver.spans and receiver.scores), "both arrive in the end")
    assert sorted(report_lines(logs)) == [
        ("langfuse_failing", "scores", "http_429"), ("langfuse_failing", "traces", "http_503"),
        ("langfuse_recovered", "scores", None), ("langfuse_recovered", "traces", None),
    ]  # fmt: skip


async def test_secrets_are_masked_wherever_they_are() -> None:
    async with LangfuseReceiver() as receiver, tracer_to(receiver.url, known=known_secrets([KNOWN])) as tracer:
        trace = await tracer.turn("t", thread="T:C:1", user="U1", question=f"Is {SECRET} or {KNOWN} right?")
        trace.model_start(phase="decide")
        message = {"role": "user", "content": SECRET}
        tool = {"type": "function", "function": {"name": "f", "description": KNOWN}}
        trace.model_end(
            phase="decide",
            output={"role": "assistant", "content": None, "tool_calls": [{"function": {"arguments": SECRET}}]},
            call=Generation(model="m", messages=[message], tools=[tool]),
        )
        trace.tool_start("1", tool=SECRET, arguments={"clientSecret": "abc"})
        trace.tool_end("1", ok=False, content="", error=f"{'word ' * 9_998}{SECRET}")
        issue = {"rule": "no_secrets", "severity": "error", "words": SECRET, "detail": f"It shows {KNOWN}."}
        trace.attempt(TracedAttempt(number=1, draft=SECRET, text=KNOWN, passed=False, issues=[issue]))
        trace.end(outcome="answered", answer=SECRET)
        await tracer.feedback("t", user="U1", good=False, reasons=["wrong"], comment=f"it shows {SECRET}, {KNOWN}")
    (comment,) = (score["comment"] for score in receiver.scores if score["name"] == "user_feedback")
    assert comment == "wrong: it shows [redacted], [redacted]"
    for secret in (SECRET[:10], KNOWN, '"abc"'):
        assert secret.encode() not in receiver.raw


async def test_a_repeated_turn_replaces_its_root_and_keeps_its_parts() -> None:
    async with LangfuseReceiver() as receiver:
        for draft in ("first", "second"):  # two workers
            async with tracer_to(receiver.url) as tracer:
                trace = await tracer.turn("t", thread="T:C:1", user="U1", question="q")
                trace.model_start(phase="write")
                trace.model_end(phase="write", output=draft, call=Generation())
                trace.end(outcome="interrupted" if draft == "first" else "answered", answer=draft)
    roots = [span for span in receiver.spans if span.name == "turn"]
    parts = [span for span in receiver.spans if span.name == "write"]
    assert len({root.span_id for root in roots}) == 1
    assert {root.parent_id for root in roots} == {""}
    assert len({part.span_id for part in parts}) == 2
    assert {part.parent_id for part in parts} == {roots[0].span_id}
    assert {span.trace_id for span in receiver.spans} == {trace_id_of("t")}
    assert len({score["id"] for score in receiver.scores if score["name"] == "turn_outcome"}) == 1


async def test_sampling_keeps_whole_turns_with_their_scores_and_reviews() -> None:
    async with LangfuseReceiver() as receiver, tracer_to(receiver.url, sample_rate=0.5, queue="queue-1") as tracer:
        for number in range(40):
            await one_turn(tracer, f"turn-{number}")
            await send_correction(tracer, f"turn-{number}", "q")
        await wait_until(lambda: len(receiver.items) == 40, "each question can be asked again")
    sampled = {span.trace_id for span in receiver.spans}
    assert 5 < len(sampled) < 35
    assert {score["traceId"] for score in receiver.scores} == sampled
    assert {item["objectId"] for item in receiver.queued} == sampled
    assert {item["sourceTraceId"] for item in receiver.items} == {None, *sampled}


@pytest.mark.parametrize("connection", [Connection(public_key="pk", secret_key="sk", enabled=False), Connection()])
async def test_nothing_is_loaded_without_keys_or_if_turned_off(connection: Connection) -> None:
    tracer = Tracer(connection)
    await one_turn(tracer)
    assert tracer.client is None
    await tracer.aclose()


async def test_variables_of_the_sdk_are_honoured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with LangfuseReceiver() as receiver:
        values = {"BASE_URL": receiver.url, "PUBLIC_KEY": "pk", "SECRET_KEY": "sk", "RELEASE": "r7", "FLUSH_AT": "1"}
        for name, value in values.items():
            monkeypatch.setenv(f"LANGFUSE_{name}", value)
        tracer = open_tracer(load_settings(home=tmp_path))
        for user in ("U1", "U2", "U3"):
            await tracer.feedback("t", user=user, good=True)
        await wait_until(lambda: len(receiver.headers) == 3, "each score is a request of its own")
        await one_turn(tracer)
        await tracer.aclose()
    (root,) = receiver.spans
    assert root.attributes["langfuse.release"] == "r7"


async def test_a_password_file_does_not_replace_the_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("default login someone password else\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    async with LangfuseReceiver() as receiver:
        monkeypatch.setenv("HTTP_PROXY", receiver.url)  # the file counts for other hosts than one's own machine
        connection = Connection(public_key="pk", secret_key="“sk”", host="http://langfuse.test")
        tracer = Tracer(connection)
        await one_turn(tracer)
        await tracer.aclose()
    assert {headers["Authorization"] for headers in receiver.headers} == {aiohttp.encode_basic_auth("pk", "“sk”")}
    assert receiver.spans


async def test_half_an_emoji_and_a_very_large_number_are_sent() -> None:
    async with LangfuseReceiver() as receiver, tracer_to(receiver.url) as tracer:
        trace = await tracer.turn("t", thread="T:C:1", user="U1", question="caf\ud83d")
        trace.tool_start("1", tool="git_log", arguments={"rows": 2**70})
        trace.end(outcome="answered", answer="a")
    assert {span.name for span in receiver.spans} == {"turn", "git_log"}


@pytest.mark.parametrize("trusted", [True, False])
async def test_traces_scores_and_dashboards_trust_the_hosts_certificates_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, trusted: bool
) -> None:
    file, asked = own_certificate(tmp_path), list[str]()
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with behind_tls(file, asked) as host, capture_logs() as logs:
        tracer = Tracer(Connection(public_key="pk", secret_key="sk", host=host))
        await one_turn(tracer)
        await wait_until(lambda: len(asked if trusted else logs) > 1, "both kinds of data arrive, or are refused")
        await tracer.aclose(timeout_s=0.5)
        assert ({"/api/public/otel/v1/traces", "/api/public/scores"} <= set(asked)) is trusted
        with pytest.raises(DashboardsError, match="answered" if trusted else "cannot be reached"):
            make_dashboard(public_key="pk", secret_key="sk", host=host)
    assert bool(asked) is trusted
