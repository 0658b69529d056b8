"""Labelled questions through the whole agent: what counts as expected, and that a thread is one conversation."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.evals.answers import EvalReply, LabelledQuestion, ask_all, count_results, plain
from bot.settings import load_settings
from tests.support.langfuse_receiver import LangfuseReceiver
from tests.support.openai_server import RESPOND, Scripted, ScriptedOpenAI, calls, fails, says

ROWS: list[dict[str, Any]] = [
    {"id": "a", "question": "How many requests may an API key make?", "expect": ["600 requests"], "kind": "number"},
    {"id": "b", "question": "When is the office open on Saturday?", "expect": ["09:00"], "thread": "t"},
    {"id": "c", "question": "And on Sunday?", "expect": ["closed on Sunday"], "thread": "t", "kind": "follow-up"},
    {"id": "d", "question": "Who won the football match?", "expect": None, "kind": "absent"},
    {"id": "e", "question": "How many requests may an API key make?", "expect": ["900 requests"], "kind": "number"},
]
DOCUMENT = """# Limits
Each API key may make 600 requests a minute.

# Office hours
On Saturday the office is open from 09:00 to 14:00. The office is closed on Sunday.
"""


def write_set(folder: Path, rows: Iterable[dict[str, Any]] = ROWS) -> tuple[Path, Path]:
    """Write labelled questions and a folder with the document that answers them; return both paths."""
    docs, path = folder / "docs", folder / "rows.jsonl"
    docs.mkdir()
    (docs / "all.md").write_text(DOCUMENT)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path, docs


def question_with(expect: tuple[str, ...] | None = ("600",), kind: str = "") -> LabelledQuestion:
    return LabelledQuestion(id="a", question="?", expect=expect, kind=kind)


@pytest.mark.parametrize(
    ("expect", "outcome", "text", "result"),
    [
        (("600",), "answered", "It is *600* [1].", "answered"),
        (("600",), "partial", "It is 600 [1].", "answered"),
        (("600",), "unsourced", "It is 600.", "wrong"),
        (("600",), "refused", "600", "wrong"),
        (("600", "minute"), "answered", "It is 600 [1].", "wrong"),
        (("run --name <service>",), "answered", "Run `run --name &lt;service&gt;` [1].", "answered"),
        (None, "refused", "No.", "refused"),
        (None, "answered", "It is 600 [1].", "wrong"),
        (("600",), "failed: verification", "600", "wrong"),
        (("600",), "failed: APITimeoutError", "600", "error"),
        (None, "failed: APITimeoutError", "600", "error"),
        (("600",), "out_of_budget: tokens", "600", "error"),
    ],
)
def test_each_reply_gets_its_result(expect: tuple[str, ...] | None, outcome: Any, text: str, result: str) -> None:
    outcome, _, reason = outcome.partition(": ")
    reply = EvalReply(asked=question_with(expect), outcome=outcome, reason=reason, text=text)
    assert (reply.result, reply.as_expected) == (result, result in {"answered", "refused"})


def test_citations_marks_escapes_and_line_endings_do_not_count() -> None:
    assert plain("*A* [1]\n• _b_ &amp; `c` [2, 3].") == "a • b & c."


def test_figures_by_kind_list_the_unexpected_outcomes() -> None:
    replies = [
        EvalReply(asked=question_with(kind="number"), outcome="answered", text="600", ms=10),
        EvalReply(asked=question_with(kind="number"), outcome="failed", text="", ms=30),
        EvalReply(asked=question_with(None), outcome="refused", text="", ms=20),
    ]
    report = count_results(replies)
    assert (report["answered_as_expected"], report["should_answer"], report["answered_share"]) == (1, 2, 0.5)
    assert (report["refused_as_expected"], report["should_refuse"], report["refused_share"]) == (1, 1, 1.0)
    assert report["kinds"] == {"number": {"rows": 2, "as_expected": 1}}
    assert report["outcomes"] == {"answered": 1, "failed": 1, "refused": 1}
    assert report["not_as_expected"] == [{"id": "a", "outcome": "failed"}]
    assert (report["p50_ms"], report["p95_ms"]) == (20, 30)


async def test_questions_go_through_the_whole_agent_thread_by_thread(tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path / "home", openai_base_url="")
    report = (await ask_all(settings, *write_set(tmp_path))).figures()
    assert [wrong["id"] for wrong in report["not_as_expected"]] == ["e"]
    assert report["model"] == "extractive"
    assert report["kinds"]["follow-up"] == {"rows": 1, "as_expected": 1}


async def test_with_langfuse_keys_every_question_is_a_trace_of_an_experiment(tmp_path: Path) -> None:
    half = {"id": "half \ud83d", "question": "How many requests\ud83d?", "expect": ["600 \ud83d"]}
    path, docs = write_set(tmp_path, (*ROWS, half))
    async with LangfuseReceiver() as receiver:
        keys = {"langfuse_public_key": "pk-eval-answers", "langfuse_secret_key": SecretStr("sk")}
        settings = load_settings(home=tmp_path / "home", openai_base_url="", langfuse_host=receiver.url, **keys)
        run = await ask_all(settings, path, docs)
    assert run.pushed.startswith(
        f"Langfuse: run rows {run.began.isoformat(timespec='milliseconds')} of the dataset rows"
    )
    assert [item["id"] for item in receiver.items] == [f"rows:{row['id']}" for row in ROWS] + ["rows:half ?"]
    assert receiver.score("as_expected") == [float(reply.as_expected) for reply in run.replies]
    assert receiver.score("as_expected_share") == [0.6667]
    roots = [span for span in receiver.spans if span.name == "turn"]
    assert {root.attributes["langfuse.environment"] for root in roots} == {"eval"}
    pushed = [span["output"]["trace"] for span in receiver.spans if span.name == "experiment-item-run"]
    assert pushed == [root.trace_id for root in roots]
    assert [root["input"] for root in roots] == [*(row["question"] for row in ROWS), "How many requests??"]
    assert {"decide", "search", "write", "verify"} <= {span.name for span in receiver.spans}


async def test_failed_drafts_and_an_unavailable_model_are_counted_separately(tmp_path: Path) -> None:
    path, docs = write_set(tmp_path, (ROWS[0], ROWS[4]))
    decisions = [calls(("search", {"query": "requests of an API key"})), RESPOND, fails(401, "no such key")]
    wrong, right = (
        says(f"<answer>Each API key may make {number} requests a minute [1].</answer>") for number in (900, 600)
    )

    def drafts(request: Any) -> Scripted:
        rewritten = any(message["role"] == "assistant" for message in request["messages"])
        return right if rewritten else wrong

    async with ScriptedOpenAI(decisions=decisions, drafts=drafts) as server:
        settings = load_settings(home=tmp_path / "home", openai_base_url=server.url, openai_api_key=SecretStr("k"))
        run = await ask_all(settings, path, docs)
    answered, away = run.replies
    assert (answered.result, answered.attempts, answered.failed_rules) == ("answered", 2, ("claim_supported",))
    assert [source.title for source in answered.sources] == ["Limits"]
    assert (away.result, away.attempts, away.is_judged) == ("error", 0, False)
    assert run.pushed == ""
