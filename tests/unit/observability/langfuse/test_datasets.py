"""Datasets in Langfuse: experiments that are pushed, and corrected answers to ask again."""

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from redis.asyncio import Redis
from structlog.testing import capture_logs

from bot.errors import WrongUse
from bot.evals.answers import EvalReply, LabelledQuestion, ask_all
from bot.settings import load_settings
from bot.stores.turn_records import TurnRecords
from bot.turn.observer import Observers
from observability.langfuse.datasets import CORRECTIONS, TO_BE_REFUSED, Experiment, Item, push_experiment
from observability.langfuse.tracing import Tracer, trace_id_of
from observability.metrics import Metrics
from observability.stats import Stats
from tests.support.langfuse_receiver import LangfuseReceiver, tracer_to
from tests.support.waiting import wait_until

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


QUESTION = "How long is parental leave?"
TRACE = trace_id_of("turn-1")


async def judge_turn(
    redis: Redis,
    receiver: LangfuseReceiver,
    *,
    items: int = 0,
    answer: str = "",
    sent: Callable[[], object] = lambda: True,
    **options: Any,
) -> None:
    """Two people dislike one answer, then one saves the right one. Return once all is ``sent``."""
    records = TurnRecords(redis)
    await records.save({"turn_id": "turn-1", "question": QUESTION, "outcome": "answered"})
    async with tracer_to(receiver.url, **options) as tracer:
        observers = Observers(metrics=Metrics(), stats=Stats(redis), records=records, tracer=tracer)
        await observers.feedback("turn-1", "U1", good=False)
        await observers.feedback("turn-1", "U2", good=False)
        await wait_until(lambda: len(receiver.items) >= min(items, 1), "the dislike is in the dataset")
        if answer:
            await observers.correct("turn-1", answer)
            await wait_until(lambda: len(receiver.items) >= items, "the right answer is in the dataset")
        await wait_until(sent, "Langfuse has the rest")  # closing the tracer ends what is under way


async def test_the_first_dislike_is_queued_and_a_saved_answer_is_the_corrected_output(redis_client: Redis) -> None:
    async with LangfuseReceiver() as receiver:
        await judge_turn(redis_client, receiver, items=2, answer="It is 14 weeks.", queue="queue-1")
    assert [(item["objectId"], item["objectType"]) for item in receiver.queued] == [(TRACE, "TRACE")]
    (corrected,) = [score for score in receiver.scores if score["dataType"] == "CORRECTION"]
    assert (corrected["name"], corrected["value"], corrected["traceId"]) == ("output", "It is 14 weeks.", TRACE)
    disliked, saved = receiver.items
    assert disliked["id"] == saved["id"] == f"{CORRECTIONS}:{TRACE}"
    assert disliked.get("expectedOutput") is None
    assert (saved["input"], saved["expectedOutput"]) == (QUESTION, "It is 14 weeks.")
    assert saved["sourceTraceId"] == TRACE


async def test_without_texts_only_the_trace_is_queued(redis_client: Redis) -> None:
    async with LangfuseReceiver() as receiver:
        await judge_turn(redis_client, receiver, sent=lambda: receiver.queued, queue="queue-1", send_content=False)
    assert QUESTION.encode() not in receiver.raw
    assert receiver.items == receiver.datasets == []


async def test_missing_queue_is_named_in_the_log(redis_client: Redis) -> None:
    with capture_logs() as logs:
        async with LangfuseReceiver() as receiver:
            logged = lambda: any(line["event"] == "correction_not_sent" for line in logs)  # noqa: E731
            await judge_turn(redis_client, receiver, sent=logged, queue="Gone")
    (line,) = [line for line in logs if line["event"] == "correction_not_sent"]
    assert "status_code: 404" in line["reason"]


async def test_one_command_asks_the_dataset_again(redis_client: Redis, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "leave.md").write_text("# Parental leave\n\nParental leave is 14 weeks.\n")
    async with LangfuseReceiver() as receiver:
        await judge_turn(redis_client, receiver, items=2, answer="Parental leave is 14 weeks.")
        keys: dict[str, Any] = {
            "langfuse_public_key": "pk",
            "langfuse_secret_key": SecretStr("sk"),
            "langfuse_base_url": receiver.url,
        }
        settings = load_settings(**keys, home=tmp_path / "home")
        run = await ask_all(settings, Path(f"langfuse:{CORRECTIONS}"), docs)
        with pytest.raises(WrongUse, match="cannot be read"):
            await ask_all(settings, Path("langfuse:other"), docs)
    figures = run.figures()
    assert (figures["rows"], figures["answered_as_expected"], figures["kinds"]) == (
        1, 1, {"corrected": {"rows": 1, "as_expected": 1}},
    )  # fmt: skip


def test_a_reply_that_does_not_say_the_reference_is_not_as_expected() -> None:
    asked = LabelledQuestion(id="a", question=QUESTION, expect=None, reference="14 weeks.")
    assert EvalReply(asked=asked, outcome="answered", text="14 weeks").as_expected
    assert not EvalReply(asked=asked, outcome="refused", text="").as_expected
    assert not EvalReply(asked=asked, outcome="answered", text="20 weeks", says_reference=False).as_expected
