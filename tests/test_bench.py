"""`orion bench` runs the real code and gives its figures. How fast is no question for a test."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from bot import bench
from verification.answer import Draft
from verification.rules import check


@pytest.fixture(scope="module")
def figures() -> dict[str, dict[str, float]]:
    return bench.bench(**bench.QUICK)


def test_every_part_gives_its_figures(figures: dict[str, dict[str, float]]) -> None:
    assert set(figures) == {"verification", "linearity", "stream", "turn"}
    assert {"repair_ms", "repair_and_rules_ms"} <= set(figures["verification"])
    assert set(figures["linearity"]) == {"repair_ms_per_kb_at_1_kb", "repair_ms_per_kb_at_10_kb", "growth"}
    assert set(figures["stream"]) == {"chunks", "microseconds_per_chunk"}
    assert figures["turn"]["turns_at_once"] == 3
    assert {"added_to_a_turn_p50_ms", "added_to_a_turn_p95_ms", "tool_call_p95_ms"} <= set(figures["turn"])


def test_figures_are_numbers_above_zero(figures: dict[str, dict[str, float]]) -> None:
    assert all(value > 0 for part in figures.values() for value in part.values())


def test_table_names_each_figure(figures: dict[str, dict[str, float]]) -> None:
    shown = io.StringIO()
    Console(file=shown, width=200).print(bench.bench_table(figures))
    assert all(name in shown.getvalue() for part in figures.values() for name in part)


def test_what_is_measured_is_an_answer_that_passes() -> None:
    """A text that fails early would flatter the figures."""
    draft = Draft(text=bench.answer_text(2000), question="What happens at fail-over?", sources=bench.evidence())
    assert len(draft.text) == 2000
    assert check(draft).chunks


def test_medians_are_of_each_work_alone() -> None:
    ran: list[str] = []
    spent = bench.median_ms(lambda: ran.append("a"), lambda: ran.append("b"), repeats=1)
    assert len(spent) == 2
    assert ran == ["a", "b"] * 3
