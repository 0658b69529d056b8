"""`orion stats` says whose figures it shows, and finds those of a local workspace beside it."""

import asyncio
import json

import pytest
from redis.asyncio import Redis

from bot.cli.output import local_prefix
from bot.stores.turn_records import TurnRecords
from observability.stats import Stats, TurnFigures
from tests.support.orion_command import Terminal


@pytest.fixture
def terminal(terminal: Terminal, redis_url: str) -> Terminal:
    terminal.set(REDIS_URL=redis_url)
    return terminal


def turns(url: str, port: int | None, count: int) -> None:
    async def run() -> None:
        async with Redis.from_url(url, decode_responses=True) as redis:
            for _ in range(count):
                await Stats(redis, prefix=local_prefix(port) if port else "orion").record(
                    TurnFigures(outcome="answered", errors=(0,))
                )

    asyncio.run(run())


def test_figures_come_from_the_serving_orion_or_a_local_workspace(terminal: Terminal, redis_url: str) -> None:
    turns(redis_url, None, 1)
    turns(redis_url, 8765, 3)
    assert terminal.orion("stats", "--json").json["of"] == "workspaces served"
    named = terminal.orion("stats", "--local", "8765", "--json").json
    assert (named["of"], named["turns"]) == ("local workspace on port 8765", 3)
    assert terminal.orion("stats", "--local", "9", "--json").json["turns"] == 0


def test_the_cost_is_computed_from_a_price_file(terminal: Terminal, redis_url: str) -> None:
    async def run() -> None:
        async with Redis.from_url(redis_url, decode_responses=True) as redis:
            await Stats(redis).record(TurnFigures(outcome="answered", errors=(0,), tokens={"m": (1_000_000, 0, 0)}))

    asyncio.run(run())
    assert terminal.orion("stats", "--json").json["cost"] is None
    prices = terminal.write("p.toml", "[m]\ninput = 3\noutput = 1\n")
    assert terminal.orion("stats", "--json", "--prices", prices).json["cost"] == 3.0
    assert "$3.00" in terminal.orion("stats", "--by", "model", "--prices", prices).out
    for wrong in (("--by", "moon"), ("--prices", terminal.write("q.toml", "m = 3"))):
        assert terminal.orion("stats", *wrong).code == 2


def test_verifier_errors_are_recorded_on_request(terminal: Terminal, redis_url: str) -> None:
    turns(redis_url, None, 1)
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
