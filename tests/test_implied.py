"""Words of a question that no answer need say again."""

from __future__ import annotations

import pytest

from agent.knowledge.terms import stem
from agent.quoting.implied import converse, implied


@pytest.mark.parametrize(
    ("question", "spared"),
    [
        ("Where do I leave my bike?", "leave"),
        ("How do I swap my shift with a colleague?", "colleague"),
        ("Can one of my coworkers help?", "coworkers"),
        ("How much does the second engineer earn?", "earn"),
        ("How much does the second engineer earn?", "engineer"),
        ("What is the learning budget?", "budget"),
        ("What does the handbook say about dogs?", "handbook"),
        ("What kind of lamps are there?", "kind"),
    ],
)
def test_b_a_word_that_the_question_implies_need_not_be_said(question: str, spared: str) -> None:
    assert stem(spared, "en") in implied(question)


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("When do I leave?", "leave"),
        ("How many employees are there?", "employee"),
        ("How many members does the choir have?", "member"),
        ("Who is the engineer?", "engineer"),
        ("Where is the lamp?", "lamp"),
    ],
)
def test_b_what_is_asked_for_or_counted_must_be_said(question: str, kept: str) -> None:
    assert stem(kept, "en") not in implied(question)


def test_b_a_time_may_be_told_from_the_other_side() -> None:
    assert "delet" in converse("How long are letters kept?")["keep"]
    assert "open" in converse("When do you close?")["close"]
    assert converse("Who keeps the letters?") == {}
