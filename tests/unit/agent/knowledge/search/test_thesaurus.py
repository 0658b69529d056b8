"""Other words for one thing: phrases are found, groups are small and few, nothing is its own other word."""

from __future__ import annotations

from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.search.thesaurus import LANGUAGES, key, meanings, named, other_words, phrases, same_thing
from agent.knowledge.search.tokens import words


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


def test_f9_every_line_has_a_word_in_each_language_and_none_twice() -> None:
    lines = (
        resources.files("agent.knowledge.search").joinpath("words_of_work.txt").read_text(encoding="utf-8").splitlines()
    )
    for line in (line for line in lines if line and not line.startswith("#")):
        columns = [[term.strip() for term in column.split(",")] for column in line.split("|")]
        assert len(columns) == len(LANGUAGES), line
        assert all(all(column) for column in columns), line
        assert all(len(set(column)) == len(column) for column in columns), line


@pytest.mark.parametrize(
    ("word", "asked", "meaning"),
    [
        ("Rechnungen", "de", "invoice"),
        ("factures", "fr", "invoice"),
        ("facturas", "es", "invoice"),
        ("tagihan", "id", "invoice"),
        ("請求書", "ja", "invoice"),
        ("账单", "zh", "invoice"),
        ("Hotelrechnung", "de", "invoice"),
        ("Parkplatzkosten", "de", "cost"),
        ("Quarkkuchen", "de", ""),
    ],
)
def test_f9_a_word_of_another_language_is_known_by_its_meaning(word: str, asked: str, meaning: str) -> None:
    phrase = tuple(words(word))
    assert meanings(phrase, asked) >= ({meaning} if meaning else set())
    assert (key((meaning,), "en") in same_thing(phrase, "en", asked)) is bool(meaning)


def test_f9_a_run_without_spaces_comes_as_the_things_it_names() -> None:
    assert next(named("試用期間はいくつですか", "ja")) == ("試用期間",)
    assert ("数据库",) in list(named("数据库备份保留多久？", "zh"))
    assert next(named("APIのパスワード", "ja")) == ("api",)
    assert "".join(part for phrase in named("監査ログx", "ja") for part in phrase) == "監査ログx"


def test_d2_the_words_of_other_languages_are_for_where_nothing_speaks_the_question_s_own() -> None:
    question = "How much does the hotel cost?"
    assert not {"hôtel", "ホテル"} & set(other_words(question))
    assert {"hôtel", "ホテル", "unterkunft"} <= set(other_words(question, foreign=True))
