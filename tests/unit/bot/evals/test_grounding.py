"""Measuring the deterministic tier: thresholds from the other files, groups counted once, predictions as promised."""

import json
from pathlib import Path
from typing import Any

from bot.evals.grounding import evaluate
from verification.evidence.evidence import SUPPORTED

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
