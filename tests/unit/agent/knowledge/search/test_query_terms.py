"""Questions become what to look for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.search.full_text import MAX_TERMS, impacts, query_terms, subject_tokens, tokens


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


def test_pasted_log_is_cut() -> None:
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
def test_identifiers_stay_whole(text: str, found: list[str]) -> None:
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
