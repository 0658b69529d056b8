"""Recency: only where it is asked for, and never instead of relevance."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.search.hits import freshest_first
from agent.knowledge.types import Passage
from agent.thread.requests import asks_for_newest
from agent.tools.builtin.knowledge import SearchTool


def passage(name: str, updated_at: str) -> Passage:
    return Passage(document=name, title=name, heading="", text=name, updated_at=updated_at)


OLD, NEW, UNDATED = passage("old", "2020-01-01"), passage("new", "2026-01-01"), passage("undated", "")


@pytest.mark.parametrize(
    "text",
    [
        "What is the latest price?",
        "Who is currently on duty?",
        "Welche Regel gilt derzeit?",
        "Quelle est la limite actuelle ?",
        "¿Cuál es el límite vigente?",
        "Berapa batas saat ini?",
        "最新の料金は？",
        "目前的限额是多少？",
    ],
)
def test_f9_the_newest_is_asked_for_in_seven_languages(text: str) -> None:
    assert asks_for_newest(text)


@pytest.mark.parametrize(
    "text", ["What is the price?", "When was it recentred?", "Wie hoch ist der Preis?", "¿Qué precio?"]
)
def test_d2_a_question_for_no_time_is_not_for_the_newest(text: str) -> None:
    assert not asks_for_newest(text)


@pytest.mark.parametrize(
    ("query", "titles"), [("latest price", ["New", "Old", "Older"]), ("price", ["Old", "New", "Older"])]
)
async def test_d2_a_search_for_the_newest_prefers_it_and_no_other_does(
    index: KnowledgeIndex, tmp_path: Path, query: str, titles: list[str]
) -> None:
    for title, year, text in (
        ("Old", 2020, "price, price"),
        ("New", 2026, "price, paid"),
        ("Older", 2010, "a price of 9 is due"),
    ):
        (tmp_path / f"{title}.md").write_text(f"# {title}\n\nUpdated: {year}-01-01\n\n{text}\n")
    index.index([tmp_path])
    result = await SearchTool(index).run({"query": query})
    assert [source.title for source in result.sources] == titles


def test_d2_relevance_still_counts() -> None:
    between = [passage(f"p{n}", "2021-01-01") for n in range(7)]
    found = freshest_first([OLD, passage("second", "2025-01-01"), *between, NEW])
    assert found[0].title == "second"
    assert [each.title for each in found if each in between] == [each.title for each in between]
    assert freshest_first([UNDATED, UNDATED]) == (UNDATED, UNDATED)


@given(st.lists(st.sampled_from([OLD, NEW, UNDATED]), max_size=12))
def test_d2_no_passage_is_lost(passages: list[Passage]) -> None:
    assert sorted(map(repr, freshest_first(passages))) == sorted(map(repr, passages))
