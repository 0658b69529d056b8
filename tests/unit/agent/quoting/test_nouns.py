"""Which words of a question must be named by what is quoted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.search.tokens import words
from agent.quoting.nouns import is_done, is_verb, last_verb, nouns


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where are the backups of the billing database stored?", {"backups", "billing", "database"}),
        ("How long must a password be?", {"password"}),
        ("How long is an idempotency key remembered?", {"idempotency", "key"}),
        ("How many kilograms may a private parcel weigh?", {"kilograms", "private", "parcel"}),
        ("Who is the manager of the laboratory?", {"manager", "laboratory"}),
        ("Can I bring my dog?", {"dog"}),
        ("When does version 3 end?", {"version", "3"}),
    ],
)
def test_b_nouns_and_what_describes_them_are_insisted_on(question: str, expected: set[str]) -> None:
    assert nouns(question) == expected


@pytest.mark.parametrize(
    "question",
    [
        "How do we deploy?",
        "What is the deadline?",
        "What should I do if it fails?",
        "How is it signed?",
        "SEV1?",
        "Which code do I need for the problem?",
        "",
    ],
)
def test_b_verbs_kinds_and_identifiers_are_not(question: str) -> None:
    assert nouns(question) == frozenset()


def test_b_a_word_that_may_be_a_verb_is_told_in_its_plain_forms() -> None:
    assert is_verb("approve")
    assert is_verb("approves")
    assert is_verb("watches")
    assert not is_verb("manager")


@given(st.text(max_size=200))
def test_b_every_noun_stands_in_the_question(question: str) -> None:
    assert nouns(question) <= {part for word in words(question) for part in (word, *word.split())} | {
        token.lower() for token in question.split()
    } or all(noun in question.lower() for noun in nouns(question))


def test_b_the_last_word_after_a_helper_is_the_verb_where_no_other_is() -> None:
    assert last_verb("How many zones does production span?") == "span"
    assert "span" not in nouns("How many zones does production span?")
    assert last_verb("Which zone does the team use?") == ""
    assert last_verb("Is production in a zone?") == ""
    assert last_verb("What does it span?") == "span"
    assert last_verb("What does it do?") == ""


def test_b_a_verb_is_one_in_each_of_its_forms() -> None:
    assert all(map(is_done, ("support", "supports", "supported", "supporting")))
    assert not is_done("lamp")


def test_b_a_participle_is_a_noun_only_where_it_describes_one() -> None:
    assert nouns("Who is woken for it?") == frozenset()
    assert "stolen" in nouns("Who reports the stolen phone?")
