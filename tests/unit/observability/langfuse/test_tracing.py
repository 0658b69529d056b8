import asyncio
import hashlib
import re
import socket
import subprocess
import sys
import time
from typing import Any

import pytest
from structlog.testing import capture_logs

from observability.langfuse.tracing import Generation, TracedAttempt, Tracer, TurnTrace, trace_id_of
from tests.support.langfuse_receiver import LangfuseReceiver, tracer_to

THREAD = "T1:C1:1700000000.000100"
WRONG = {"rule": "claim_supported", "severity": "error", "words": "12", "detail": "the source says 120"}
SHORT = {"rule": "minimum_length", "severity": "warning", "words": "", "detail": ""}
SECRET = "xoxb-1234567890-abcdefghij"


async def turn_of(tracer: Tracer, turn_id: str = "turn-1") -> TurnTrace:
    return await tracer.turn(turn_id, thread=THREAD, user="U123", question=f"How many? {SECRET}")


def generation(prompt_tokens: int, completion_tokens: int, prompt: str = "") -> Generation:
    messages = [{"role": "user", "content": prompt}] if prompt else []
    return Generation(model="w", messages=messages, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)


def run_turn(trace: TurnTrace, *, outcome: str = "answered", reason: str = "") -> None:
    trace.model_start(phase="decide")
    trace.model_end(phase="decide", output="respond", call=generation(10, 2, f"decide on this {SECRET}"))
    trace.tool_start("1", tool="search", arguments={"q": "limits"})
    trace.tool_start("2", tool="git_log", arguments={})
    trace.tool_end("1", ok=True, content="120 a minute")
    trace.tool_end("2", ok=False, content="", error="no repository")
    trace.model_start(phase="write", attempt=1)
    trace.first_token()
    trace.model_end(phase="write", output="12 [1]", call=generation(20, 4))
    trace.attempt(
        TracedAttempt(
            number=1,
            draft="**12** [1]",
            text="*12* [1]",
            passed=False,
            issues=(WRONG, WRONG, SHORT),
            repairs={"bold": 1},
        )
    )
    trace.attempt(TracedAttempt(number=2, draft="120 [1]", text="120 [1]", passed=True))
    trace.end(outcome=outcome, reason=reason, answer="120 [1]")


async def test_slack_search_results_are_traced_as_lengths() -> None:
    """It may not be kept: neither what it brought nor a prompt that holds it; drafts and the answer are ours."""
    async with LangfuseReceiver() as receiver, tracer_to(receiver.url) as tracer:
        trace = await turn_of(tracer)
        trace.model_start(phase="decide")
        trace.model_end(phase="decide", output="slack_search", call=generation(1, 1, "how many?"))
        trace.tool_start("1", tool="slack_search", arguments={"query": "walrus"})
        trace.tool_start("2", tool="llm_generate", arguments={"context": "Ann said walrus"})
        trace.tool_end("1", ok=True, content="Ann in #secret")
        trace.tool_end("2", ok=True, content="Ann said")
        trace.model_start(phase="write", attempt=1)
        trace.model_end(phase="write", output="12 [1]", call=generation(1, 1, "source [1]: Ann said walrus"))
        trace.attempt(TracedAttempt(number=1, draft="12 [1]", text="12 [1]", passed=False, issues=(WRONG,)))
        trace.end(outcome="answered", answer="120 [1]")
    found = {span.name: span for span in receiver.spans}
    assert found["decide"]["input"] == [{"role": "user", "content": "how many?"}]
    assert (found["slack_search"]["input"], found["slack_search"]["output"]) == ({"query": "walrus"}, {"length": 14})
    assert (found["verify"]["input"], found["turn"]["output"]) == ("12 [1]", "120 [1]")
    lengths = {"words": {"length": 2}, "detail": {"length": 19}}
    assert found["verify"]["metadata.issues"] == [{"rule": "claim_supported", "severity": "error"} | lengths]
    assert b"Ann" not in receiver.raw


