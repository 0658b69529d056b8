"""What Redis knows of threads, people, direct messages and turns."""

import json
from dataclasses import asdict
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis

from agent.actions import ToolCall
from agent.budget import Usage
from agent.outcome import Answered
from agent.thread.conversation import ThreadKey, ThreadMessage
from agent.thread.state import ThreadState
from agent.tools.tool import ToolResult
from agent.turn.events import Done, ModelEnd, ModelStart, Thinking, ToolEnd, ToolStart, Verification
from bot.events.intake import Intake
from bot.queue.queue import Mailbox
from bot.slack.message import Access, Incoming
from bot.stores.stores import (
    DIRECT_MESSAGE_TTL_S,
    MAX_CONTEXT_AGE_S,
    STRANGER_TTL_S,
    TOKEN_TTL_S,
    DirectMessages,
    Stores,
    ThreadModes,
    read_facts,
)
from bot.stores.turn_records import OutboxEntry, Recorder, TurnRecords, claims_json, read_entry
from tests.support.fakes import LIMITS, question
from tests.support.local_slack import local_slack
from tests.support.redis_contents import everything
from tests.support.services import workspaces_of
from verification.types import Answer, Claim, Repair, Source, Verdict, Violation

BEGAN = 1_795_000_000.0
OLD = ThreadKey(team="T1", channel="C1", thread_ts="1794999999.000100")
NEW = ThreadKey(team="T1", channel="C1", thread_ts="1795000001.000100")
DIRECT = ThreadKey(team="T1", channel="D1", thread_ts="D1")


def modes_of(redis: Redis) -> ThreadModes:
    return ThreadModes(redis, clock=lambda: BEGAN)


async def test_a_thread_older_than_the_memory_counts_as_lost_until_looked_up(redis_client: Redis) -> None:
    thread_modes = modes_of(redis_client)
    assert [await thread_modes.get(thread) for thread in (OLD, NEW, DIRECT)] == ["lost", "unknown", "unknown"]
    await thread_modes.mark_stranger(OLD)
    assert await thread_modes.get(OLD) == "unknown"
    assert 0 < await redis_client.ttl(f"orion:stranger:{OLD}") <= STRANGER_TTL_S
    await thread_modes.set(OLD, "engaged")
    assert await thread_modes.get(OLD) == "engaged"


async def test_the_memory_of_threads_begins_with_the_first_stored_mention(redis_client: Redis) -> None:
    thread_modes = modes_of(redis_client)
    asked = Incoming(kind="question", thread=OLD, user="U1", ts=OLD.thread_ts, addressed="mention")
    lost, taken = redis_client.pipeline(transaction=False), redis_client.pipeline(transaction=False)
    thread_modes.record_message(lost, asked, new=True)  # Redis was away: Slack sends it again
    thread_modes.record_message(taken, asked, new=True)
    await taken.execute()
    assert float(str(await redis_client.get(thread_modes.key("remembers_since")))) == BEGAN


async def test_the_memory_of_threads_begins_only_once(redis_client: Redis) -> None:
    await modes_of(redis_client).get(NEW)
    later = ThreadModes(redis_client, clock=lambda: BEGAN + 3_600)
    assert await later.get(NEW) == "unknown"
    assert await later.get(OLD) == "lost"


def thread(seconds: int, channel: str = "D1") -> ThreadKey:
    return ThreadKey(team="T1", channel=channel, thread_ts=f"{1_700_000_000 + seconds}.000100")


async def test_the_previous_thread_is_the_one_last_used_within_half_an_hour(redis_client: Redis) -> None:
    chats = DirectMessages(redis_client)
    first, second, channel = thread(0), thread(60), thread(0, "C1")
    async with redis_client.pipeline() as pipe:
        for said in (first, second, channel):
            chats.record(pipe, said, said.thread_ts)
        chats.record(pipe, first, thread(90).thread_ts)  # a person continued in the first one
        await pipe.execute()

    async def before(seconds: int, channel: str = "D1") -> ThreadKey | None:
        opened = thread(seconds, channel)
        return await chats.previous_thread(opened, opened.thread_ts)

    assert [await before(seconds) for seconds in (100, 70, 0)] == [first, second, None]
    assert [await before(seconds) for seconds in (90 + MAX_CONTEXT_AGE_S - 1, 90 + MAX_CONTEXT_AGE_S)] == [first, None]
    assert await chats.previous_thread(second, thread(100).thread_ts) is None, "a reply goes on where it stands"
    assert await before(100, "C1") is None
    assert 0 < await redis_client.ttl(chats.key("direct", first.team, first.channel)) <= DIRECT_MESSAGE_TTL_S


