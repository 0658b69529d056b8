"""Other words for one thing: phrases are found, groups are small and few, nothing is its own other word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.terms import words
from agent.knowledge.thesaurus import key, other_words, phrases, same_thing


def test_b_words_that_belong_together_come_together() -> None:
    assert list(phrases("Hand in the claim; the fail-over paid back")) == [
        ("hand", "in"),
        ("the",),
        ("claim",),
        ("the",),
        ("fail", "over"),
        ("paid", "back"),
    ]


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("maximum", "limit", None),
        ("deploying", "release", None),
        ("paid back", "reimbursed", None),
        ("fails over", "failover", None),
        ("Urlaub", "vacation", "de"),
        ("Probezeit", "probation", "en"),
        ("prod", "production", "en"),
    ],
)
def test_f9_other_words_for_one_thing_are_known_in_each_form(one: str, other: str, language: str | None) -> None:
    assert key(tuple(words(other)), language) in same_thing(tuple(words(one)), language)
    assert key(tuple(words(one)), language) not in same_thing(tuple(words(one)), language)


def test_b_what_a_text_says_itself_is_no_other_word() -> None:
    found = other_words("What is the max hotel price?")
    assert {"limit", "maximum", "at most", "accommodation", "cost"} <= set(found)
    assert not {"max", "hotel", "price"} & set(found)
    assert other_words("Where does the zebra live?") == []


@given(st.text(max_size=120))
def test_b_phrases_are_all_words_in_their_order(text: str) -> None:
    assert [word for phrase in phrases(text) for word in phrase] == words(text)
