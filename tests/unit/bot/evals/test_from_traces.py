"""Questions of people become rows for a person to label. No label is guessed and no person is named."""

import json
from typing import Any

import pytest
import redis

from tests.support.orion_command import QUESTION, Terminal

USER = "U0SECRET"


@pytest.fixture
def terminal(terminal: Terminal, redis_url: str) -> Terminal:
    terminal.set(REDIS_URL=redis_url)
    return terminal


def turn(
    url: str,
    turn_id: str,
    outcome: str = "answered",
    *,
    prefix: str = "orion",
    thread: str = "",
    at: int = 0,
    **judged: str,
) -> None:
    """A record as a turn leaves it, ``at`` seconds later than another."""
    record: dict[str, Any] = {"turn_id": turn_id, "user": USER, "outcome": outcome, "question": QUESTION}
    record |= {"answer": "600 requests [1].", "sources": [{"id": 1, "title": "Limits"}]} | (
        {"thread": thread} if thread else {}
    )
    with redis.Redis.from_url(url, decode_responses=True) as client:
        client.set(f"{prefix}:turn:{turn_id}", json.dumps(record), ex=1_000 + at)
        for user, verdict in judged.items():
            client.hset(f"{prefix}:feedback:{turn_id}", user, verdict)


def rows(terminal: Terminal, *options: str) -> list[dict[str, Any]]:
    out = terminal.folder / f"{len(list(terminal.folder.iterdir()))}.jsonl"
    done = terminal.orion("eval", "from-traces", str(out), *options)
    assert (done.code, done.out) == (0, "")
    assert "people's questions" in done.err
    text = out.read_text(encoding="utf-8")
    assert USER not in text
    return [json.loads(line) for line in text.splitlines()]


def test_each_turn_is_a_row_with_its_outcome(terminal: Terminal, redis_url: str) -> None:
    turn(redis_url, "0a", U1="good", U2="bad", U3="bad")
    assert rows(terminal) == [
        {
            "id": "0a",
            "question": QUESTION,
            "kind": "answered",
            "answer": "600 requests [1].",
            "sources": ["Limits"],
            "judged": {"good": 1, "bad": 2},
        },
    ]


def test_rows_can_be_selected_by_outcome_judgement_and_place(terminal: Terminal, redis_url: str) -> None:
    turn(redis_url, "0a", U1="good")
    turn(redis_url, "0b", "refused", U1="bad")
    turn(redis_url, "0c", "failed")
    turn(redis_url, "0d", prefix="orion-local-8765")
    assert {row["id"] for row in rows(terminal, "--outcome", "refused", "--outcome", "failed")} == {"0b", "0c"}
    assert [row["id"] for row in rows(terminal, "--bad")] == ["0b"]
    assert [row["id"] for row in rows(terminal, "--local", "8765")] == ["0d"]


def test_records_that_are_unreadable_or_without_a_question_are_left_out(terminal: Terminal, redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.set("orion:turn:0a", "[]")
        client.set("orion:turn:0b", '{"turn_id": "0b", "outcome": "asked", "question": ""}')
        client.set("orion:turn:0c", '{"question": "of an older version"}')
    assert rows(terminal) == []


def test_labels_are_neither_guessed_nor_overwritten(terminal: Terminal, redis_url: str) -> None:
    turn(redis_url, "0a")
    assert terminal.orion("eval", "from-traces", "out.jsonl").code == 0
    asked = terminal.orion("eval", "answers", "out.jsonl", "--docs", "docs")
    assert (asked.code, "'expect': Field required" in asked.err) == (2, True)
    again = terminal.orion("eval", "from-traces", "out.jsonl")
    assert (again.code, "exists" in again.err) == (2, True)
    wrong = terminal.orion("eval", "from-traces", "other.jsonl", "--outcome", "splendid")
    assert (wrong.code, "--outcome must be one of" in wrong.err) == (2, True)


def test_a_redis_outage_leaves_no_file(terminal: Terminal) -> None:
    terminal.set(REDIS_URL="redis://127.0.0.1:9")
    done = terminal.orion("eval", "from-traces", "out.jsonl")
    assert (done.code, "cannot be reached" in done.err) == (1, True)
    assert not (terminal.folder / "out.jsonl").exists()


def test_a_follow_up_is_sent_with_the_earlier_question(terminal: Terminal, redis_url: str) -> None:
    """The rows of a conversation are in its order, under the id of the first: no channel is named."""
    ids = [f"{9 - number}a" for number in range(8)]
    for number, name in enumerate(ids):
        judged = {"U1": "bad"} if number == len(ids) - 1 else {}
        turn(redis_url, name, thread="T1:CSECRET:1.0", at=number * 10, **judged)
    turn(redis_url, "0b", thread="T1:CSECRET:2.0", at=1, U1="bad")
    whole = rows(terminal)
    assert [(row["id"], row.get("thread")) for row in whole] == [*((name, ids[0]) for name in ids), ("0b", None)]
    assert "CSECRET" not in json.dumps(whole)
    bad = rows(terminal, "--bad")
    assert [(row["id"], row.get("thread")) for row in bad] == [*((name, ids[2]) for name in ids[2:]), ("0b", None)]


def test_rows_of_a_conversation_can_be_asked_again(terminal: Terminal, redis_url: str) -> None:
    turn(redis_url, "0a", thread="T1:C1:1.0")
    turn(redis_url, "0b", thread="T1:C1:1.0", at=5)
    labelled = [{**row, "expect": ["600"]} for row in rows(terminal)]
    (terminal.folder / "labelled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labelled))
    asked = terminal.orion("eval", "answers", "labelled.jsonl", "--docs", "docs", "--json")
    assert (asked.code, asked.json["answered_as_expected"]) == (0, 2)
