"""`orion bench` runs the real code and gives its figures. How fast is no question for a test."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from bot.evals import bench, bench_texts, bench_turns
from bot.evals.bench_texts import turn
from verification.check import check
from verification.types import Draft


@pytest.fixture(scope="module")
def figures() -> dict[str, dict[str, float]]:
    return bench.bench(**bench.QUICK)


def test_every_part_gives_its_figures(figures: dict[str, dict[str, float]]) -> None:
    assert set(figures) == {"verification", "linearity", "stream", "turn"}
    assert {"repair_ms", "rules_ms", "again_ms", "rewritten_ms", "reworded_ms", "first_ms"} <= set(
        figures["verification"]
    )
    assert set(figures["linearity"]) == {
        *("repair_ms_per_kb_at_1_kb", "repair_ms_per_kb_at_10_kb", "repair_growth"),
        *("rules_ms_per_kb_at_1_kb", "rules_ms_per_kb_at_10_kb", "rules_growth"),
    }
    assert set(figures["stream"]) == {"chunks", "microseconds_per_chunk"}
    assert figures["turn"]["turns_at_once"] == 3
    assert {"added_to_a_turn_p50_ms", "added_to_a_turn_p95_ms", "tool_call_p95_ms"} <= set(figures["turn"])


def test_b4_each_part_of_a_turn_has_its_own_figures_at_many_turns_at_once(
    figures: dict[str, dict[str, float]],
) -> None:
    parts = ("state_load", "decide", "tool_call", "write", "state_save")
    for part in parts:
        assert figures["turn"][f"{part}_at_once_p50_ms"] <= figures["turn"][f"{part}_at_once_p95_ms"]


def test_figures_are_numbers_above_zero(figures: dict[str, dict[str, float]]) -> None:
    assert all(value > 0 for part in figures.values() for value in part.values())


def test_table_names_each_figure(figures: dict[str, dict[str, float]]) -> None:
    shown = io.StringIO()
    Console(file=shown, width=200).print(bench.bench_table(figures))
    assert all(name in shown.getvalue() for part in figures.values() for name in part)


def test_what_is_measured_are_answers_that_pass() -> None:
    """A text that fails early would flatter the figures."""
    for number in range(20):
        draft = turn(number)
        assert 1800 <= len(draft.text) <= 2000
        assert [len(source.text) for source in draft.sources] == [2000] * 8
        verdict = check(draft)
        assert verdict.passed
        assert len(verdict.claims) > 15


def test_answers_in_other_words_pass_too() -> None:
    """They say what their sources say, and no sentence of theirs stands there."""
    for number in range(10):
        draft = turn(number, reworded=True)
        assert draft.sources == turn(number).sources
        verdict = check(draft)
        assert verdict.passed
        lines = [line.removeprefix("- ").partition(" [")[0] for line in draft.text.split("\n") if "- " in line]
        assert not any(line in source.text for line in lines for source in draft.sources if len(line) > 40)


def test_every_round_has_its_own_texts() -> None:
    """What is remembered of one round must not serve the next."""
    texts = [text for number in range(50) for text in (turn(number).text, *(s.text for s in turn(number).sources))]
    assert len(set(texts)) == len(texts)
    assert turn(7) == turn(7)


def test_answers_have_the_length_asked_for() -> None:
    assert len(bench_texts.answer_text(12_345)) == 12_345


def test_the_paced_model_says_what_stands_in_the_evidence() -> None:
    assert check(Draft(text="The replica takes over within 90 seconds [1].", sources=bench_turns.evidence())).passed


def test_medians_are_of_each_work_alone() -> None:
    ran: list[str] = []
    spent = bench.median_ms(lambda: ran.append("a"), lambda: ran.append("b"), repeats=1)
    assert len(spent) == 2
    assert ran == ["a", "b"] * 3
