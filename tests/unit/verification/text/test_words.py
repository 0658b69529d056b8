"""verification/text/words.py: the quick ways to stems and words say what the way over each word says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from verification.text import words
from verification.text.words import stem_list, stem_sets, terms, word_lists

TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(st.sampled_from(["Backups", "don't", "it’s", "the", "2024", "a_b", "ÉTÉ", "-", ".", "東京タワー", "研修"]))
    .map(" ".join)
    .filter(bool),
)
LANGUAGES = st.sampled_from([None, "en", "de", "fr", "es", "id", "ja"])


@given(TEXTS, LANGUAGES)
def test_f1_stems_in_a_row_are_those_of_the_terms(text: str, language: str | None) -> None:
    (listed,) = word_lists(text, [(0, len(text))])
    assert stem_list(listed, language) == [term.stem for term in terms(text, language) if term.stem]


@given(TEXTS, LANGUAGES, st.integers(0, 80))
def test_f1_stems_of_a_span_are_those_of_its_words(text: str, language: str | None, cut: int) -> None:
    spans = [(0, cut), (cut, len(text))]
    lists = word_lists(text, spans)
    apart = [word_lists(text[a:b], [(0, b - a)])[0] for a, b in spans]
    assert stem_sets(lists, language) == [frozenset(stem_list(listed, language)) for listed in apart]


@given(TEXTS)
def test_f1_the_words_are_those_of_the_terms(text: str) -> None:
    assert word_lists(text, [(0, len(text))]) == [[term.word for term in terms(text, None)]]


def test_a_long_life_does_not_fill_the_memory_with_stems() -> None:
    known = words._stems("xx")
    for number in range(words._MOST_KEPT):
        assert known[str(number)] == str(number)
    assert (len(known), known["next"], len(known)) == (words._MOST_KEPT, "next", 1)
