from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.index.index import Ranked
from agent.knowledge.semantic.ranking import MEANING_SHARE, fuse_scores

WORDS = st.dictionaries(st.integers(1, 30), st.floats(0.1, 40), max_size=20).map(
    lambda scores: sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))
)
COSINES = st.dictionaries(st.integers(1, 30), st.floats(-1, 1), max_size=20)


def test_both_scores_count_by_their_shares() -> None:
    found = fuse_scores([(7, 10.0), (8, 5.0)], {7: 0.2, 8: 0.8, 9: 0.6})
    share = MEANING_SHARE
    assert [number for number, _ in found] == [8, 7, 9]
    assert [score for _, score in found] == pytest.approx(
        [(1 - share) * 0.5 + share * 0.8, (1 - share) + share * 0.2, share * 0.6]
    )


def test_passage_without_a_vector_is_ranked_by_its_words() -> None:
    assert [number for number, _ in fuse_scores([(1, 9.0), (2, 8.0), (3, 7.0)], {1: 0.5, 3: 0.5})] == [1, 2, 3]


def test_equals_go_by_number() -> None:
    assert fuse_scores([], {5: 0.5, 3: 0.5}) == [(3, 0.5 * MEANING_SHARE), (5, 0.5 * MEANING_SHARE)]
    assert fuse_scores([], {}) == []


@given(WORDS)
def test_words_alone_keep_their_order(by_words: list[Ranked]) -> None:
    found = fuse_scores(by_words, {})
    assert {number for number, _ in found} == {number for number, _ in by_words}
    scores = dict(by_words)
    assert [scores[n] for n, _ in found] == pytest.approx([score for _, score in by_words])


@given(WORDS, COSINES, st.floats(0.01, 100))
def test_all_of_both_and_no_scale_of_the_words_matters(
    by_words: list[Ranked], cosines: dict[int, float], scale: float
) -> None:
    found = fuse_scores(by_words, cosines)
    assert {number for number, _ in found} == {number for number, _ in by_words} | set(cosines)
    assert found == sorted(found, key=lambda scored: (-scored[1], scored[0]))
    scaled = dict(fuse_scores([(number, score * scale) for number, score in by_words], cosines))
    assert all(scaled[number] == pytest.approx(score, abs=1e-9) for number, score in found)
