"""Words of a question that no answer need say again."""

from __future__ import annotations

import pytest

from agent.knowledge.search.tokens import stem
from agent.quoting.implied import converse, implied, implied_by_form, own_names


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
        ("What is the command to dim the lamp?", "command"),
        ("How long does a ticket stay valid?", "valid"),
        ("How do I request a lamp?", "request"),
    ],
)
def test_b_a_word_that_the_question_implies_need_not_be_said(question: str, spared: str) -> None:
    assert spared in implied(question)


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("When do I leave?", "leave"),
        ("How many employees are there?", "employees"),
        ("How many members does the choir have?", "members"),
        ("Who is the engineer?", "engineer"),
        ("Where is the lamp?", "lamp"),
        ("Who may request a lamp?", "request"),
    ],
)
def test_b_what_is_asked_for_or_counted_must_be_said(question: str, kept: str) -> None:
    assert kept not in implied(question)


def test_b_a_time_may_be_told_from_the_other_side() -> None:
    assert "delet" in converse("How long are letters kept?")["keep"]
    assert "open" in converse("When do you close?")["close"]
    assert converse("Who keeps the letters?") == {}


def test_f9_what_a_form_implies_it_implies_in_other_languages() -> None:
    assert stem("pay", "en") in implied_by_form("Wie viel Geld gibt es?")
    assert "open" in converse("À quelle heure ferme-t-il ?")["close"]


def test_b_a_word_is_no_other_of_the_same_stem() -> None:
    assert "several" in implied("Are several offers needed?")
    assert "severity" not in implied("Which severity is it?")


def test_b_the_name_of_those_who_ask_is_known_by_their_texts() -> None:
    texts = ("Your first weeks at Acme.", "The Fern platform team decides. Slack is used.")
    assert own_names("Who leads Fern's team at Acme?", texts) == {"fern", "acme"}
    assert own_names("What are Slack's limits?", texts) == frozenset()
    assert own_names("What are the limits?", texts) == frozenset()
