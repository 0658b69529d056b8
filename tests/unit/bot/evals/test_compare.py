"""Two reports side by side: what got worse is said, by row, and nothing is compared that was not the same."""

import json
from typing import Any

import pytest

from bot.errors import WrongUse
from bot.evals.compare import compare
from tests.support.orion_command import Terminal

ANSWERS: dict[str, Any] = {
    "file": "q.jsonl",
    "model": "small",
    "rows": 4,
    "answered_as_expected": 2,
    "answered_share": 0.5,
    "kinds": {"typo": {"rows": 2, "as_expected": 1}, "plain": {"rows": 2, "as_expected": 1}},
    "not_as_expected": [{"id": "a", "outcome": "refused"}, {"id": "b", "outcome": "failed"}],
    "p50_ms": 10.0,
}
VERIFIER: dict[str, Any] = {
    "file": "t.jsonl",
    "rows": 3,
    "false_accepts": 1,
    "false_rejects": 1,
    "accepted": ["b"],
    "rejected": [{"id": "c", "rules": ["mrkdwn", "no_broadcast"]}],
    "kinds": {},
}
RANKING: dict[str, Any] = {"file": "s.json", "docs": 9, "queries": 3, "ndcg_at_10": 0.7, "p50_ms": 1.0}


def test_rows_whose_result_changed_are_listed_with_their_outcome() -> None:
    wrong = [{"id": "b", "outcome": "refused"}, {"id": "c", "outcome": "refused"}]
    found = compare(ANSWERS, {**ANSWERS, "not_as_expected": wrong})
    assert (found["better"], found["worse"], found["still_wrong"]) == (["a (refused)"], ["c (refused)"], 1)
    assert found["is_worse"]


def test_rows_of_the_verifier_are_compared_too() -> None:
    found = compare(VERIFIER, {**VERIFIER, "false_rejects": 0, "rejected": []})
    assert (found["better"], found["worse"], found["is_worse"]) == (["c (mrkdwn+no_broadcast)"], [], False)
    assert compare({**VERIFIER, "accepted": []}, VERIFIER)["worse"] == ["b (accepted)"]


def test_changed_kinds_are_shown_and_a_slower_machine_is_not_a_fault() -> None:
    kinds = {"typo": {"rows": 2, "as_expected": 2}, "plain": {"rows": 2, "as_expected": 1}}
    found = compare(ANSWERS, {**ANSWERS, "kinds": kinds, "p50_ms": 99.0})
    assert [(c["of"], c["figure"], c["change"]) for c in found["figures"] if c["change"] != "same"] == [
        ("", "p50_ms", "worse"),
        ("typo", "as_expected", "better"),
    ]
    assert not found["is_worse"]


def test_without_named_rows_the_figures_decide() -> None:
    assert compare(RANKING, {**RANKING, "ndcg_at_10": 0.69})["is_worse"]
    assert not compare(RANKING, {**RANKING, "p50_ms": 5.0})["is_worse"]
    assert "worse" not in compare(RANKING, RANKING)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({**ANSWERS, "file": "other.jsonl"}, "one report is about q.jsonl and the other about other.jsonl"),
        ({**VERIFIER, "file": "q.jsonl"}, "are of two kinds"),
        ({**ANSWERS, "rows": 5}, "had 4 rows and now has 5"),
        ({**ANSWERS, "answered_share": "half"}, "'half' where numbers should be"),
    ],
)
def test_reports_measured_differently_are_not_compared(after: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongUse) as refused:
        compare(ANSWERS, after)
    assert said in str(refused.value).replace("One", "one")


def test_the_command_shows_both_and_says_with_its_exit_code_whether_anything_got_worse(terminal: Terminal) -> None:
    before = terminal.write("a.json", json.dumps([VERIFIER]))
    after = terminal.write("b.json", json.dumps([{**VERIFIER, "false_accepts": 0, "accepted": []}]))
    better = terminal.orion("eval", "compare", before, after)
    assert (better.code, "nothing got worse" in better.out, "b (accepted)" in better.out) == (0, True, True)
    worse = terminal.orion("eval", "compare", after, before, "--json")
    assert (worse.code, worse.json[0]["is_worse"], worse.json[0]["worse"]) == (1, True, ["b (accepted)"])


@pytest.mark.parametrize("content", ["{}", "[]", "hello", '[{"rows": 1}]'])
def test_a_file_other_than_a_report_is_refused(content: str, terminal: Terminal) -> None:
    report = terminal.write("a.json", json.dumps(ANSWERS))
    done = terminal.orion("eval", "compare", report, terminal.write("b.json", content))
    assert done.code == 2
    assert "b.json is no" in done.err


def test_reports_on_several_files_are_shown(terminal: Terminal) -> None:
    one = terminal.write("a.json", json.dumps([VERIFIER]))
    two = terminal.write("b.json", json.dumps([VERIFIER, VERIFIER]))
    done = terminal.orion("eval", "compare", one, two)
    assert (done.code, "has 1 reports and b.json 2" in done.err) == (2, True)