async def test_every_attempt_is_a_guardrail_with_its_issues_and_repairs() -> None:
    async with LangfuseReceiver() as receiver, tracer_to(receiver.url) as tracer:
        run_turn(await turn_of(tracer))
    first, second = (span for span in receiver.spans if span.name == "verify")
    assert (first["input"], first["output"]) == ("**12** [1]", "*12* [1]")
    assert first["level"] == "WARNING"
    assert first["metadata.attempt"] == 1
    assert first["metadata.passed"] is False
    assert first["metadata.repairs"] == {"bold": 1}
    issue = {"rule": "claim_supported", "severity": "error", "words": "12", "detail": "the source says 120"}
    assert first["metadata.issues"] == [
        issue,
        issue,
        {"rule": "minimum_length", "severity": "warning", "words": "", "detail": ""},
    ]
    assert second["metadata.passed"] is True
    per_attempt = [score for score in receiver.scores if score["name"] == "verify_attempt_pass"]
    assert [(score["observationId"], score["value"]) for score in per_attempt] == [
        (first.span_id, 0),
        (second.span_id, 1),
    ]


@pytest.mark.parametrize(
    ("outcome", "reason", "passed"),
    [
        ("answered", "", [1]), ("partial", "", [0]), ("failed", "verification", [0]), ("failed", "TimeoutError", []),
        ("refused", "not_in_sources", []), ("asked", "", []), ("cancelled", "", []), ("unsourced", "", []),
        ("out_of_budget", "tokens", []),
    ],
)  # fmt: skip
async def test_scores_are_set_only_if_verification_decided(outcome: str, reason: str, passed: list[int]) -> None:
    async with LangfuseReceiver() as receiver, tracer_to(receiver.url) as tracer:
        run_turn(await turn_of(tracer), outcome=outcome, reason=reason)
    assert receiver.score("verify_pass") == passed
    assert receiver.score("verify_attempts") == [2] * len(passed)
    assert receiver.score("verify_first_pass") == [0] * len(passed)
    assert receiver.score("turn_outcome") == [outcome]
    assert receiver.score("verify_failure") == ["claim_supported"]
    types = {score["name"]: score["dataType"] for score in receiver.scores}
    assert types.items() >= {"verify_attempt_pass": "BOOLEAN", "verify_failure": "CATEGORICAL"}.items()
    if passed:
        assert (types["verify_pass"], types["verify_attempts"]) == ("BOOLEAN", "NUMERIC")


async def test_only_the_first_end_of_a_turn_counts() -> None:
    async with LangfuseReceiver() as receiver, tracer_to(receiver.url) as tracer:
        trace = await turn_of(tracer)
        trace.end(outcome="answered", answer="So.")
        trace.end(outcome="interrupted")
    assert receiver.score("turn_outcome") == ["answered"]


async def test_feedback_goes_to_the_same_trace_and_a_second_click_replaces_the_first() -> None:
    async with LangfuseReceiver() as receiver, tracer_to(receiver.url) as tracer:
        await tracer.feedback("turn-9", user="U1", good=True)
        await tracer.feedback("turn-9", user="U1", good=False)
    assert [(score["name"], score["value"], score["traceId"]) for score in receiver.scores] == [
        ("user_feedback", 1, trace_id_of("turn-9")), ("user_feedback", 0, trace_id_of("turn-9")),
    ]  # fmt: skip
    assert receiver.scores[0]["id"] == receiver.scores[1]["id"]


def test_a_turn_id_of_the_right_form_is_the_trace_id() -> None:
    turn_id = hashlib.sha256(b"T1:C1:1.1").hexdigest()[:32]
    assert trace_id_of(turn_id) == turn_id
    for other in ("turn-1", "", "0" * 32, turn_id.upper(), turn_id + "0"):
        assert re.fullmatch("[0-9a-f]{32}", trace_id_of(other))
        assert trace_id_of(other) != other


