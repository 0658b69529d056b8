"""How observations leave for Langfuse: named as by its SDK, tried again, never piling up without end."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langfuse import LangfuseOtelSpanAttributes
from structlog.testing import capture_logs

from observability.langfuse.connection import Tracer
from observability.langfuse.sender import MOST_OBSERVATIONS, Observation, Sender
from observability.langfuse.tracing import Generation
from tests.support.langfuse_receiver import LangfuseReceiver
from tests.support.waiting import wait_until


@asynccontextmanager
async def sender_to(host: str) -> AsyncIterator[Sender]:
    sender = Sender(public_key="pk", secret_key="sk", host=host)
    try:
        yield sender
    finally:
        await sender.aclose(deadline_s=10)


def seen(name: str = "turn", **facts: object) -> Observation:
    return Observation(name=name, trace_id="ab" * 16, common={}, facts=facts, ended_ns=1)


async def test_attributes_are_those_of_the_sdk() -> None:
    known = {name for key, name in vars(LangfuseOtelSpanAttributes).items() if key.isupper()}
    async with LangfuseReceiver() as receiver:
        tracer = Tracer(public_key="pk", secret_key="sk", host=receiver.url, version="v", environment="eval")
        trace = tracer.turn("t", thread="T:C:1", user="U1", question="q")
        trace.model_start(phase="write", model="m")
        trace.first_token()
        asked = Generation(model="m", messages=[{"role": "user", "content": "q"}], parameters={"temperature": 0.3})
        trace.model_end(phase="write", output="a", asked=asked, error="TimeoutError")
        trace.end(outcome="failed", reason="internal")
        await tracer.aclose(deadline_s=10)
    used = set(itertools.chain.from_iterable(span.attributes for span in receiver.spans))
    metadata = {name for name in used if name.startswith(f"{LangfuseOtelSpanAttributes.OBSERVATION_METADATA}.")}
    assert used - metadata <= known
    assert LangfuseOtelSpanAttributes.OBSERVATION_COMPLETION_START_TIME in used
    assert {name.rpartition(".")[2] for name in metadata} == {"attempt", "outcome", "reason", "attempts"}


async def test_busy_host_is_asked_again() -> None:
    async with LangfuseReceiver() as receiver, sender_to(receiver.url) as sender:
        receiver.refuse_traces = [503]
        sender.put(seen())
        await wait_until(lambda: [span.name for span in receiver.spans] == ["turn"], "it arrives at the second try", 20)


async def test_what_a_host_refuses_is_dropped_and_told_once() -> None:
    async with LangfuseReceiver() as receiver:
        receiver.refuse_traces = [401, 301]
        with capture_logs() as logs:
            async with sender_to(receiver.url) as sender:
                sender.put(seen())
                await wait_until(lambda: len(receiver.refuse_traces) == 1, "it was refused", 20)
                sender.put(seen())
                await wait_until(lambda: not receiver.refuse_traces, "it was refused again", 20)
                sender.put(seen("later"))
    assert [span.name for span in receiver.spans] == ["later"]
    assert [(entry["event"], entry.get("reason"), entry.get("lost")) for entry in logs] == [
        ("traces_lost", "http_401", None), ("traces_arrive_again", None, 2),
    ]  # fmt: skip


async def test_what_waits_for_a_host_is_bounded() -> None:
    async with LangfuseReceiver() as receiver:
        with capture_logs() as logs:
            async with sender_to(receiver.url) as sender:
                for number in range(MOST_OBSERVATIONS + 5):
                    sender.put(seen(str(number)))
    assert [int(span.name) for span in receiver.spans] == list(range(5, MOST_OBSERVATIONS + 5))
    assert [(entry["event"], entry["lost"]) for entry in logs] == [("traces_arrive_again", 5)]


async def test_half_an_emoji_and_a_great_number_arrive() -> None:
    async with LangfuseReceiver() as receiver, sender_to(receiver.url) as sender:
        sender.put(seen(input="caf\ud83d", output={"rows": 2**70}))
    (span,) = receiver.spans
    assert span["output"] == {"rows": 2**70}
    assert span["input"] == "caf?"
