"""A run as an experiment in Langfuse: it leaves as the SDK's own do, and an absence costs seconds (G5)."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from langfuse import Evaluation

from observability.langfuse.experiments import TO_BE_REFUSED, Experiment, Item
from observability.langfuse.tracing import Tracer
from observability.langfuse.types import Attempt, Generation
from tests.support.langfuse_receiver import LangfuseReceiver, ReceivedSpan
from tests.support.waiting import wait_until
from verification.types import Violation

KEYS = itertools.count()
SECRET = "xoxb-1234567890-abcdefghij"
ITEMS = [
    Item(id="a", question=f"How many at once? {SECRET}", expect=("600 requests",), facts={"kind": "number"}),
    Item(id="b", question="Who won the match?", expect=None),
]
FACTS = {"model": "m"}
WRONG = Violation(rule="claim_supported", severity="error", words="12", detail="the source says 120")


@asynccontextmanager
async def experiment_at(host: str, *, send_content: bool = True, run: str = "set now") -> AsyncIterator[Experiment]:
    key = f"pk-experiment-{next(KEYS)}"  # the SDK keeps one client for each public key of a process
    made = Experiment(
        dataset="set", run=run, public_key=key, secret_key="sk", host=f"{host}/", send_content=send_content
    )
    try:
        yield made
    finally:
        await made.aclose(deadline_s=5)


def ask(experiment: Experiment, number: int = 1, item: Item = ITEMS[0]) -> None:
    trace = experiment.item(item, number=number, thread="eval:eval:a", user="eval")
    trace.model_start(phase="write", model="m")
    trace.model_end(phase="write", output="12 [1]", asked=Generation(prompt_tokens=1, completion_tokens=1))
    trace.attempt(Attempt(number=1, draft="12", text="12", passed=False, issues=(WRONG,)))
    trace.attempt(Attempt(number=2, draft="600 requests [1]", text="600 requests [1]", passed=True))
    trace.end(outcome="answered", answer="600 requests [1]")
    trace.judge(as_expected=True, outcome="answered")


async def whole_run(experiment: Experiment) -> None:
    experiment.begin(ITEMS)
    await experiment.ready(FACTS, within_s=20)
    for number, item in enumerate(ITEMS, start=1):
        ask(experiment, number, item)
    await experiment.finish({"as_expected_share": 0.5}, within_s=20)


async def sdks_own(receiver: LangfuseReceiver) -> list[ReceivedSpan]:
    """What the SDK sends of an experiment that it runs itself."""
    tracer = Tracer(public_key=f"pk-experiment-{next(KEYS)}", secret_key="sk", host=receiver.url)
    client = tracer._client
    assert client is not None

    def answered(**_: object) -> str:
        return "600 requests"

    def judged(**_: object) -> Evaluation:
        return Evaluation(name="as_expected", value=1)

    def run() -> None:
        client.create_dataset(name="set")
        item = client.create_dataset_item(
            dataset_name="set", id="set:a", expected_output=["600 requests"], input="?", metadata={"kind": "number"}
        )
        client.run_experiment(
            name="set", run_name="set now", data=[item], task=answered, evaluators=[judged], metadata=FACTS
        )

    await asyncio.to_thread(run)
    await tracer.aclose(deadline_s=5)
    return receiver.spans


def about_experiment(span: ReceivedSpan) -> dict[str, object]:
    """What says of a span that it belongs to an experiment, without the ids that differ by their nature."""
    return {
        name: value
        for name, value in span.attributes.items()
        if name == "langfuse.environment" or name.startswith("langfuse.experiment")
        if not name.endswith((".experiment.id", "root_observation_id"))
    }


async def test_g5_a_question_carries_what_the_sdk_gives_its_own_experiments() -> None:
    async with LangfuseReceiver() as receiver, LangfuseReceiver() as other:
        async with experiment_at(receiver.url) as experiment:
            await whole_run(experiment)
        theirs = {span.name: span for span in await sdks_own(other)}
    mine = [span for span in receiver.spans if span.attributes["langfuse.experiment.item.id"] == "set:a"]
    root = next(span for span in mine if span.name == "eval")
    assert about_experiment(root) == about_experiment(theirs["experiment-item-task"])
    assert about_experiment(next(span for span in mine if span.name == "verify")) == about_experiment(theirs["judged"])
    assert {span.attributes["langfuse.experiment.item.root_observation_id"] for span in mine} == {root.span_id}
    assert len({span.attributes["langfuse.experiment.id"] for span in receiver.spans}) == 1
    assert (root["input"], root["output"]) == ("How many at once? [redacted]", "600 requests [1]")
    assert root.attributes["langfuse.internal.as_root"]
    assert len({span.trace_id for span in receiver.spans}) == len(ITEMS)
    assert SECRET.encode() not in receiver.raw


async def test_g5_the_dataset_has_items_with_ids_for_good_and_the_run_its_scores() -> None:
    async with LangfuseReceiver() as receiver:
        for run in ("set one", "set two"):
            async with experiment_at(receiver.url, run=run) as experiment:
                await whole_run(experiment)
                assert experiment.told == (
                    f"Langfuse: run {run} of the dataset set, "
                    f"{receiver.url}/project/p1/experiments/results?baseline={experiment._id}"
                )
    assert [dataset["name"] for dataset in receiver.datasets] == ["set", "set"]
    first, second = receiver.items[:2], receiver.items[2:]
    assert first == second
    assert [(item["id"], item["expectedOutput"], item["metadata"]) for item in first] == [
        ("set:a", ["600 requests"], {"kind": "number"}),
        ("set:b", TO_BE_REFUSED, {}),
    ]
    roots = {span.span_id: span.trace_id for span in receiver.spans if span.name == "eval"}
    judged = [score for score in receiver.scores if score["name"] == "as_expected"]
    assert {score["observationId"]: score["traceId"] for score in judged} == roots
    assert receiver.score("as_expected_share") == [0.5, 0.5]
    assert len({score["datasetRunId"] for score in receiver.scores if "datasetRunId" in score}) == 2
    assert {score["environment"] for score in receiver.scores} == {"sdk-experiment"}


async def test_g5_labelled_questions_do_not_count_into_the_pass_rate_of_peoples() -> None:
    async with LangfuseReceiver() as receiver, experiment_at(receiver.url) as experiment:
        await whole_run(experiment)
    names = {score["name"] for score in receiver.scores}
    assert {"eval_verify_pass", "eval_verify_attempts", "eval_verify_failure", "eval_verify_attempt_pass"} <= names
    assert not {name for name in names if name.startswith("verify")}
    assert "turn" not in {span.name for span in receiver.spans}


async def test_g5_without_content_nothing_that_was_asked_answered_or_expected_leaves() -> None:
    async with LangfuseReceiver() as receiver, experiment_at(receiver.url, send_content=False) as experiment:
        await whole_run(experiment)
    assert [item["expectedOutput"] for item in receiver.items] == [[{"length": 12}], TO_BE_REFUSED]
    assert receiver.items[0]["input"] == {"length": len(ITEMS[0].question)}
    for text in (b"How many", b"600 requests", b"Who won", b"the source says"):
        assert text not in receiver.raw


async def test_g5_without_keys_nothing_happens() -> None:
    experiment = Experiment(dataset="set", run="r", public_key="", secret_key="", host="http://127.0.0.1:9")
    await whole_run(experiment)
    assert (experiment.told, experiment.enabled) == ("", False)


@pytest.mark.parametrize(
    ("refuse", "why"),
    [(401, "refuses LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"), (500, "answered 500")],
)
async def test_g5_a_langfuse_that_refuses_is_told_and_the_run_goes_on(refuse: int, why: str) -> None:
    async with LangfuseReceiver(refuse=refuse) as receiver, experiment_at(receiver.url) as experiment:
        await whole_run(experiment)
        assert experiment.told == f"{receiver.url} {why}: this run was not pushed to Langfuse as an experiment."
    assert (receiver.spans, receiver.scores) == ([], [])


async def test_g5_a_host_that_is_no_langfuse_is_told() -> None:
    async with LangfuseReceiver(refuse=200) as receiver, experiment_at(receiver.url) as experiment:
        await whole_run(experiment)
        assert "does not answer as Langfuse does" in experiment.told


async def test_g5_an_absent_langfuse_is_told_and_the_run_goes_on() -> None:
    with socket.socket() as closed:  # bound and not listening: connections are refused
        closed.bind(("127.0.0.1", 0))
        async with experiment_at(f"http://127.0.0.1:{closed.getsockname()[1]}") as experiment:
            await whole_run(experiment)
            assert "cannot be reached (ConnectError): this run was not pushed" in experiment.told


async def test_g5_a_silent_langfuse_is_waited_for_once_and_not_longer_than_said() -> None:
    async with LangfuseReceiver(hang=True) as receiver, experiment_at(receiver.url) as experiment:
        experiment.begin(ITEMS)
        await experiment.ready(FACTS, within_s=0.05)
        assert not experiment.enabled
        ask(experiment)
        await experiment.finish({"as_expected_share": 1.0})
        assert "did not answer in time: this run was not pushed" in experiment.told


async def test_g5_a_langfuse_that_falls_silent_does_not_keep_the_end_of_a_run() -> None:
    async with LangfuseReceiver() as receiver, experiment_at(receiver.url) as experiment:
        experiment.begin(ITEMS)
        await experiment.ready(FACTS, within_s=20)
        await wait_until(lambda: len(receiver.items) == len(ITEMS), "the items")
        receiver.hang = True
        ask(experiment)
        await experiment.finish({}, within_s=0.3)
        assert "did not answer in time: this run was only in part pushed" in experiment.told


async def test_g5_a_langfuse_that_fails_midway_is_told() -> None:
    async with LangfuseReceiver() as receiver, experiment_at(receiver.url) as experiment:
        experiment.begin(ITEMS)
        await experiment.ready(FACTS, within_s=20)
        await wait_until(lambda: len(receiver.items) == len(ITEMS), "the items")
        receiver.refuse = 503
        ask(experiment)
        await experiment.finish({}, within_s=20)
        assert "answered 503: this run was only in part pushed" in experiment.told


async def test_g5_items_that_langfuse_refuses_are_told() -> None:
    async with LangfuseReceiver(refuse_items=400) as receiver, experiment_at(receiver.url) as experiment:
        await whole_run(experiment)
        assert "answered 400: this run was only in part pushed" in experiment.told
    assert [dataset["name"] for dataset in receiver.datasets] == ["set"]
