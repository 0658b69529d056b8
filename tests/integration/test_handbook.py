"""The sample handbook, and what the keyless engine shows of it."""

import json
import re
from collections import Counter

import pytest

from agent.budget import Budget
from agent.knowledge.index.index import KnowledgeIndex
from agent.outcome import Answered, Refused
from agent.quoting.model import ExtractiveModel
from agent.thread.state import ThreadState
from agent.tools.builtin.knowledge import knowledge_tools
from agent.turn.loop import run_turn
from bot.evals.answers import plain
from tests.support.fakes import Listener, question
from tests.support.paths import ROOT

HANDBOOK = ROOT / "bot/local/handbook"
QUESTIONS = ROOT / "tests/data/handbook.jsonl"


@pytest.fixture
def handbook(index: KnowledgeIndex) -> KnowledgeIndex:
    report = index.index([HANDBOOK], docs_url="http://127.0.0.1:8765/docs")
    assert report.failed == ()
    return index


async def test_quoted_passages_contain_the_answer_and_pass_the_verifier(handbook: KnowledgeIndex) -> None:
    """Questions by a person who saw only the handbook. docs/measurements/answers.md has the first figures."""
    tools = {tool.spec.name: tool for tool in knowledge_tools(handbook, source_tokens=0)}
    right: Counter[bool] = Counter()
    rows = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        outcome, _ = await run_turn(
            question(row["question"]), ThreadState(), model=ExtractiveModel(), tools=tools, budget=Budget(),
            emit=Listener(),
        )  # fmt: skip
        assert isinstance(outcome, (Answered, Refused)), row["id"]
        expected = row["expect"]
        holds = all(plain(text) in plain(outcome.answer.text) for text in expected or ())
        right[expected is not None] += (
            isinstance(outcome, Answered) and holds if expected else isinstance(outcome, Refused)
        )
    assert len(rows) == 75
    assert right[True] >= 48
    assert right[False] >= 2


async def test_the_first_question_of_the_readme_is_answered_at_the_top(handbook: KnowledgeIndex) -> None:
    asked = question("how many requests may one API key send per minute?")
    tools = {tool.spec.name: tool for tool in knowledge_tools(handbook, source_tokens=0)}
    model = ExtractiveModel()
    outcome, _ = await run_turn(asked, ThreadState(), model=model, tools=tools, budget=Budget(), emit=Listener())
    assert isinstance(outcome, Answered)
    title, shown = outcome.answer.text.split("\n\n")[:2]
    assert "Rate limits" in title
    assert "*Each API key may make 600 requests a minute*" in shown


def test_every_form_is_in_the_handbook_and_every_date_is_stated(handbook: KnowledgeIndex) -> None:
    documents = handbook.documents()
    assert {document.id.rpartition(".")[2] for document in documents} == {"md", "html", "pdf"}
    assert len(documents) >= 15
    for document in documents:
        whole = handbook.document(document.id)
        assert whole is not None
        assert f"Last updated: {document.updated_at}" in whole.text


def test_links_between_documents_work() -> None:
    page = (HANDBOOK / "backups.html").read_text()
    for target in re.findall(r'href="([^"#]+)"', page):
        assert (HANDBOOK / target).is_file()
