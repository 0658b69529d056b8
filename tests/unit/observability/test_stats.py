"""Figures of turns: counted, kept, shown as a table, and on the page of metrics."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis
from rich.console import Console
from structlog.testing import capture_logs

from observability.metrics import MAX_SLACK_ERRORS, Metrics
from observability.stats import DAY_TTL, Stats, Summary, Tally, TurnFigures, VerifierFigures, increments
from observability.stats_table import read_prices, stats_table

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
FIRST = TurnFigures(
    outcome="answered",
    errors=(0,),
    latency_ms=800,
    usage={"prompt_tokens": 100, "completion_tokens": 20, "model_calls": 2},
)
REPAIRED = TurnFigures(outcome="answered", errors=(0,), repaired=True, latency_ms=900)
RETRIED = TurnFigures(
    outcome="answered", errors=(3, 1, 0), failed_rules=("claim_supported", "claim_supported"), latency_ms=4_000
)
PARTIAL = TurnFigures(outcome="partial", errors=(1, 1, 2), failed_rules=("cites_sources",) * 3, latency_ms=9_000)
FAILED = TurnFigures(outcome="failed", reason="verification", errors=(1, 1, 1), latency_ms=500_000)
DOWN = TurnFigures(outcome="failed", reason="TimeoutError")
REFUSED = TurnFigures(outcome="refused", reason="not_in_sources", latency_ms=100)


async def test_outcomes_of_turns_are_counted_per_day(redis_client: Redis) -> None:
    stats = Stats(redis_client)
    for turn in (FIRST, REPAIRED, RETRIED, PARTIAL, FAILED, DOWN, REFUSED):
        stats.count(increments(turn), now=NOON)
    stats.count(increments(FIRST), now=NOON - timedelta(days=1))
    stats.count(increments(FIRST), now=NOON - timedelta(days=9))
    summary = await stats.read(7, now=NOON)
    assert list(summary.days) == ["2026-05-03", "2026-05-04"]
    today = summary.days["2026-05-04"]
    assert today.pass_rate == 3 / 5
    assert today.refused_share == 1 / 6
    assert (today.turns, today.answered, today.partial, today.failed, today.refused) == (7, 3, 1, 1, 1)
    assert today.to_json() == {
        "turns": 7,
        "outcomes": {"answered": 3, "failed": 2, "partial": 1, "refused": 1},
        "pass_rate": 0.6,
        "refused_share": 1 / 6,
        "passed": {"after_repair": 1, "after_retry": 1, "first": 1},
        "attempts": {"3": 3, "1": 2},
        "failure_reasons": {"cites_sources": 3, "claim_supported": 2},
        "failed": {"TimeoutError": 1, "verification": 1},
        "improvement": {"2": 2 / 3, "3": 0.0},
        "latency_ms": {"p50": 1_000, "p95": None},
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "model_calls": 2},
        "models": {},
    }
    assert summary.answered == 4
    assert summary.to_json()["target"] == 0.95
    assert set(summary.to_json()["days"]) == {"2026-05-03", "2026-05-04"}


async def test_days_are_kept_for_four_hundred_days(redis_client: Redis) -> None:
    stats = Stats(redis_client)
    stats.count(increments(FIRST))
    await stats.write()
    (key,) = await redis_client.keys("orion:stats:*")
    assert 0 <= DAY_TTL.total_seconds() - await redis_client.ttl(key) < 60
    assert (await Stats(redis_client).read(1)).turns == 1


async def test_a_key_that_redis_cannot_take_loses_only_its_own_figures(redis_client: Redis) -> None:
    stats = Stats(redis_client)
    await redis_client.set("orion:T1:stats:2026-05-04", "not a hash")
    stats.count(increments(FIRST), team="T1", now=NOON)
    await stats.write()
    await stats.write()
    assert (await stats.read(1, now=NOON)).turns == 1


async def test_the_table_fits_a_terminal_of_80_columns(redis_client: Redis) -> None:
    stats = Stats(redis_client)
    stats.count(increments(FIRST), now=NOON)
    out = io.StringIO()
    Console(file=out, width=80).print(stats_table(await stats.read(3, now=NOON)))
    text = out.getvalue()
    assert "…" not in text
    for whole in (NOON.date().isoformat(), "refused", "answered", "partial", "failed", "tokens"):
        assert whole in text


async def test_the_table_reads_well(redis_client: Redis) -> None:
    stats = Stats(redis_client)
    stats.count(increments(PARTIAL), now=NOON)
    stats.count(increments(FAILED), now=NOON)
    stats.count(increments(DOWN), now=NOON)
    out = io.StringIO()
    Console(file=out, width=120).print(stats_table(await stats.read(3, now=NOON)))
    Console(file=out, width=120).print(stats_table(await stats.read(3, now=NOON + timedelta(days=90))))
    text = out.getvalue()
    for part in (
        "Pass rate 0.0 % (target 95.0 %)", "2026-05-04", "≤ 10 s", "> 120 s", "cites_sources 3", "Pass rate –",
        "Failed turns: TimeoutError 1, verification 1.",
    ):  # fmt: skip
        assert part in text


PRICES = '["m-1"]\ninput = 2.0\ncached_input = 0.5\noutput = 10\n'


def all_days(summary: Summary, prices: str, folder: Path) -> list[str]:
    """The cells of the table's last line."""
    (folder / "prices.toml").write_text(f"\ufeff{prices}")
    out = io.StringIO()
    Console(file=out, width=80).print(stats_table(summary, prices=read_prices(folder)))
    return next(cells for line in out.getvalue().splitlines() if (cells := line.split())[:1] == ["all"])


