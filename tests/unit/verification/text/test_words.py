"""verification/text/words.py: the quick ways to stems and words say what the way over each word says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from verification.text.language import folded_words, stem_list, terms

TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(st.sampled_from(["Backups", "don't", "it’s", "the", "2024", "a_b", "ÉTÉ", "-", ".", "東京タワー", "研修"]))
    .map(" ".join)
    .filter(bool),
)
LANGUAGES = st.sampled_from([None, "en", "de", "fr", "es", "id", "ja"])


@given(TEXTS, LANGUAGES)
def test_stems_in_a_row_are_those_of_the_terms(text: str, language: str | None) -> None:
    assert stem_list(folded_words(text), language) == [term.stem for term in terms(text, language) if term.stem]


@given(TEXTS)
def test_the_words_are_those_of_the_terms(text: str) -> None:
    assert [*folded_words(text)] == [term.word for term in terms(text, None)]
