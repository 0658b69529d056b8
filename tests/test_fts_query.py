"""Questions become search expressions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.fts_query import MAX_TERMS, grams, match_expression


@pytest.mark.parametrize(
    ("query", "expression"),
    [
        ("What is the meal limit?", '"meal" OR "limit"'),
        ("How do I use the vault?", '"use" OR "vault"'),
        ("Wie benutze ich den Tresor?", '"benutze" OR "Tresor"'),
        ("What is it?", '"What" OR "is" OR "it"'),
        ("error FH-2002", '"error" OR "FH 2002" OR "FH" OR "2002"'),
        ("the --force flag", '"force" OR "flag"'),
        ('say "hi" OR NOT', '"say" OR "hi"'),
        ("有給休暇", '"有給" OR "給休" OR "休暇"'),
        ("本", '"本"'),
        ("API的限制", '"的限" OR "限制" OR "API"'),
        ("?!", ""),
    ],
)
def test_d2_questions_become_quoted_terms(query: str, expression: str) -> None:
    assert match_expression(query) == expression


@given(st.text(max_size=200))
def test_d2_every_quote_is_ours(query: str) -> None:
    expression = match_expression(query)
    assert expression.count('"') == 2 * (expression.count('" OR "') + 1 if expression else 0)


def test_d2_a_pasted_log_is_cut() -> None:
    assert match_expression(" ".join(f"word{n}" for n in range(500))).count(" OR ") == MAX_TERMS - 1


def test_f9_pairs_are_only_of_scripts_without_spaces() -> None:
    assert grams("plain", "日本語 text 本") == "日本 本語 本"
