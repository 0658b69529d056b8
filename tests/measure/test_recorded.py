"""What a strong model wrote for questions of other hands, replayed through the rules as they are now.

Recorded with ``tests.measure.record`` over 24 sets of documents; whoever played the writer saw only the requests.
``right`` is what people found who saw the documents, or the claims and their sources.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.support.paths import ROOT
from verification.check import check
from verification.types import Draft, Source

RECORDED = ROOT / "tests/data/recorded"
RECORDED_ON = "Monday 2026-11-23"
UNFAIR_AT_MOST = 0.02


def rows(name: str) -> Iterator[dict[str, Any]]:
    for line in (RECORDED / name).read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def drafts(*, judged: bool) -> Iterator[tuple[dict[str, Any], Draft]]:
    """Each draft with what was said before it in its thread, on the day it was recorded."""
    pages = {page["n"]: page for page in rows("sources.jsonl")}
    asked: list[str] = []
    said = [RECORDED_ON]
    for row in rows("answers.jsonl"):
        if row["kind"] != "followup":
            asked, said = [], [RECORDED_ON]
        sources = tuple(
            Source(id=number, **{key: value for key, value in pages[page].items() if key != "n"})
            for number, page in row["sources"]
        )
        yield (
            row,
            Draft(
                text=row["draft"],
                question=row["question"],
                sources=sources,
                known_text="\n".join(asked),
                context="\n".join(said),
                has_judge=judged,
            ),
        )
        asked.append(row["question"])
        said.append(row["draft"])


@pytest.mark.parametrize("judged", [False, True])
def test_rules_reject_hardly_any_right_draft_of_a_strong_model(judged: bool) -> None:  # noqa: FBT001 - a parameter
    right = [(row["id"], draft) for row, draft in drafts(judged=judged) if row["right"]]
    rejected = {name: [error.detail for error in check(draft).errors] for name, draft in right}
    unfair = {name: errors for name, errors in rejected.items() if errors}
    assert len(right) > 250
    assert len(unfair) <= UNFAIR_AT_MOST * len(right), unfair


def test_repair_changes_no_recorded_draft_twice() -> None:
    for row, draft in drafts(judged=True):
        once = check(draft).text
        assert check(replace(draft, text=once)).text == once, row["id"]
