"""The sample handbook and what the keyless model makes of it: at least 90 % answered, at least 90 % refused."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from agent.knowledge.types import KnowledgeIndex
from agent.model.protocol import WriteContext
from agent.quoting.model import ExtractiveModel
from agent.quoting.query import search_query, wider_query
from agent.thread.conversation import Message, Question, ThreadKey
from agent.tools.builtin.knowledge import SearchTool
from bot.evals.answers import plain
from tests.support.paths import ROOT
from verification.check import check
from verification.types import Draft, Source

HANDBOOK = ROOT / "bot/local/handbook"
DATA = ROOT / "tests/data"
QUESTIONS = DATA / "handbook_questions.jsonl"
UNSEEN = DATA / "handbook_heldout.jsonl"
"""Questions that were written before any was asked; every second one was never looked at (docs/answers.md)."""


@pytest.fixture
def handbook(index: KnowledgeIndex) -> KnowledgeIndex:
    report = index.index([HANDBOOK], docs_url="http://127.0.0.1:8765/docs")
    assert report.failed == ()
    return index


async def reply(index: KnowledgeIndex, text: str, history: tuple[Message, ...]) -> tuple[str, tuple[Source, ...]]:
    """The answer between the tags, and the sources it was written from."""
    queries = filter(None, (search_query(text, history), wider_query(text, history)))
    results = tuple([await SearchTool(index).run("search", {"query": query}) for query in queries])
    found = dict.fromkeys(source for result in results for source in result.sources)
    sources = tuple(replace(source, id=number) for number, source in enumerate(found, start=1))
    question = Question(thread=ThreadKey(team="T", channel="C", thread_ts="1"), user="U", text=text, ts="1")
    context = WriteContext(
        mission=text, question=question, history=history, answers={}, results=results, sources=sources
    )
    written = "".join([piece async for _, piece in ExtractiveModel().write(context).pieces])
    return written.partition("<answer>")[2].removesuffix("</answer>"), sources


def right(row: dict[str, Any], answer: str, sources: Iterable[Source]) -> bool:
    if row["expect"] is None:
        return answer == "NOT_IN_SOURCES"
    plain = " ".join(re.sub(r"\[\d+\]", "", answer).split())
    cited = {source.url for source in sources if f"[{source.id}]" in answer}
    return all(text in plain for text in row["expect"]) and any(f"/{row['document']}" in url for url in cited)


async def test_h1_the_handbook_is_answered_and_refused_as_it_should_be(handbook: KnowledgeIndex) -> None:
    rows = [json.loads(line) for line in QUESTIONS.read_text().splitlines()]
    threads: dict[str, tuple[Message, ...]] = defaultdict(tuple)
    outcomes: dict[bool, list[bool]] = {True: [], False: []}
    for row in rows:
        thread = row.get("thread") or row["id"]
        answer, sources = await reply(handbook, row["question"], threads[thread])
        said = (Message(role="user", text=row["question"]), Message(role="assistant", text=answer))
        threads[thread] += said
        outcomes[row["expect"] is not None].append(right(row, answer, sources))
        if answer != "NOT_IN_SOURCES":
            verdict = check(Draft(text=answer, question=row["question"], sources=sources))
            assert verdict.passed, (row["id"], verdict.errors)
    assert len(rows) >= 40
    assert sum(outcomes[True]) >= 0.9 * len(outcomes[True])
    assert sum(outcomes[False]) >= 0.9 * len(outcomes[False])


async def test_h1_new_questions_are_answered_less_often_but_never_beyond_what_stands_there(
    handbook: KnowledgeIndex,
) -> None:
    rows = [json.loads(line) for line in UNSEEN.read_text().splitlines()]
    threads: dict[str, tuple[Message, ...]] = defaultdict(tuple)
    answered: list[bool] = []
    for row in rows:
        thread = row.get("thread") or row["id"]
        answer, sources = await reply(handbook, row["question"], threads[thread])
        threads[thread] += (Message(role="user", text=row["question"]), Message(role="assistant", text=answer))
        if row["expect"] is not None:
            answered.append(all(plain(text) in plain(answer) for text in row["expect"]))
        if answer != "NOT_IN_SOURCES":
            assert check(Draft(text=answer, question=row["question"], sources=sources)).passed, row["id"]
    assert len(answered) == 38
    assert sum(answered) >= 0.85 * len(answered)


async def test_h1_questions_as_in_a_chat_are_answered_or_refused_within_what_was_measured(
    handbook: KnowledgeIndex,
) -> None:
    """Colleagues' own words, and what happened told before what is asked: docs/answers.md has the figures."""
    files = (DATA / "handbook_blind.jsonl", DATA / "handbook_situations.jsonl")
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    rows = [row for row in rows if "thread" not in row][::2]
    kinds: dict[bool, list[bool]] = {True: [], False: []}
    for row in rows:
        answer, _ = await reply(handbook, row["question"], ())
        expected = row["expect"]
        good = all(plain(text) in plain(answer) for text in expected) if expected else answer == "NOT_IN_SOURCES"
        kinds[expected is not None].append(good)
    assert min(map(len, kinds.values())) >= 35
    assert sum(kinds[True]) >= 0.6 * len(kinds[True])
    assert sum(kinds[False]) >= 0.84 * len(kinds[False])


