"""`orion eval …` as a person types it: figures as a table or JSON, a sentence and exit code 2 for a bad file."""

import json
import socket

import pytest

from tests.support.orion_command import QUESTION, Terminal

CLAIMS = (
    '{"id": 1, "source": "Backups are kept for 30 days.", "claim": "Backups are kept for 31 days.", "supported": 0}\n'
)
TEXTS = """{"id": "a", "text": "Hello!", "passes": true, "kind": "greeting"}
{"id": "b", "text": "Hello!", "passes": false, "kind": "greeting"}
{"id": "c", "text": "<!here> hello", "passes": true, "kind": "ping"}
"""
COLLECTION = {"docs": {"a": {"title": "Kiln", "text": "It cools."}}, "queries": {"q": "kiln"}, "qrels": {"q": {"a": 1}}}
QUESTIONS = f'{{"id": "a", "question": "{QUESTION}", "expect": ["600 requests"]}}\n'


def test_eval_grounding_prints_a_report_per_file_and_writes_predictions(terminal: Terminal) -> None:
    files = terminal.write("one.jsonl", CLAIMS), terminal.write("two.jsonl", CLAIMS)
    done = terminal.orion("eval", "grounding", *files, "--predictions", "out.jsonl", "--json")
    assert (done.code, [report["file"] for report in done.json]) == (0, ["one.jsonl", "two.jsonl"])
    assert {"balanced_accuracy", "precision", "recall", "false_alarms"} <= set(done.json[0])
    lines = [json.loads(line) for line in (terminal.folder / "out.jsonl").read_text().splitlines()]
    assert [set(line) for line in lines] == [{"id", "score", "supported", "rules"}] * 2


def test_eval_verifier_prints_wrong_passes_and_wrong_fails(terminal: Terminal) -> None:
    name = terminal.write("texts.jsonl", TEXTS)
    (report,) = terminal.orion("eval", "verifier", name, "--json").json
    assert (report["accepted"], report["rejected"]) == (["b"], [{"id": "c", "rules": ["no_broadcast"]}])
    shown = terminal.orion("eval", "verifier", name)
    assert shown.code == 0
    for part in ("texts.jsonl", "false accepts", "c (no_broadcast)", "greeting", "2 rows, 1 false accepts"):
        assert part in shown.out


def test_eval_retrieval_prints_ranking_and_times(terminal: Terminal) -> None:
    done = terminal.orion("eval", "retrieval", terminal.write("small.json", json.dumps(COLLECTION)), "--json")
    assert (done.json["ndcg_at_10"], done.json["queries"]) == (1.0, 1)
    assert "p95 ms" in terminal.orion("eval", "retrieval", "small.json").out


def test_eval_answers_asks_the_agent(terminal: Terminal) -> None:
    done = terminal.orion("eval", "answers", terminal.write("q.jsonl", QUESTIONS), "--docs", "docs", "--json")
    assert (done.code, done.json["answered_as_expected"]) == (0, 1)
    assert "none" in terminal.orion("eval", "answers", "q.jsonl", "--docs", "docs").out


def test_eval_answers_writes_a_page_and_prints_the_same_figures(terminal: Terminal) -> None:
    command = ("eval", "answers", terminal.write("q.jsonl", QUESTIONS), "--docs", "docs", "--json")
    before, after = terminal.orion(*command), terminal.orion(*command, "--report", "out.html")
    assert (after.code, before.err) == (0, "")
    assert after.err.startswith("out.html: every question")
    assert {**after.json, "p50_ms": 0, "p95_ms": 0} == {**before.json, "p50_ms": 0, "p95_ms": 0}
    assert QUESTION in (terminal.folder / "out.html").read_text(encoding="utf-8")


def test_an_unreachable_langfuse_is_reported_and_the_report_is_still_written(terminal: Terminal) -> None:
    with socket.socket() as closed:  # bound and not listening: connections are refused
        closed.bind(("127.0.0.1", 0))
        host = f"http://127.0.0.1:{closed.getsockname()[1]}"
        terminal.set(LANGFUSE_PUBLIC_KEY="pk-eval", LANGFUSE_SECRET_KEY="sk", LANGFUSE_HOST=host)
        done = terminal.orion("eval", "answers", terminal.write("q.jsonl", QUESTIONS), "--docs", "docs", "--json")
    assert (done.code, done.json["answered_as_expected"]) == (0, 1)
    told = "cannot be reached (ConnectError): this run was not pushed to Langfuse as an experiment, or only in part."
    assert done.err.endswith(f"{host} {told}\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["grounding", "bad.jsonl"], "bad.jsonl, line 2"),
        (["grounding", "bytes.jsonl"], "bytes.jsonl, line 1"),
        (["grounding", "bad.jsonl", "--predictions", "bad.jsonl"], "cannot be written at the same time"),
        (["grounding", "good.jsonl", "--predictions", "no/out.jsonl"], "out.jsonl cannot be written"),
        (["answers", "bad.jsonl", "--docs", "docs"], "bad.jsonl, line 2"),
        (["answers", "good.jsonl", "--docs", "nowhere"], "nowhere is not a folder"),
        (["answers", "good.jsonl", "--docs", "docs", "--report", "good.jsonl"], "cannot be written at the same time"),
        (["answers", "good.jsonl", "--docs", "docs", "--report", "docs"], "docs cannot be written"),
        (["retrieval", "bad.jsonl"], "bad.jsonl is not JSON"),
        (["retrieval", "nowhere"], "nowhere"),
        (["verifier", "docs"], "docs"),
        (["verifier"], "Missing argument"),
    ],
    ids=" ".join,
)
def test_a_bad_file_is_reported_with_exit_code_2(arguments: list[str], said: str, terminal: Terminal) -> None:
    good = {"id": 1, "supported": 1, "passes": True, "question": "x?", "expect": None}
    good |= dict.fromkeys(("source", "claim", "text"), "x")
    content = json.dumps(good) + "\n{}\n"
    terminal.write("good.jsonl", json.dumps(good))
    terminal.write("bad.jsonl", content)
    terminal.write("bytes.jsonl", b"\xff\xfe\n")
    done = terminal.orion("eval", *arguments)
    assert done.code == 2
    assert said in done.err
    assert (terminal.folder / "bad.jsonl").read_text() == content