async def test_figures_are_given_by_rule_and_model_with_their_cost(redis_client: Redis, tmp_path: Path) -> None:
    stats = Stats(redis_client)
    used = {"m-1": (1_000_000, 400_000, 100_000), "m-2": (10, 0, 5)}
    stats.count(increments(replace(FIRST, tokens=used)), now=NOON)
    stats.count(increments(PARTIAL), now=NOON)
    stats.count(increments(FAILED), now=NOON)
    stats.count(increments(REFUSED), now=NOON)
    summary = await stats.read(1, now=NOON)
    figures = summary.to_json()
    assert figures["failure_reasons"] == {"cites_sources": 3}
    assert figures["models"]["m-1"] == {"prompt": 1_000_000, "cached": 400_000, "completion": 100_000}
    assert (all_days(summary, PRICES, tmp_path)[-1], all_days(summary, "", tmp_path)[-1]) == ("$2.40", "120")


@pytest.mark.parametrize("content", ["hello", "[m]\ninput = 1", "m = 3", '[m]\ninput = "x"\noutput = 1'])
def test_a_file_without_prices_is_reported(content: str, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(content)
    with capture_logs() as lines:
        assert read_prices(tmp_path) == {}
    assert [line["event"] for line in lines] == ["prices_not_read"]


async def test_verifier_errors_are_shown_with_the_pass_rate(redis_client: Redis) -> None:
    stats, others = Stats(redis_client), Stats(redis_client, prefix="orion-local-8765")
    figures = VerifierFigures(
        should_pass=40, should_fail=60, false_accepts=3, false_rejects=1, measured="2026-05-04", files="rows.jsonl"
    )
    assert "orion eval verifier FILE --keep" in str(stats_table(await stats.read(1)).caption)
    assert (await stats.read(1)).to_json()["verifier"] is None
    await stats.save_verifier(figures)
    for read in (await stats.read(1), await others.read(1)):
        assert read.verifier == figures
        assert read.to_json()["verifier"]["false_accepts"] == 3
        assert "rows.jsonl (2026-05-04): false accepts 3 of 60 (5.0 %), false rejects 1 of 40 (2.5 %)" in str(
            stats_table(read).caption
        )
    assert await redis_client.ttl("orion:verifier") > 0


@pytest.mark.parametrize("stored", ["[]", "7", "no json", '{"mood": 1}', '{"should_pass": 1}'])
async def test_verifier_figures_of_another_version_are_ignored(stored: str, redis_client: Redis) -> None:
    await redis_client.set("orion:verifier", stored, ex=60)
    assert (await Stats(redis_client).read(1)).verifier is None
    odd = {"should_pass": "1", "should_fail": 1, "false_accepts": 0, "false_rejects": 0}
    await redis_client.set("orion:verifier", json.dumps(odd), ex=60)
    assert (await Stats(redis_client).read(1)).verifier is None


def test_refusing_everything_does_not_raise_the_pass_rate() -> None:
    tally = Tally(counts={"outcome:refused": 10})
    assert tally.pass_rate is None
    assert tally.refused_share == 1.0


@settings(deadline=None)
@given(
    st.sampled_from(["answered", "partial", "failed", "refused", "asked", "cancelled"]),
    st.lists(st.integers(min_value=0, max_value=9), max_size=3),
    st.floats(min_value=0, max_value=1e9),
)
def test_each_turn_is_counted_once(outcome: str, errors: list[int], latency_ms: float) -> None:
    tally = Tally(counts=increments(TurnFigures(outcome=outcome, errors=tuple(errors), latency_ms=latency_ms)))
    assert tally.turns == 1
    assert sum(tally.group("latency").values()) == 1
    assert sum(tally.group("attempts").values()) == bool(errors)
    assert sum(tally.group("passed").values()) == (outcome == "answered")


def test_the_page_counts_the_runs_of_the_background_sync() -> None:
    metrics = Metrics()
    metrics.syncs.labels("failed").inc()
    assert b'orion_knowledge_syncs_total{how="failed"} 1.0' in metrics.render()[0]


def test_names_of_slack_errors_are_bounded() -> None:
    metrics = Metrics()
    for number in range(2 * MAX_SLACK_ERRORS):
        metrics.slack_error("chat.postMessage", f"error_{number}")
    metrics.slack_error("chat.postMessage", "error_1")
    metrics.slack_error("chat.postMessage", "Something <b>went</b> wrong: " + "x" * 500)
    (family,) = (each for each in metrics.registry.collect() if each.name == "orion_slack_errors")
    totals = {s.labels["error"]: s.value for s in family.samples if s.name.endswith("_total")}
    assert len(totals) == MAX_SLACK_ERRORS + 1
    assert (totals["error_1"], totals["other"]) == (2, MAX_SLACK_ERRORS + 1)
