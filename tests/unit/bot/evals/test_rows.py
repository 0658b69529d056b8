"""Files of rows: labelled claims and questions, rankings, and what is wrong with a file."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from bot.errors import WrongUse
from bot.evals.grounding import evaluate
from bot.evals.retrieval import evaluate_retrieval, ndcg, recall, reciprocal_rank
from bot.evals.rows import Row, Sources, Text, percentile, read_rows, share
from tests.support.documents import SMALL
from tests.support.orion_running import settings_in
from verification.evidence.evidence import SUPPORTED


class Made(Row):
    text: str = "-"
    passes: bool = True
    note: Text = ""
    sources: Sources = Field(default_factory=list)


COOLS = {"id": 1, "text": "It cools."}


def test_blank_lines_are_skipped_and_half_characters_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 7, "text": "half \\ud83d", "note": null}\n\n{"id": "x", "passes": false, "more": 1}\n')
    first, second = read_rows(path, Made)
    assert (first.id, first.text, first.note, second.id, second.passes) == ("7", "half ?", "", "x", False)


@pytest.mark.parametrize("line", [b"{", b"[]", b"3", b'{"a": NaN}', b"\xff\xfe", b'{"a":' * 100_000])
def test_a_line_that_is_not_an_object_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"id": 1}\n' + line + b"\n")
    with pytest.raises(WrongUse, match=r"rows\.jsonl, line 2"):
        list(read_rows(path, Made))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"id": None}, "'id'"),
        ({"id": True}, "'id'"),
        ({"id": 1.5}, "'id'"),
        ({"text": 3}, "'text'"),
        ({"passes": 1}, "'passes'"),
        ({"note": 3}, "'note'"),
        ({"sources": {}}, "'sources'"),
        ({"sources": ["x"]}, r"'sources\.0'"),
        ({"sources": [COOLS, {"id": 2, "text": 3}]}, r"'sources\.1\.text'"),
        ({"sources": [{"id": True, "text": "x"}]}, r"'sources\.0\.id'"),
        ({"sources": [{"id": 1, "text": " "}]}, "without a text"),
        ({"sources": [COOLS, COOLS]}, "two sources have the id 1"),
    ],
)
def test_a_malformed_field_is_named(fields: dict[str, object], said: str, tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text(json.dumps({"id": "a", **fields}))
    with pytest.raises(WrongUse, match=rf"f\.jsonl, line 1: .*{said}"):
        list(read_rows(path, Made))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="cannot read"):
        list(read_rows(tmp_path, Made))


def test_shares_and_percentiles_of_nothing_are_zero() -> None:
    assert (share(0, 0), share(1, 3), percentile([], 0.5)) == (0.0, 0.3333, 0.0)
    assert (percentile([3, 1, 2], 0.5), percentile([3, 1, 2], 0.95), percentile([5], 1.0)) == (2, 3, 5)


SOURCE = "Backups are kept for 30 days and the job runs nightly."


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "\n", encoding="utf-8")
    return path


def rows(prefix: str) -> list[dict[str, Any]]:
    return [
        {"id": f"{prefix}-1", "source": SOURCE, "claim": "Backups are kept for 30 days.", "supported": 1},
        {"id": f"{prefix}-2", "source": SOURCE, "claim": "Backups are kept for 31 days.", "supported": 0},
        {"id": f"{prefix}-3", "source": SOURCE, "claim": "Purple squirrels juggle teapots.", "supported": 0},
    ]


def test_a_file_is_measured_with_the_threshold_of_the_other_files(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one.jsonl", rows("a")), write(tmp_path / "two.jsonl", rows("b"))
    predictions = tmp_path / "out.jsonl"
    first, second = evaluate([one, two], predictions)
    assert (first["file"], first["rows"], first["balanced_accuracy"]) == ("one.jsonl", 3, 1.0)
    assert (second["precision"], second["recall"], second["false_alarms"]) == (1.0, 0.5, 0.0)
    assert first["fitted_on"] == 1
    lines = [json.loads(line) for line in predictions.read_text(encoding="utf-8").splitlines()]
    assert [line["id"] for line in lines] == ["a-1", "a-2", "a-3", "b-1", "b-2", "b-3"]
    assert [line["supported"] for line in lines[:3]] == [True, False, False]
    assert [line["rules"] for line in lines[:3]] == [[], ["claim_supported"], []]
    assert all(0 <= line["score"] <= 1 for line in lines)


def test_a_single_file_takes_the_products_own_threshold(tmp_path: Path) -> None:
    (report,) = evaluate([write(tmp_path / "one.jsonl", rows("a"))], None)
    assert (report["threshold"], report["fitted_on"]) == (SUPPORTED, 0)


def test_a_group_counts_once_and_is_supported_if_any_row_is(tmp_path: Path) -> None:
    claim = "Backups are kept for 30 days."
    grouped = [
        {"id": "g-1", "group": "g", "source": "Nothing about it, only 7 cats.", "claim": claim, "supported": 0},
        {"id": "g-2", "group": "g", "source": SOURCE, "claim": claim, "supported": 1},
    ]
    (report,) = evaluate([write(tmp_path / "one.jsonl", grouped)], None)
    assert (report["rows"], report["groups"], report["supported"], report["errors"]) == (2, 1, 1, 0)


def test_the_numbers_of_the_question_are_known(tmp_path: Path) -> None:
    row = {
        "id": 1,
        "source": SOURCE,
        "claim": "For 99 teams backups are kept.",
        "supported": 1,
        "question": "99 teams?",
    }
    (report,) = evaluate([write(tmp_path / "one.jsonl", [row])], None)
    assert report["errors"] == 0


def test_an_empty_file_is_a_report_of_zeros(tmp_path: Path) -> None:
    (report,) = evaluate([write(tmp_path / "none.jsonl", [])], None)
    assert (report["rows"], report["balanced_accuracy"], report["precision"]) == (0, 0.0, 0.0)


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