async def test_open_observations_are_closed_at_the_end_and_long_ids_hashed() -> None:
    async with LangfuseReceiver() as receiver, tracer_to(receiver.url) as tracer:
        trace = await tracer.turn("t", thread="ü" * 300, user="U", question="q" * 60_000)
        trace.model_start(phase="write")
        trace.tool_start("1", tool="git_log", arguments={})
        trace.end(outcome="failed", reason="internal", answer="\n" * 60_000)
    assert {span.name for span in receiver.spans} == {"turn", "write", "git_log"}
    root = next(span for span in receiver.spans if span.name == "turn")
    assert len(root.attributes["session.id"]) == 64
    assert (len(root["input"]), root["output"]) == (50_001, "…")
    assert root["level"] == "ERROR"


async def test_a_failing_model_call_is_marked() -> None:
    async with LangfuseReceiver() as receiver, tracer_to(receiver.url) as tracer:
        trace = await turn_of(tracer)
        trace.model_start(phase="write")
        trace.model_end(phase="write", output="", call=generation(0, 0), error="TimeoutError")
        trace.end(outcome="failed", reason="TimeoutError")
    write = next(span for span in receiver.spans if span.name == "write")
    assert (write["level"], write["status_message"]) == ("ERROR", "TimeoutError")


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError


async def test_a_fault_inside_tracing_is_only_logged() -> None:
    async with LangfuseReceiver() as receiver, tracer_to(receiver.url, send_content=False) as tracer:
        trace = await turn_of(tracer)
        with capture_logs() as logs:
            trace.tool_start("1", tool="search", arguments={"q": Unprintable()})
        trace.end(outcome="answered")
    fault = {"event": "trace_failed", "log_level": "warning", "part": "tool_start", "error_type": "RuntimeError"}
    assert [entry for entry in logs if entry["event"] == "trace_failed"] == [fault]


async def test_a_trace_that_could_not_begin_stays_silent() -> None:
    unprintable: Any = Unprintable()
    async with LangfuseReceiver() as receiver, tracer_to(receiver.url, send_content=False) as tracer:
        with capture_logs() as logs:
            trace = await tracer.turn("t", thread=THREAD, user="U1", question=unprintable)
            run_turn(trace)
            trace.model_end(phase="write", output="", call=generation(0, 0))
            trace.first_token()
    # A server of another test may be reported as gone meanwhile.
    faults = [(entry["part"], entry["error_type"]) for entry in logs if entry["event"] == "trace_failed"]
    assert faults == [("begin", "RuntimeError")]
    assert receiver.spans == []


async def test_a_server_on_this_machine_is_never_behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with LangfuseReceiver() as receiver, tracer_to(receiver.url) as tracer:
        run_turn(await turn_of(tracer))
    assert receiver.spans
    assert receiver.scores


def closed_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


EXITING = """
import asyncio, structlog, sys, time
structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # a thread may log at any time
from observability.langfuse.connection import Connection
from observability.langfuse.tracing import Tracer
async def main():
    tracer = Tracer(Connection(public_key="pk", secret_key="sk", host=sys.argv[1]))
    await tracer.connect()
    began = time.monotonic()
    for number in range(20):
        trace = await tracer.turn(str(number), thread="x", user="u", question="q")
        trace.end(outcome="answered", answer="a")
    await tracer.aclose(timeout_s=0.3)
    print(time.monotonic() - began)
asyncio.run(main())
print(time.monotonic())
"""


async def test_a_dead_or_hanging_host_delays_neither_turns_nor_the_shutdown_nor_the_end_of_the_process() -> None:
    async def ends(url: str) -> None:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", EXITING, url, stdout=subprocess.PIPE)
        out, _ = await process.communicate()
        took_s, ended = map(float, out.split())
        assert process.returncode == 0
        assert took_s < 10
        assert time.monotonic() - ended < 20

    async with LangfuseReceiver(hang=True) as receiver, asyncio.TaskGroup() as group:
        for url in (receiver.url, closed_port()):
            group.create_task(ends(url))
