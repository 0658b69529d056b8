"""Disliked and corrected answers in Langfuse: an annotation queue, a corrected output, and a dataset to ask again."""

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
from observability.langfuse.datasets import CORRECTIONS
from observability.langfuse.tracing import trace_id_of
from observability.metrics import Metrics
from observability.stats import Stats
from tests.support.langfuse_receiver import LangfuseReceiver, tracer_to
from tests.support.waiting import wait_until

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
        await judge_turn(redis_client, receiver, items=2, answer="It is 14 weeks.", queue="To review")
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
    assert line["reason"] == "LANGFUSE_ANNOTATION_QUEUE: there is no queue Gone"


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
