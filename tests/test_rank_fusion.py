from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.meaning import Ranked
from agent.knowledge.rank_fusion import fused

RANKING = st.lists(st.integers(1, 30), unique=True, max_size=20).map(lambda numbers: [(n, 0.5) for n in numbers])


def test_d2_a_number_scores_by_its_ranks_in_all_rankings() -> None:
    one: list[Ranked] = [(7, 9.0), (8, 5.0)]
    other: list[Ranked] = [(8, 0.9), (9, 0.8)]
    found = fused([(1.0, one), (1.0, other)])
    assert [number for number, _ in found] == [8, 7, 9]
    assert [score for _, score in found] == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62])
    assert [number for number, _ in fused([(1.0, one), (9.0, other)], smoothing=0)] == [8, 9, 7]


def test_d2_equals_go_by_number() -> None:
    assert [number for number, _ in fused([(1.0, [(5, 1.0)]), (1.0, [(3, 1.0)])])] == [3, 5]


@given(RANKING)
def test_d2_one_ranking_stays_as_it_is(ranking: list[Ranked]) -> None:
    assert [number for number, _ in fused([(1.0, ranking), (1.0, [])])] == [number for number, _ in ranking]


@given(RANKING, RANKING)
def test_d2_all_of_both_and_nothing_else(one: list[Ranked], other: list[Ranked]) -> None:
    found = fused([(1.0, one), (1.0, other)])
    assert {number for number, _ in found} == {number for number, _ in one} | {number for number, _ in other}
    assert len(found) == len({number for number, _ in found})
    assert found == sorted(found, key=lambda scored: (-scored[1], scored[0]))
    assert [n for n, _ in found] == [n for n, _ in fused([(1.0, other), (1.0, one)])]
