"""Questions become words to look for, and passages stems and pairs, each with its weight."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.search.full_text import (
    MAX_IMPACT,
    MAX_TERMS,
    impacts,
    query_terms,
    subject_tokens,
    tokens,
    words_of,
)


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("What is the meal limit?", ["meal", "limit"]),
        ("How do I use the vault?", ["use", "vault"]),
        ("Wie benutze ich den Tresor?", ["benutze", "Tresor"]),
        ("What is it?", ["What", "is", "it"]),
        ("error FH-2002", ["error", "FH 2002", "FH", "2002"]),
        ("the --force flag", ["force", "flag"]),
        ('say "hi" OR NOT', ["say", "hi"]),
        ("有給休暇", ["有給", "給休", "休暇"]),
        ("本", ["本"]),
        ("API的限制", ["的限", "限制", "API"]),
        ("?!", []),
    ],
)
def test_questions_become_terms(query: str, terms: list[str]) -> None:
    assert query_terms(query) == terms


@given(st.text(max_size=200))
def test_terms_are_words_only(query: str) -> None:
    assert all(term.replace(" ", "").isalnum() or impacts("", "", term) for term in query_terms(query))


def test_a_pasted_log_is_cut() -> None:
    assert len(query_terms(" ".join(f"word{n}" for n in range(500)))) == MAX_TERMS


def test_pairs_are_only_of_scripts_without_spaces() -> None:
    assert set(impacts("", "", "plain 日本語 text 本")) == {"plain", "日本", "本語", "text", "本"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Use `--force` (v2.3), now!", ["Use", "force", "v2.3", "now"]),
        ("FH-2002: status/409", ["FH-2002", "status/409"]),
        ("?! ... --", []),
    ],
)
def test_identifiers_are_not_split(text: str, found: list[str]) -> None:
    assert tokens(text) == found


def test_words_without_a_subject_are_dropped_unless_nothing_is_left() -> None:
    assert subject_tokens("How long is the freeze, and what is the freeze?") == ["freeze"]
    assert subject_tokens("What is it?") == []


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("who's in charge of payroll", ["charge", "payroll"]),
        ("what’s the limit we're allowed", ["limit", "allowed"]),
        ("Où est l'hôtel d'équipe", ["hôtel", "équipe"]),
        ("O'Brien's badge", ["Brien", "badge"]),
        ("FH-2002's status", ["FH 2002", "FH", "2002", "status"]),
    ],
)
def test_letters_joined_with_an_apostrophe_are_not_words(query: str, terms: list[str]) -> None:
    assert [term for term in query_terms(query) if term.lower() not in {"in", "est", "où", "of"}] == terms


def test_words_become_stems_without_case_and_accents() -> None:
    assert list(impacts("", "", "Cafés open, re-opening v2.3_s")) == [
        *("cafe", "open", "re", "v2", "3", "s"),
        *("re open", "v2 3", "3 s"),
    ]


def test_a_word_counts_more_in_a_heading_and_in_a_short_text() -> None:
    text = "Lunch is served at noon." + 50 * " There is a canteen on every floor of the house."
    said = impacts("Handbook", "Handbook › Lunch", text)
    assert said["lunch"] > said["noon"]
    assert impacts("", "", "Lunch is served at noon.")["noon"] > said["noon"]
    assert impacts("", "", f"{text} noon noon")["noon"] > said["noon"]


def test_chinese_japanese_and_thai_are_split_into_pairs() -> None:
    assert set(impacts("", "", "有給休暇 วันลา")) >= {"有給", "給休", "休暇", "วั", "ลา"}
    assert words_of("休暇") == ["休暇"]


def test_identifiers_are_searched_whole_and_in_parts() -> None:
    assert words_of("FH-2002") == ["fh 2002", "fh", "2002"]
    assert words_of("state-of-the-art") == ["state of", "of the", "the art", "state", "art"]
    assert set(impacts("", "", "see (FH-2002), not FH/2003.")) == {
        "see", "fh", "2002", "fh 2002", "not", "2003", "fh 2003"
    }  # fmt: skip


def test_punctuation_after_an_identifier_is_not_part_of_it() -> None:
    assert not [word for word in impacts("", "", 'one, two; "three" (four) five|six. Seven') if " " in word]


@given(st.text(max_size=200), st.text(max_size=80))
def test_any_text_gives_words_and_no_word_is_empty(text: str, title: str) -> None:
    said = impacts(title, title, text)
    assert all(1 <= impact <= MAX_IMPACT for impact in said.values())
    assert all(part and not part.isspace() for word in said for part in word.split(" "))


@given(st.text(st.characters(codec="ascii"), max_size=60))
def test_a_text_is_found_by_its_own_words(text: str) -> None:
    assert set(words_of(text)) <= set(impacts("", "", text))


def test_link_targets_are_not_words() -> None:
    text = (
        'See [the travel policy](../hr/expenses_(old).md "Title here") and ![map](img/plan.png), https://wiki.acme.com'
    )
    words = impacts("Title", "", text)
    assert {"travel", "polici", "map", "wiki"} <= words.keys()
    assert not {"expens", "old", "md", "img", "plan", "png"} & words.keys()
