"""The record of a turn: what is counted and traced, and who may see it later."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from redis.asyncio import Redis

from agent.actions import Action, NoReply, Respond, ToolCall, ToolCalls
from agent.budget import ModelCall, Usage
from agent.knowledge.index.sqlite import SqliteIndex
from agent.model.prompts import decision_message
from agent.outcome import SILENT, Answered
from agent.texts.catalogue import own_message
from agent.thread.conversation import Question, ThreadKey, Viewers
from agent.tools.tool import ToolResult
from agent.turn.events import Done, ModelEnd, ModelStart, ToolEnd, ToolStart, Verification
from bot.documents.open import corpus_of
from bot.queue.claim import Lease
from bot.slack.web_api import DeliveryFailed
from bot.turn.engine import Engine, open_engine
from bot.turn.job import visible_record
from bot.turn.observer import Observers, open_observers
from tests.support.langfuse_receiver import LangfuseReceiver
from tests.support.orion_running import settings_in
from verification.types import Repair, Source, Verdict

QUESTION = Question(thread=ThreadKey(team="T", channel="C", thread_ts="1"), user="U", text="How many?", ts="1")
MESSAGE = {"role": "system", "content": "Answer from [1]."}
CALL = ModelCall(model="m", messages=(MESSAGE,))
SPENT = Usage(model_calls=1, prompt_tokens=7, completion_tokens=3)


@asynccontextmanager
async def traced(home: Path, redis: Redis) -> AsyncIterator[tuple[Observers, Engine, LangfuseReceiver]]:
    """Observers that send traces, and the engine that quotes."""
    async with LangfuseReceiver() as receiver:
        settings = settings_in(
            home, "", langfuse_public_key="pk", langfuse_secret_key=SecretStr("sk"), langfuse_host=receiver.url
        )
        async with open_engine(settings, corpus_of(settings)) as engine, open_observers(settings, redis) as observers:
            yield observers, engine, receiver


async def test_a_trace_shows_what_the_model_was_shown_and_what_it_said(tmp_path: Path, redis_client: Redis) -> None:
    async with traced(tmp_path, redis_client) as (observers, engine, receiver):
        async with observers.turn(QUESTION, "0" * 31 + "7", engine) as listen:
            listen.lease = Lease(until=0.0, stopped="stopped")
            listen(ModelStart(phase="write", model="m", attempt=1))
            listen(ModelEnd(phase="write", output="120 [1]", usage=SPENT, call=CALL))
            repairs = (Repair(kind="bold"), Repair(kind="html"))
            listen(Verification(attempt=1, draft="120", verdict=Verdict(passed=True, text="120", repairs=repairs)))
        await observers.tracer.aclose(timeout_s=10)
        page = observers.metrics.render()[0].decode()
    found = {span.name: span for span in receiver.spans}
    assert {span.trace_id for span in receiver.spans} == {"0" * 31 + "7"}
    write, root = found["write"], found["turn"]
    assert (write["input"], write["output"], write["model.name"]) == ([MESSAGE], "120 [1]", "m")
    assert (root["metadata.outcome"], root["metadata.reason"]) == ("interrupted", "stopped")
    assert found["verify"]["metadata.repairs"] == {"html": 1}
    assert 'orion_model_calls_total{error="",phase="write"} 1.0' in page
    assert [line for line in page.splitlines() if line.startswith("orion_repairs_total")] == [
        'orion_repairs_total{kind="html"} 1.0'
    ]


@pytest.mark.parametrize(
    ("error", "reason"),
    [(DeliveryFailed("channel_not_found", permanent=True), "channel_not_found"), (OSError(), "OSError")],
)
async def test_the_trace_of_a_turn_that_raises_says_why(
    tmp_path: Path, redis_client: Redis, error: Exception, reason: str
) -> None:
    async with traced(tmp_path, redis_client) as (observers, engine, receiver):
        with pytest.raises(type(error)):
            async with observers.turn(QUESTION, "t", engine):
                raise error
        await observers.tracer.aclose(timeout_s=10)
        assert [span["metadata.reason"] for span in receiver.spans] == [reason]


@pytest.mark.parametrize(("sources", "kind"), [((), "unsourced"), ((Source(id=1, title="Limits"),), "quoted")])
async def test_answers_that_cannot_fail_are_no_part_of_any_pass_rate(
    tmp_path: Path, redis_client: Redis, sources: tuple[Source, ...], kind: str
) -> None:
    async with traced(tmp_path, redis_client) as (observers, engine, receiver):
        async with observers.turn(QUESTION, "t", engine) as listen:
            listen(Verification(attempt=1, draft="Hi.", verdict=Verdict(passed=True, text="Hi.")))
            listen.record_end(Answered(answer=replace(own_message("Hi."), sources=sources)))
        await observers.tracer.aclose(timeout_s=10)
        assert (receiver.score("turn_outcome"), receiver.score("verify_pass")) == ([kind], [])
        assert f'orion_turns_total{{outcome="{kind}"}} 1.0' in observers.metrics.render()[0].decode()
        stats = await observers.stats.read(1)
        assert (stats.group("outcome"), stats.pass_rate) == ({kind: 1}, None)


async def test_every_turn_counts_its_tokens_however_it_ends(tmp_path: Path, redis_client: Redis) -> None:
    settings, end = settings_in(tmp_path, ""), ModelEnd(phase="write", output="", usage=SPENT, call=CALL)
    generated = ToolResult(tool="a_tool", usage=SPENT, call=replace(CALL, model="other"))
    async with open_engine(settings, corpus_of(settings)) as engine, open_observers(settings, redis_client) as all_:
        async with all_.turn(QUESTION, "t1", engine) as listen:  # stopped, or given back to the queue
            listen(end)
            listen(ToolEnd(result=generated))
        async with all_.turn(QUESTION, "t2", engine) as listen:
            listen(end)
            listen(Done(outcome="no_reply", usage=SPENT))
            listen.record_end(SILENT)
        stats, page = await all_.stats.read(1), all_.metrics.render()[0].decode()
    assert (stats.turns, stats.models()) == (0, {"m": (14, 0, 6), "other": (7, 0, 3)})
    assert (stats["usage:prompt_tokens"], stats["usage:model_calls"]) == (21, 3)
    assert 'orion_model_tokens_total{direction="in",phase="write"} 14.0' in page
    assert 'orion_model_tokens_total{direction="in",phase="unknown"} 7.0' in page


@pytest.mark.parametrize("outage", [False, True])
async def test_the_total_includes_the_time_in_the_mailbox(tmp_path: Path, redis_client: Redis, *, outage: bool) -> None:
    settings = settings_in(tmp_path, "")
    async with open_engine(settings, corpus_of(settings)) as engine, open_observers(settings, redis_client) as all_:
        outcome = Answered(answer=own_message("Hello."))
        async with (
            all_.turn(QUESTION, "t1", engine, waited_s=3.0, outage=outage) as listen,
            listen.during_delivery(outcome),
        ):
            pass
        record, page = await all_.records.load("t1"), all_.metrics.render()[0].decode()
    assert f"orion_queue_wait_seconds_sum {0.0 if outage else 3.0}" in page, "only a wait for a worker counts"
    assert record is not None
    assert record["timings_ms"]["total"] >= record["timings_ms"]["queued"] == 3_000.0


class Statuses(list[str]):
    show = list.append


async def test_a_draft_that_begins_with_the_decision_is_not_shown_as_writing(
    tmp_path: Path, redis_client: Redis
) -> None:
    settings, shown = settings_in(tmp_path, ""), Statuses()
    search = ToolStart(call=ToolCall(call_id="1", tool="search"))
    async with (
        open_engine(settings, corpus_of(settings)) as engine,
        open_observers(settings, redis_client) as all_,
        all_.turn(QUESTION, "t2", engine) as listen,
    ):
        listen.status = shown  # type: ignore[assignment]  # only its texts matter
        for action in (ToolCalls(calls=(search.call,)), Respond()):
            listen(search)
            listen(ModelStart(phase="decide", model="m"))
            listen(ModelStart(phase="write", model="m", attempt=1))
            listen(ModelEnd(phase="decide", output=decision_message(action), usage=SPENT))
        listen(ModelStart(phase="write", model="m", attempt=2))
    searching = "is searching the documents…"
    assert shown == [searching, searching, "is writing an answer…", "is correcting the answer…"]


@pytest.mark.parametrize(("first", "seen"), [(Respond(), ["is searching the documents…"]), (NoReply(), [])])
async def test_a_message_among_people_has_a_status_once_orion_decides_to_answer(
    tmp_path: Path, redis_client: Redis, first: Action, seen: list[str]
) -> None:
    settings, shown = settings_in(tmp_path, ""), Statuses()
    async with (
        open_engine(settings, corpus_of(settings)) as engine,
        open_observers(settings, redis_client) as all_,
        all_.turn(replace(QUESTION, addressed=False), "t3", engine) as listen,
    ):
        listen.status = shown  # type: ignore[assignment]  # only its texts matter
        listen(ModelEnd(phase="decide", output="no object in it", usage=SPENT, error="MalformedControlError"))
        listen(ModelEnd(phase="decide", output=decision_message(first), usage=SPENT))
        listen(ToolStart(call=ToolCall(call_id="1", tool="search")))
    assert shown == seen


OPEN, CLOSED = (
    {"id": n, "title": f"Page {n}", "origin": "mcp", "audience": who} for n, who in ((1, "public"), (2, "U1"))
)
REMOVED = {"rule": "claim_supported", "text": "Ann earns 90,000."}


@pytest.mark.parametrize(("user", "seen", "removed"), [("U1", [1, 2], [REMOVED]), ("U2", [1], [])])
async def test_a_removed_sentence_is_shown_to_those_who_may_see_every_source(
    tmp_path: Path, user: str, seen: list[int], removed: list[dict[str, Any]]
) -> None:
    record = {
        "sources": [OPEN, CLOSED],
        "attempts": [{"objected": [REMOVED]}],
        "claims": [{"text": "A claim.", "passages": [{"source": 1}, {"source": 2}]}],
    }
    viewers = Viewers(team="T1", channel="D1", user=user)
    shown = await visible_record(SqliteIndex(tmp_path / "index"), record, viewers)
    assert [source["id"] for source in shown["sources"]] == seen
    assert [passage["source"] for passage in shown["claims"][0]["passages"]] == seen
    assert shown["attempts"] == [{"objected": removed}]
