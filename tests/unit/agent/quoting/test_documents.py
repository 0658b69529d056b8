"""Questions about the documents themselves."""

from __future__ import annotations

import pytest

from agent.quoting.documents import MOST_BY_AGE, asks_for_documents, document_of, is_about, listed
from agent.quoting.units import units_of
from verification.types import Source

LIST = units_of(
    Source(
        id=1,
        title="List of documents",
        text="\n".join([*(f"- D{n} (d{n}.md), updated 2026-0{n}-01" for n in (3, 1, 2, 6, 5, 4, 7)), "- and 9 more"]),
    )
)


@pytest.mark.parametrize(
    "question",
    [
        "Which documents changed most recently?",
        "which pages were updated recently",
        "What is the newest document?",
        "Which documents are the oldest?",
        "show me outdated docs",
        "Welche Dokumente sind veraltet?",
        "Was ist das neueste Dokument?",
    ],
)
def test_d2_questions_for_documents_by_age_are_for_the_list(question: str) -> None:
    assert asks_for_documents(question)


@pytest.mark.parametrize(
    "question", ["What is the latest release?", "Which documents must I sign?", "Who is the oldest?", "recent changes"]
)
def test_d2_other_questions_are_not(question: str) -> None:
    assert not asks_for_documents(question)


def test_d2_the_newest_or_oldest_few_come_in_their_order() -> None:
    newest = [unit.text[:2] for unit in listed("Which documents changed most recently?", LIST)]
    oldest = [unit.text[:2] for unit in listed("Which documents are the oldest?", LIST)]
    assert newest == ["D7", "D6", "D5", "D4", "D3"]
    assert oldest == ["D1", "D2", "D3", "D4", "D5"]
    assert len(newest) == MOST_BY_AGE
    assert listed("Which documents are there?", LIST) == LIST


@pytest.mark.parametrize(
    ("question", "title", "about"),
    [
        ("Tell me about travel", "Travel", True),
        ("who is on call?", "On-call", True),
        ("expenses policy", "Expenses", True),
        ("How do we make a release?", "Releases and freeze windows", False),
        ("What may a hotel cost on travel?", "Travel", False),
        ("What is it?", "It", False),
    ],
)
def test_b_a_document_is_asked_for_by_its_title_alone(question: str, title: str, about: bool) -> None:  # noqa: FBT001 - a row of the table
    assert is_about(question, document_of(f"{title} › Section")) is about
    assert is_about(question, title) is about
