"""Drafts of a strong model for other people's questions, replayed through today's rules.

Recorded with ``tests.measure.record`` over 24 sets of documents; the model saw only the requests.
``right`` is what people found who saw the documents, or the claims and their sources.
"""

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
PART = 200  # drafts, so that all workers of the suite take a share


def rows(name: str) -> Iterator[dict[str, Any]]:
    for line in (RECORDED / name).read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def drafts() -> Iterator[tuple[dict[str, Any], Draft]]:
    """Each draft with what was said before it in its thread, on the day it was recorded."""
    pages = {page.pop("n"): page for page in rows("sources.jsonl")}
    asked: list[str] = []
    said = [RECORDED_ON]
    for row in rows("answers.jsonl"):
        if row["kind"] != "followup":
            asked, said = [], [RECORDED_ON]
        sources = tuple(Source(id=number, **pages[page]) for number, page in row["sources"])
        known, context = "\n".join(asked), "\n".join(said)
        draft = Draft(text=row["draft"], question=row["question"], sources=sources, known_text=known, context=context)
        yield row, draft
        asked.append(row["question"])
        said.append(row["draft"])


@pytest.mark.parametrize("part", range(4))
def test_the_rules_reject_few_right_drafts_of_a_strong_model_and_repair_none_twice(part: int) -> None:
    """One pass over a part of the drafts: a draft's sources are read once for all three verdicts."""
    right, unfair = 0, dict[bool, dict[str, list[str]]]({False: {}, True: {}})
    for row, draft in (each for number, each in enumerate(drafts()) if number // PART == part):
        judged = replace(draft, has_judge=True)
        verdicts = {True: check(judged)} | ({False: check(draft)} if row["right"] else {})
        right += row["right"]
        for mode, verdict in verdicts.items():
            if row["right"] and verdict.errors:
                unfair[mode][row["id"]] = [error.detail for error in verdict.errors]
        once = verdicts[True].text
        if once != draft.text:  # else it is the same draft again
            assert check(replace(judged, text=once)).text == once, row["id"]
    assert right > PART / 2
    assert max(map(len, unfair.values())) <= UNFAIR_AT_MOST * right, unfair