words = st.text(max_size=30)
answers = st.builds(
    Answer,
    text=words,
    chunks=st.lists(words, max_size=3).map(tuple),
    sources=st.lists(st.builds(Source, id=st.integers(1, 9), title=words, url=words, text=words), max_size=2).map(
        tuple
    ),
    verified=st.booleans(),
    attempts=st.integers(0, 3),
    label=words,
)


@given(answers, words)
def test_an_entry_is_read_back_as_it_was_written(answer: Answer, said: str) -> None:
    state = ThreadState(mission=said, history=(ThreadMessage(role="user", text=said),))
    entry = OutboxEntry(outcome="answered", answer=answer, state=state)
    assert read_entry(entry.to_json()) == entry
    fields = json.loads(entry.to_json())
    newer = {**fields["answer"], "tone": "kind", "violations": [{"rule": "no_such_rule_yet"}]}
    assert read_entry(json.dumps(fields | {"answer": newer, "mood": "good"})) == entry, "of another version"


@pytest.mark.parametrize(
    "stored", [None, "", "{", "[]", '{"outcome": "answered"}', '{"outcome":1,"answer":{},"state":""}']
)
def test_an_unreadable_entry_counts_as_none(stored: str | None) -> None:
    assert read_entry(stored) is None


PLACE = ThreadKey(team="T1", channel="C1", thread_ts="1.0")


def incoming(**more: Any) -> Incoming:
    fields: dict[str, Any] = {"action_token": "xact-secret", **more}
    return Incoming(kind="question", thread=PLACE, user="U1", ts="1.0", addressed="mention", text="?", **fields)


async def token_of(stores: Stores, incoming: Incoming) -> str:
    """The token as the message's turn finds it."""
    return (await read_facts(stores, incoming, "t")).token


async def test_a_token_is_in_no_mailbox_and_no_dead_letter(redis_client: Redis) -> None:
    mailbox = Mailbox(redis_client)
    stores = Stores(redis_client, mailbox)
    async with local_slack() as slack:
        await Intake(stores, mailbox.cancel, Access(), workspaces_of(slack, redis_client)).store_or_carry_out(
            incoming()
        )
    (claimed,) = await mailbox.claim("w", 1)
    assert await token_of(stores, Incoming.from_json(claimed.body)) == "xact-secret"
    await mailbox.finish(claimed, "dead", reason="given up")
    holding = [key for key, text in (await everything(redis_client)).items() if "xact-secret" in text]
    assert holding == [stores.token_key(incoming())]
    assert 0 < await redis_client.ttl(holding[0]) <= TOKEN_TTL_S
    await mailbox.aclose()


async def test_each_version_of_a_message_has_its_own_key(redis_client: Redis) -> None:
    stores = Stores(redis_client, Mailbox(redis_client))
    await stores.save_token(incoming())
    assert await token_of(stores, incoming(action_token="", edited_ts="2.0")) == ""
    await stores.save_token(incoming(action_token=""))
    assert await token_of(stores, incoming(action_token="")) == "xact-secret"


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


@pytest.mark.parametrize(
    ("head", "row", "text"),
    [
        ("| Key | Action |", "| J | Next `item` [1] |", "Key: J · Action: Next `item`"),
        ("Key | Action", "J | Next [1]", "Key: J · Action: Next"),
        ("|  | Action |", "| J |  |", "J"),
        ("| Key | Action |", "| J |", "| J |"),
        ("", "J | Next [1].", "J | Next."),
    ],
)
def test_a_row_that_is_a_claim_is_recorded_with_the_names_of_its_columns(head: str, row: str, text: str) -> None:
    claim = Claim(text=row, start=0, end=len(row), cited=(1,), head=head)
    answer = Answer(text=row, chunks=(row,), sources=(LIMITS,), verified=True, attempts=1, claims=(claim,))
    assert [each["text"] for each in claims_json(answer)] == [text]


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