async def test_h1_questions_of_neutral_writers_are_answered_or_refused_within_what_was_measured(
    handbook: KnowledgeIndex,
) -> None:
    """Every kind, by people who knew nothing of the engine: some of them here, docs/answers.md has all."""
    rows = [json.loads(line) for line in (DATA / "handbook_neutral.jsonl").read_text().splitlines()]
    threads: dict[str, tuple[Message, ...]] = defaultdict(tuple)
    kinds: dict[bool, list[bool]] = {True: [], False: []}
    for row in (row for row in rows if row["id"].startswith("nx")):
        thread = row.get("thread") or row["id"]
        answer, sources = await reply(handbook, row["question"], threads[thread])
        threads[thread] += (Message(role="user", text=row["question"]), Message(role="assistant", text=answer))
        kinds[row["expect"] is not None].append(right(row, answer, sources))
    assert len(rows) == 2_000
    assert [len(kinds[True]), len(kinds[False])] == [80, 20]
    assert sum(kinds[True]) >= 0.85 * len(kinds[True])
    assert sum(kinds[False]) >= 0.85 * len(kinds[False])


async def test_h1_another_house_with_other_words_is_answered_and_refused_too(index: KnowledgeIndex) -> None:
    """Documents of another trade, in seven languages: what was learnt must not be the handbook's own words."""
    assert index.index([DATA / "library"]).failed == ()
    threads: dict[str, tuple[Message, ...]] = defaultdict(tuple)
    kinds: dict[bool, list[bool]] = {True: [], False: []}
    for row in map(json.loads, (DATA / "library_questions.jsonl").read_text().splitlines()):
        thread = row.get("thread") or row["id"]
        answer, _ = await reply(index, row["question"], threads[thread])
        threads[thread] += (Message(role="user", text=row["question"]), Message(role="assistant", text=answer))
        expected = row["expect"]
        good = all(plain(text) in plain(answer) for text in expected) if expected else answer == "NOT_IN_SOURCES"
        kinds[expected is not None].append(good)
    assert sum(kinds[True]) >= 0.85 * len(kinds[True])
    assert sum(kinds[False]) >= 0.85 * len(kinds[False])


def test_h1_every_form_is_in_the_handbook_and_every_date_is_stated(handbook: KnowledgeIndex) -> None:
    documents = handbook.documents()
    assert {document.id.rpartition(".")[2] for document in documents} == {"md", "html", "pdf"}
    assert len(documents) >= 15
    for document in documents:
        whole = handbook.document(document.id)
        assert whole is not None
        assert f"Last updated: {document.updated_at}" in whole.text


def test_h1_links_between_documents_lead_somewhere() -> None:
    page = (HANDBOOK / "backups.html").read_text()
    for target in re.findall(r'href="([^"#]+)"', page):
        assert (HANDBOOK / target).is_file()
