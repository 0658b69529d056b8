"""Right answers as a capable model writes them, over nine invented pages: how many the rules fail."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.support.paths import ROOT
from verification.check import check
from verification.types import Draft, Source

_CASES = json.loads((ROOT / "tests/data" / "model_errors.json").read_text(encoding="utf-8"))
_RIGHT_THAT_FAIL = 10


def _verdicts(kind: str) -> Iterator[tuple[str, bool]]:
    """Each text, and whether it was refused or its citation set to another page."""
    for case in _CASES.values():
        sources = tuple(Source(id=number, **page) for number, page in enumerate(case["pages"], start=1))
        for text in (each for texts in case[kind].values() for each in texts):
            verdict = check(Draft(text=text, question=case["question"], sources=sources))
            moved = any(repair.kind == "citation_source" for repair in verdict.repairs)
            yield text, not verdict.passed or moved


def test_right_answers_of_a_capable_model_pass() -> None:
    failed = [text for text, refused in _verdicts("right") if refused]
    assert len(failed) <= _RIGHT_THAT_FAIL, failed
