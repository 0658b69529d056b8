"""Records of turns."""

from dataclasses import asdict
from itertools import count

from redis.asyncio import Redis

from agent.actions import ToolCall
from agent.budget import Usage
from agent.outcome import Answered
from agent.tools.tool import ToolResult
from agent.turn.events import Done, ModelEnd, ModelStart, Thinking, ToolEnd, ToolStart, Verification
from bot.stores.turn_records import Recorder, TurnRecords
from tests.support.fakes import LIMITS, question
from verification.types import Answer, Repair, Source, Verdict, Violation

VERDICT = Verdict(
    passed=False, text="t", repairs=(Repair(kind="bold", count=2),),
    violations=(Violation(rule="cites_sources", severity="error", words="w", detail="d", remedy="r"),),
)  # fmt: skip


def record_turn(tool: str = "search") -> Recorder:
    ticks = count()
    recorder = Recorder(clock=lambda: float(next(ticks)))
    for event in (
        ToolStart(call=ToolCall(call_id="a", tool=tool)),
        ToolEnd(result=ToolResult(call_id="a", tool=tool, ok=True)),
        ModelStart(phase="write", model="m", attempt=1),
        Thinking(text="hm"),
        ModelEnd(phase="write", output="o", usage=Usage(model_calls=1)),
        Verification(attempt=1, draft="draft", verdict=VERDICT),
        Done(outcome="answered", usage=Usage(model_calls=1, prompt_tokens=3, completion_tokens=4)),
    ):
        recorder(event)
    return recorder


def test_record_holds_attempts_timings_and_usage() -> None:
    answer = Answer(text="a", chunks=("a",), sources=(LIMITS,), verified=True, attempts=1)
    record = record_turn().record(question(), Answered(answer=answer), turn_id="t1", model="m")
    assert record["claims"] == []
    assert set(record["timings_ms"]) == {"search", "write", "verify"}
    assert record["usage"]["tokens"] == 7
    assert record["verified"] is True
    (source,) = record["sources"]
    assert (source["id"], source["title"], source["url"], source["updated_at"]) == (0, LIMITS.title, LIMITS.url, "")
    assert [(a["attempt"], a["draft"], a["passed"]) for a in record["attempts"]] == [(1, "draft", False)]
    assert record["attempts"][0]["repairs"] == [{"kind": "bold", "count": 2}]
    assert record["attempts"][0]["violations"] == [asdict(VERDICT.violations[0])]


def test_a_record_keeps_only_the_link_of_a_slack_search_result() -> None:
    found = Source(id=1, title="Ann in #tea", url="https://slack.example/p1", text="words", origin="tool:slack_search")
    answer = Answer(text="a [1]", chunks=("a",), sources=(found,), verified=True, attempts=1)
    record = record_turn("slack_search").record(question(), Answered(answer=answer), turn_id="t1", model="m")
    assert record["attempts"][0]["violations"] == [{**asdict(VERDICT.violations[0]), "detail": "", "remedy": ""}]
    assert [(source["title"], source["url"]) for source in record["sources"]] == [("A message in Slack", found.url)]


async def test_records_are_kept_and_expire(redis_client: Redis) -> None:
    records = TurnRecords(redis_client)
    await records.save({"turn_id": "t1", "answer": "ä"})
    assert await records.load("t1") == {"turn_id": "t1", "answer": "ä"}
    assert await records.load("t2") is None
    assert await redis_client.ttl(records.key("t1")) > 0


async def test_admins_see_which_verified_answers_were_disliked_and_what_failed(redis_client: Redis) -> None:
    records = TurnRecords(redis_client)
    for turn, verified in (("t1", True), ("t2", False), ("t3", True), ("t4", True)):
        await records.save({"turn_id": turn, "verified": verified, "outcome": "answered" if verified else "failed"})
        await records.save_feedback(turn, "U1", good=False)
    await records.save_complaint("t1", "U1", reasons=["outdated"], said="700")
    await records.save_feedback("t3", "U1", good=True)
    await redis_client.delete(records.key("t4"))
    (disliked,) = await records.list_disliked(5)
    assert (disliked["turn_id"], disliked["complaints"]) == ("t1", [{"reasons": ["outdated"], "said": "700"}])
    assert [record["turn_id"] for record in await records.list_latest("failed", 5)] == ["t2"]
    assert all([await redis_client.ttl(key) > 0 for key in await redis_client.keys("*")])
