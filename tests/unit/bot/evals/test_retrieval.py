"""Ranking figures: the formulas on rankings worked out by hand, and the real index on a small collection."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.evals.retrieval import evaluate_retrieval, ndcg, recall, reciprocal_rank
from tests.support.documents import SMALL
from tests.support.orion_running import settings_in


def test_ndcg_discounts_by_rank_and_compares_with_the_best_order() -> None:
    assert ndcg(["x", "y"], {"x": 2, "y": 1}) == 1.0
    assert ndcg(["y", "x"], {"x": 2, "y": 1}) == pytest.approx((1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3)))
    assert ndcg(["z"] * 10 + ["x"], {"x": 1}) == 0.0
    assert ndcg(["x"], {}) == 0.0


def test_mrr_and_recall() -> None:
    assert reciprocal_rank(["a", "b", "x"], {"x": 1}) == pytest.approx(1 / 3)
    assert reciprocal_rank(["a"] * 10 + ["x"], {"x": 1}) == 0.0
    assert recall(["x", "a", "b", "c", "d", "y"], {"x": 1, "y": 1, "n": 0}) == 0.5
    assert recall([], {"n": 0}) == 0.0


@given(st.permutations("abcdefghijkl"), st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3)))
def test_every_figure_is_between_0_and_1(ranking: list[str], gains: dict[str, float]) -> None:
    for figure in (ndcg(ranking, gains), reciprocal_rank(ranking, gains), recall(ranking, gains)):
        assert 0 <= figure <= 1 + 1e-9


async def test_the_real_index_ranks_a_collection(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SMALL))
    report = await evaluate_retrieval(path, settings_in(tmp_path, ""))
    assert (report["docs"], report["queries"], report["mrr_at_10"]) == (3, 2, 1.0)
    assert report["recall_at_5"] == 0.75
    assert report["ndcg_at_10"] == pytest.approx((1 + 2 / (2 + 1 / math.log2(3))) / 2, abs=1e-4)
    assert 0 < report["p50_ms"] <= report["p95_ms"]


async def test_a_collection_without_labels_is_a_report_of_zeros(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text(json.dumps({**SMALL, "qrels": {}}))
    assert (await evaluate_retrieval(path, settings_in(tmp_path, "")))["ndcg_at_10"] == 0.0
