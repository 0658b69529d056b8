"""A run as an experiment in Langfuse: pushed by the SDK when it is over; an absence costs seconds."""

import json
import socket
import time

import pytest

from observability.langfuse.datasets import TO_BE_REFUSED, Experiment, Item, push_experiment
from observability.langfuse.tracing import Tracer
from tests.support.langfuse_receiver import LangfuseReceiver, tracer_to

SECRET = "xoxb-1234567890-abcdefghij"
ITEMS = [
    Item(
        id="a",
        question=f"How many at once? {SECRET}",
        expect=("600 requests",),
        answer="600 requests [1]",
        as_expected=True,
        kind="number",
        facts={"outcome": "answered", "attempts": 2},
    ),
    Item(id="b", question="Who won the match?", expect=None, answer="She won.", as_expected=False),
]
NOT_PUSHED = "this run was not pushed to Langfuse as an experiment, or only in part."


async def push(tracer: Tracer, *, run: str = "set now", timeout_s: float = 20) -> str:
    made = Experiment(dataset="set", run=run, items=ITEMS, shares={"as_expected_share": 0.5}, about={"model": "m"})
    return await push_experiment(tracer, made, timeout_s=timeout_s)


async def test_a_run_is_a_dataset_with_items_traces_and_scores() -> None:
    async with LangfuseReceiver() as receiver, tracer_to(receiver.url) as tracer:
        told = await push(tracer)
        assert told.startswith(f"Langfuse: run set now of the dataset set, {receiver.url}/project/p1/experiments/")
    assert [dataset["name"] for dataset in receiver.datasets] == ["set"]
    assert [(item["id"], item["expectedOutput"], item["metadata"]) for item in receiver.items] == [
        ("set:a", ["600 requests"], {"kind": "number"}),
        ("set:b", TO_BE_REFUSED, {}),
    ]
    roots = {span.span_id: span for span in receiver.spans if span.name == "experiment-item-run"}
    assert [root["output"] for root in roots.values()] == [
        {"answer": "600 requests [1]", "as_expected": True, "outcome": "answered", "attempts": 2},
        {"answer": "She won.", "as_expected": False},
    ]
    assert {root.attributes["langfuse.experiment.name"] for root in roots.values()} == {"set now"}
    judged = [score for score in receiver.scores if score["name"] == "as_expected"]
    assert [score["value"] for score in judged] == [1.0, 0.0]
    assert receiver.score("as_expected_share") == [0.5]
    assert SECRET.encode() not in receiver.raw


async def test_items_keep_their_ids_from_run_to_run() -> None:
    async with LangfuseReceiver() as receiver, tracer_to(receiver.url) as one, tracer_to(receiver.url) as two:
        first, second = await push(one, run="one"), await push(two, run="two")
        assert first != second
    assert receiver.items[:2] == receiver.items[2:]
    assert len({score["datasetRunId"] for score in receiver.scores if "datasetRunId" in score}) == 2


async def test_without_content_no_question_answer_or_expectation_is_sent() -> None:
    async with LangfuseReceiver() as receiver, tracer_to(receiver.url, send_content=False) as tracer:
        await push(tracer)
    assert [item["expectedOutput"] for item in receiver.items] == [[{"length": 12}], TO_BE_REFUSED]
    for text in (b"How many", b"600 requests", b"Who won", b"She won"):
        assert text not in receiver.raw


@pytest.mark.parametrize(
    ("refuse", "why"),
    [
        (401, "refuses LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"),
        (400, "answered 400"),
        (200, "does not answer as Langfuse does"),
    ],
)
async def test_refusing_langfuse_is_reported(refuse: int, why: str) -> None:
    async with LangfuseReceiver(refuse=refuse) as receiver, tracer_to(receiver.url) as tracer:
        assert await push(tracer) == f"{receiver.url} {why}: {NOT_PUSHED}"
    assert receiver.spans == []


async def test_a_missing_langfuse_is_reported() -> None:
    with socket.socket() as closed:  # bound and not listening: connections are refused
        closed.bind(("127.0.0.1", 0))
        async with tracer_to(f"http://127.0.0.1:{closed.getsockname()[1]}") as tracer:
            assert f"cannot be reached (ConnectError): {NOT_PUSHED}" in await push(tracer)


async def test_a_silent_langfuse_delays_no_one_longer_than_its_limit() -> None:
    async with LangfuseReceiver(hang=True) as receiver, tracer_to(receiver.url) as tracer:
        began = time.monotonic()
        assert await push(tracer, timeout_s=0.2) == f"{receiver.url} did not answer in time: {NOT_PUSHED}"
        assert time.monotonic() - began < 10


async def test_items_that_langfuse_refuses_are_reported() -> None:
    async with LangfuseReceiver(refuse_items=400) as receiver, tracer_to(receiver.url) as tracer:
        assert await push(tracer) == f"{receiver.url} answered 400: {NOT_PUSHED}"
    assert json.loads(json.dumps(receiver.datasets))[0]["name"] == "set"
