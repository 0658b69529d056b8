"""Sentences of a text: what need not go through the splitter is what it would not part."""

from __future__ import annotations

import pytest
import sentencex  # type: ignore[import-untyped]  # ships no types
from hypothesis import example, given
from hypothesis import strategies as st

from verification.passages import sentence_spans

WORDS = (
    *("Keys", "no", "Dr", "e", "g", "5", "[1]", "`a.b`", "(see", "b)", "x-y", "–", "*a*", "Größe", "表", "あ", "50%"),
    *("=", "+", "/var", "|", "<u>", "'s", '"so"', "@x", "#1", "\\", "{a}", "~", "^", "$5", "&", "_"),
)


@given(
    st.lists(st.sampled_from(WORDS), max_size=12),
    st.sampled_from(["", ".", "!", "?"]),
    st.sampled_from(["en", "de", "ja"]),
)
@example(["Keys", "expire"], ".", "en")
def test_f9_a_line_without_ends_of_sentences_is_one_sentence(words: list[str], end: str, language: str) -> None:
    line = " ".join(words) + end
    parted = [piece for piece in sentencex.segment(language, line) if piece.strip()]
    spans = [line[start:stop] for start, stop in sentence_spans(line, language)]
    if "`a.b`" not in words and parted:
        assert len(parted) == 1
    assert spans == [piece.strip() for piece in parted]


@pytest.mark.parametrize("line", ["It works. It is fast.", "It works! \u3042。い", "a; b. C is d."])
def test_f9_a_line_with_ends_inside_goes_through_the_splitter(line: str) -> None:
    parted = [piece.strip() for piece in sentencex.segment("en", line)]
    assert [line[start:stop] for start, stop in sentence_spans(line, "en")] == parted
