"""Recency: only where it is asked for, and never instead of relevance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.search.recency import asks_for_newest, freshest_first
from agent.knowledge.types import Document, Passage
from agent.tools.builtin.knowledge import SearchTool


def passage(name: str, updated_at: str) -> Passage:
    return Passage(document=name, title=name, heading="", text=name, updated_at=updated_at)


OLD, NEW, UNDATED = passage("old", "2020-01-01"), passage("new", "2026-01-01"), passage("undated", "")


class Shelf:
    """Finds the same passages for every query."""

    def __init__(self, *passages: Passage) -> None:
        self.passages = passages

    def search(self, query: str, *, limit: int = 8) -> tuple[Passage, ...]:
        return self.passages[:limit] if query else ()

    def rarity(self, query: str) -> dict[str, float]:
        return dict.fromkeys(query.split(), 1.0)

    def part(self, document: str, first: int, last: int) -> tuple[Passage, ...]:
        return tuple(p for p in self.passages if p.document == document and first <= p.number <= last)

    def documents(self) -> tuple[Document, ...]:
        return ()

    def document(self, name_or_id: str) -> Document | None:  # noqa: ARG002 - the seam's signature
        return None  # it has passages only


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
    ("query", "titles"),
    [("latest price", ["new", "old", "undated"]), ("price", ["old", "new", "undated"])],
)
async def test_d2_a_search_for_the_newest_prefers_it_and_no_other_does(query: str, titles: list[str]) -> None:
    result = await SearchTool(Shelf(OLD, NEW, UNDATED)).run({"query": query})
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
