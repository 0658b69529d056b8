"""What a strong model wrote for questions of other hands, replayed through the rules as they are now.

Recorded with ``tests.measure.record`` over nine sets of documents; whoever played the writer saw only the requests.
``right`` is what people found who saw the documents, or the claims and their sources.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.support.paths import ROOT
from verification.check import check
from verification.types import Draft, Source

RECORDED = ROOT / "tests/data/recorded"
UNFAIR_AT_MOST = 0.02


def rows(name: str) -> Iterator[dict[str, Any]]:
    for line in (RECORDED / name).read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def drafts() -> Iterator[tuple[dict[str, Any], Draft]]:
    pages = {page["n"]: page for page in rows("sources.jsonl")}
    for row in rows("answers.jsonl"):
        sources = tuple(
            Source(id=number, title=pages[page]["title"], text=pages[page]["text"]) for number, page in row["sources"]
        )
        yield row, Draft(text=row["draft"], question=row["question"], sources=sources, judged=True)


def test_f1_rules_reject_hardly_any_right_draft_of_a_strong_model() -> None:
    right = [(row["id"], draft) for row, draft in drafts() if row["right"]]
    rejected = {name: [error.detail for error in check(draft).errors] for name, draft in right}
    unfair = {name: errors for name, errors in rejected.items() if errors}
    assert len(right) > 250
    assert len(unfair) <= UNFAIR_AT_MOST * len(right), unfair


def test_f2_repair_changes_no_recorded_draft_twice() -> None:
    for row, draft in drafts():
        once = check(draft).text
        again = check(Draft(text=once, question=draft.question, sources=draft.sources, judged=True))
        assert again.text == once, row["id"]
