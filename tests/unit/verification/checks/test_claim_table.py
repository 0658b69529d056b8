"""Right and wrong claims, each with the sources it cites: `claim_supported` fails the wrong ones only."""

import json
from typing import Any

import pytest

from tests.support.paths import ROOT
from verification.check import check
from verification.types import Draft, Source

ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in (ROOT / "tests/data/claims.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("kind", sorted({row["kind"] for row in ROWS}))
def test_the_rules_fail_only_the_wrong_claims(kind: str) -> None:
    wrongly_judged = []
    for row in (row for row in ROWS if row["kind"] == kind):
        facts = {name: value for name, value in row.items() if name not in {"kind", "passes", "sources"}}
        verdict = check(Draft(**facts, sources=tuple(Source(**source) for source in row["sources"])))
        if ("claim_supported" in {error.rule for error in verdict.errors}) is row["passes"]:
            wrongly_judged.append((row["text"], [error.detail for error in verdict.errors]))
    assert wrongly_judged == []
