"""What PostgreSQL indexes: the words that FTS5 would, and nothing that could be syntax."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.lexemes import as_query, indexed, lexemes, phrases_of

_LEXEMES = re.compile(r"(?:'[^\W_]+':\d+(?:,\d+)*(?: |$))*")


def test_d2_words_become_stems_without_case_and_accents() -> None:
    assert lexemes("Cafés open, re-opening v2.3_s") == ["cafe", "open", "re", "open", "v2", "3", "s"]


def test_d2_titles_and_headings_count_twice() -> None:
    entry = indexed("Beta", "Beta › Lunch", "Lunch at noon")
    assert entry.vector == "'beta':1,10 'lunch':11,20 'at':21 'noon':22"
    assert (entry.length, entry.counts) == (6, {"beta": 4, "lunch": 3})


def test_f9_chinese_japanese_and_thai_are_pairs() -> None:
    assert set(indexed("", "", "有給休暇 วันลา").words) >= {"有給", "給休", "休暇", "วั", "ลา"}
    assert phrases_of("休暇") == [("休暇",)]


def test_d2_identifiers_are_looked_for_whole_and_in_parts() -> None:
    assert phrases_of("FH-2002") == [("fh", "2002"), ("fh",), ("2002",)]
    assert as_query(("fh", "2002")) == "'fh' <-> '2002'"


@given(st.text(max_size=200), st.text(max_size=80))
def test_d2_no_text_is_syntax(text: str, title: str) -> None:
    assert _LEXEMES.fullmatch(indexed(title, title, text).vector)
    assert all(lexeme.isalnum() for phrase in phrases_of(text) for lexeme in phrase)
