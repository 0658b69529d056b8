"""Wrong passes and wrong fails of the verifier, counted; and the committed labelled set held to its figures."""

import json
from pathlib import Path
from typing import Any

from bot.evals.verify import LabelledText, count_errors, evaluate_verifier
from tests.support.paths import ROOT
from verification.types import Verdict, Violation

LABELLED = ROOT / "tests/data/verifier.jsonl"
PRECISE = (
    "altered quote",
    "broadcast",
    "date",
    "empty",
    "identifier",
    "invented link",
    "leaked json",
    "leaked tag",
    "missing citation",
    "secret",
    "time",
    "unit",
    "unknown citation",
)
"""Kinds of fault of which none may pass. What is not precise (a name or number that stands elsewhere in the source, a
turned sentence, an invention in plain words) is the judge's part, and counted below."""
SOURCES = [{"id": 1, "title": "Backups", "text": "Backups are kept for 30 days."}]


def ruling(identity: str, *, passes: bool, passed: bool, kind: str = "") -> tuple[LabelledText, Verdict]:
    violations = () if passed else (Violation(rule="mrkdwn", severity="error"),)
    row = LabelledText(id=identity, text="x", passes=passes, kind=kind)
    return row, Verdict(passed=passed, text="x", violations=violations)


def test_wrong_passes_and_wrong_fails_are_counted_by_kind() -> None:
    report = count_errors(
        [
            ruling("a", passes=True, passed=True, kind="right"),
            ruling("b", passes=True, passed=False, kind="right"),
            ruling("c", passes=False, passed=True, kind="number"),
            ruling("d", passes=False, passed=False),
            ruling("e", passes=False, passed=False, kind="number"),
        ]
    )
    assert report == {
        "rows": 5,
        "should_pass": 2,
        "should_fail": 3,
        "false_accepts": 1,
        "false_rejects": 1,
        "false_accept_rate": 0.3333,
        "false_reject_rate": 0.5,
        "false_accepts_open": 0,
        "accepted": ["c"],
        "rejected": [{"id": "b", "rules": ["mrkdwn"]}],
        "kinds": {
            "number": {"rows": 2, "false_accepts": 1, "false_rejects": 0},
            "right": {"rows": 2, "false_accepts": 0, "false_rejects": 1},
        },
    }


def test_no_rows_are_a_report_of_zeros() -> None:
    assert (count_errors([])["false_accept_rate"], count_errors([])["kinds"]) == (0.0, {})


async def test_rows_go_through_the_real_rules_repair_included(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": 1, "text": "**Backups** are kept for 30 days [1].", "sources": SOURCES, "passes": True},
        {"id": 2, "text": "Backups are kept for 31 days [1].", "sources": SOURCES, "passes": False, "question": None},
        {"id": 3, "text": "<!channel> look", "passes": False},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (report,) = await evaluate_verifier([path])
    assert (report["file"], report["rows"], report["false_accepts"], report["false_rejects"]) == ("rows.jsonl", 3, 0, 0)


async def test_the_labelled_set_stays_within_its_measured_figures() -> None:
    (report,) = await evaluate_verifier([LABELLED])
    kinds = report["kinds"]
    assert report["rows"] >= 120
    assert {kind: kinds[kind]["false_accepts"] for kind in PRECISE} == dict.fromkeys(PRECISE, 0)
    # Measured on 2026-11-23, without a judge: 29 of 97 pass that should not, 1 of 75 fails that should not.
    assert report["false_accepts"] <= 29
    assert report["false_accepts_open"] >= 5
    assert report["false_rejects"] <= 1


def test_the_labelled_set_has_no_row_twice() -> None:
    rows = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    assert (
        len({row["id"] for row in rows}) == len({(row["text"], str(row.get("sources"))) for row in rows}) == len(rows)
    )
