"""Wrong answers that an attack tried to get past the rules, and right ones in spellings other than the page's.

``attacks.jsonl`` has the form that `orion eval verifier` reads. Right answers of a capable model are in
``model_errors.json``.
"""

import json
from typing import Any

from tests.support.paths import ROOT
from verification.check import check
from verification.types import Draft, Source, Verdict

DATA = ROOT / "tests/data"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in (DATA / "attacks.jsonl").read_text().splitlines()]
RIGHT_THAT_FAIL = 10  # of 272 answers of the model


def verdict(row: dict[str, Any], *, has_judge: bool) -> Verdict:
    sources = tuple(Source(**source) for source in row["sources"])
    return check(Draft(text=row["text"], question=row.get("question", ""), sources=sources, has_judge=has_judge))


def test_wrong_answers_are_stopped() -> None:
    assert [row["text"] for row in ROWS if not row["passes"] and not verdict(row, has_judge=False).errors] == []


def test_right_answers_pass() -> None:
    for has_judge in (False, True):
        right = [row for row in ROWS if row["passes"] and (has_judge or row["kind"] != "spelling-judged")]
        assert {row["text"]: errors for row in right if (errors := verdict(row, has_judge=has_judge).errors)} == {}


def test_right_answers_of_a_capable_model_pass_under_their_own_citations() -> None:
    failed = []
    for case in json.loads((DATA / "model_errors.json").read_text()).values():
        sources = tuple(Source(id=number, **page) for number, page in enumerate(case["pages"], start=1))
        for text in (each for texts in case["right"].values() for each in texts):
            result = check(Draft(text=text, question=case["question"], sources=sources))
            if not result.passed or any(repair.kind == "citation_source" for repair in result.repairs):
                failed.append(text)
    assert len(failed) <= RIGHT_THAT_FAIL, failed
