"""`orion pause`, `resume`, `forget`, `dead-letters`, `stats` and `report` as an admin types them."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.asyncio import Redis

from agent.thread.conversation import ThreadKey
from bot.cli.output import local_prefix
from bot.queue.queue import Mailbox
from bot.settings import load_settings
from bot.slack.message import Incoming
from bot.stores.turn_records import TurnRecords
from observability.langfuse.tracing import hash_id
from observability.stats import Stats, TurnFigures, increments
from tests.support.orion_command import Terminal


@pytest.fixture
def terminal(terminal: Terminal, redis_url: str, tmp_path: Path) -> Terminal:
    terminal.set(REDIS_URL=redis_url, ORION_HOME=str(tmp_path))
    return terminal


def test_pause_and_resume_report_the_current_state(terminal: Terminal, redis_url: str) -> None:
    paused = terminal.orion("pause", "--reason", "The index is rebuilt")
    assert (paused.code, "kept until `orion resume`" in paused.out) == (0, True)
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        assert "The index is rebuilt" in str(client.get("orion:paused"))
    assert "Orion continues" in terminal.orion("resume").out
    assert "was not paused" in terminal.orion("resume").out


def test_forget_counts_deletions_and_names_data_it_cannot_delete(terminal: Terminal, redis_url: str) -> None:
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        client.set("orion:turn:0a", '{"thread": "T1:C1:1.0", "user": "U12"}')
        client.hset("orion:feedback:0a", "U2", "good")
    found = terminal.orion("forget", "--user", "U12")
    assert found.code == 0
    assert [line.split(maxsplit=1) for line in found.out.splitlines()[:2]] == [["1", "turn records"], ["1", "feedback"]]
    assert hash_id("U12") in found.out
    nothing = terminal.orion("forget", "--thread", "T1:C1:1.0")
    assert (nothing.code, "There was nothing" in nothing.out) == (0, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "Name either a person or a thread"),
        (("--user", "U12", "--thread", "T1:C1:1.0"), "Name either a person or a thread"),
        (("--user", "ann"), "--user must be a Slack user id"),
        *(
            (("--thread", wrong), "--thread must be")
            for wrong in ("1.1", "T1:C1", "https://acme.slack.com/archives/C1")
        ),
    ],
)
def test_wrong_use_ends_with_a_remedy(terminal: Terminal, words: tuple[str, ...], says: str) -> None:
    done = terminal.orion("forget", *words)
    assert (done.code, says in done.err) == (2, True)


def test_a_local_workspace_is_paused_separately(terminal: Terminal, redis_url: str) -> None:
    assert terminal.orion("pause", "--local", "8765").code == 0
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        assert client.get("orion:paused") is None
        assert client.get("orion-local-8765:paused") is not None
        client.set("orion-local-8765:turn:0a", '{"thread": "T1:C1:1.0", "user": "U12"}')
    assert "was not paused" in terminal.orion("resume").out
    assert "Orion continues" in terminal.orion("resume", "--local", "8765").out
    assert "nothing" in terminal.orion("forget", "--user", "U12").out
    assert "turn records" in terminal.orion("forget", "--user", "U12", "--local", "8765").out


THREAD = ThreadKey(team="T1", channel="C1", thread_ts="1700000000.000100")
SECRET = "where do the diamonds lie?"


def in_redis(url: str, *, bury: int = 0) -> list[str]:
    """Make that many dead letters. Return the bodies that can then be claimed."""

    async def run() -> list[str]:
        async with Redis.from_url(url, decode_responses=True) as redis:
            mailbox = Mailbox(redis)
            for number in range(bury):
                letter = Incoming(
                    kind="question", thread=THREAD, user="U1", ts="1.0", addressed="mention", text=SECRET
                ).to_json()
                await mailbox.enqueue(str(THREAD), letter if number else "no letter", event_ids=[str(number)])
                (claimed,) = await mailbox.claim("w", 1)
                await mailbox.finish(claimed, "dead", reason="crashed: KeyError")
            found = [claimed.body for claimed in await mailbox.claim("w", 10)]
            await mailbox.aclose()
            return found

    return asyncio.run(run())


def test_an_operator_sees_reasons_and_times_but_no_texts(terminal: Terminal, redis_url: str) -> None:
    assert "No dead letters." in terminal.orion("dead-letters").out
    in_redis(redis_url, bury=2)
    listed = terminal.orion("dead-letters", "list")
    assert listed.code == 0
    newest, oldest = listed.out.splitlines()
    assert f"  {THREAD}  crashed: KeyError (1 try, 0:00:0" in newest
    assert newest.endswith(f"{len(SECRET)} characters)")
    assert oldest.endswith(f"{len('no letter')} characters)")
    assert "diamonds" not in listed.out


def test_a_dead_letter_is_retried_once_and_the_command_says_so(terminal: Terminal, redis_url: str) -> None:
    in_redis(redis_url, bury=2)
    newest = terminal.orion("dead-letters").out.split()[0]
    first = terminal.orion("dead-letters", "retry", newest)
    assert (first.code, first.out) == (0, f"{newest} is tried again.\n")
    again = terminal.orion("dead-letters", "retry", newest)
    assert (again.code, "nothing was changed" in again.out) == (1, True)
    assert len(in_redis(redis_url)) == 1


def test_all_dead_letters_can_be_dropped_or_retried(terminal: Terminal, redis_url: str) -> None:
    in_redis(redis_url, bury=2)
    dropped = terminal.orion("dead-letters", "drop", "--all")
    assert (dropped.code, dropped.out.count("is dropped")) == (0, 2)
    assert "No dead letters." in terminal.orion("dead-letters", "retry", "--all").out
    assert in_redis(redis_url) == []


def test_conversations_of_a_local_workspace_are_its_own(terminal: Terminal, redis_url: str) -> None:
    in_redis(redis_url, bury=1)
    assert "No dead letters." in terminal.orion("dead-letters", "--local", "8765", "list").out
    assert "No dead letters." in terminal.orion("dead-letters", "--local", "8765", "drop", "--all").out


@pytest.mark.parametrize("arguments", [["retry"], ["drop", "1-1", "--all"]], ids=" ".join)
def test_a_decision_on_dead_letters_needs_their_ids(arguments: list[str], terminal: Terminal) -> None:
    done = terminal.orion("dead-letters", *arguments)
    assert done.code == 2
    assert "orion dead-letters retry ID…, drop ID…, or either with --all" in done.err


def record_turns(url: str, count: int, prefix: str = "orion", **figures: Any) -> None:
    async def run() -> None:
        async with Redis.from_url(url, decode_responses=True) as redis:
            stats = Stats(redis, prefix=prefix)
            for _ in range(count):
                stats.count(increments(TurnFigures(outcome="answered", errors=(0,), **figures)))
            await stats.write()

    asyncio.run(run())


def test_figures_come_from_the_serving_orion_or_a_local_workspace(terminal: Terminal, redis_url: str) -> None:
    record_turns(redis_url, 1)
    record_turns(redis_url, 3, local_prefix(8765))
    assert terminal.orion("stats", "--json").json["of"] == "workspaces served"
    named = terminal.orion("stats", "--local", "8765", "--json").json
    assert (named["of"], named["turns"]) == ("local workspace on port 8765", 3)
    assert terminal.orion("stats", "--local", "9", "--json").json["turns"] == 0


def test_the_cost_is_computed_from_a_price_file(terminal: Terminal, redis_url: str) -> None:
    record_turns(redis_url, 1, tokens={"m": (1_000_000, 0, 0)})
    assert terminal.orion("stats", "--json").json["cost"] is None
    (load_settings().home / "prices.toml").write_text("[m]\ninput = 3\noutput = 1\n")
    assert terminal.orion("stats", "--json").json["cost"] == 3.0
    assert "$3.00" in terminal.orion("stats").out


def test_verifier_errors_are_recorded_on_request(terminal: Terminal, redis_url: str) -> None:
    record_turns(redis_url, 1)
    rows = [{"id": "a", "text": "Hello there.", "passes": True}, {"id": "b", "text": "<!channel> Hi.", "passes": True}]
    terminal.write("rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert terminal.orion("eval", "verifier", "rows.jsonl").code == 0
    assert terminal.orion("stats", "--json").json["verifier"] is None
    kept = terminal.orion("eval", "verifier", "rows.jsonl", "rows.jsonl", "--keep", "--json")
    assert (kept.code, len(kept.json), "orion stats" in kept.err) == (0, 2, True)
    found = terminal.orion("stats", "--json").json["verifier"]
    assert (found["should_pass"], found["false_rejects"], found["files"]) == (4, 2, "rows.jsonl, rows.jsonl")
    shown = terminal.orion("stats").out
    assert "false rejects 2 of 4 (50.0 %)" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 80


def test_figures_that_cannot_be_saved_are_still_shown(terminal: Terminal) -> None:
    terminal.set(REDIS_URL="redis://127.0.0.1:9")
    terminal.write("rows.jsonl", json.dumps({"id": "a", "text": "Hello there.", "passes": True}) + "\n")
    done = terminal.orion("eval", "verifier", "rows.jsonl", "--keep", "--json")
    assert (done.code, len(done.json), "Redis cannot be" in done.err) == (1, 1, True)


def test_a_report_of_a_local_workspace_shows_questions_and_without_slack_others_are_counted(
    terminal: Terminal, redis_url: str
) -> None:
    async def keep(prefix: str) -> None:
        async with Redis.from_url(redis_url, decode_responses=True) as redis:
            record = {"turn_id": "t1", "outcome": "refused", "thread": "T1:C1:1.0", "question": "What of " + "it " * 40}
            await TurnRecords(redis, prefix=prefix).save(record)

    for prefix in ("orion", local_prefix(8765)):
        asyncio.run(keep(prefix))
    shown = terminal.orion("report", "--local", "8765").out
    assert "What of it" in shown
    counted = terminal.orion("report")
    assert "What of it" not in counted.out
    assert "not shown: 1" in counted.out
    assert "SLACK_BOT_TOKEN" in counted.err
