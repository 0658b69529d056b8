"""Passages as words and facts, and the score of a claim."""

import pytest
import sentencex  # type: ignore[import-untyped]  # ships no types
from hypothesis import example, given
from hypothesis import strategies as st

from verification.evidence.evidence import Cited, Evidence, score
from verification.evidence.passages import analyse, sentence_spans

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
def test_a_line_without_inner_sentence_ends_is_one_sentence(words: list[str], end: str, language: str) -> None:
    line = " ".join(words) + end
    parted = [piece for piece in sentencex.segment(language, line) if piece.strip()]
    spans = [line[start:stop] for start, stop in sentence_spans(line, language)]
    if "`a.b`" not in words and parted:
        assert len(parted) == 1
    assert spans == [piece.strip() for piece in parted]


@pytest.mark.parametrize("line", ["It works. It is fast.", "It works! \u3042。い", "a; b. C is d."])
def test_a_line_with_inner_sentence_ends_is_split(line: str) -> None:
    parted = [piece.strip() for piece in sentencex.segment("en", line)]
    assert [line[start:stop] for start, stop in sentence_spans(line, "en")] == parted


def test_a_number_in_a_path_is_part_of_the_path_even_in_code() -> None:
    for text in (
        "See decisions/0011-who-may-stop.md.",
        "See `decisions/0011-who-may-stop.md`.",
        "Run `cp 5.csv a/7.csv`.",
    ):
        assert analyse(text, "en").quantities == ()
    assert [found.readings for found in analyse("Run `wait --for 30` with `v1.2.3`.", "en").quantities] == [(30.0,)]


def test_a_german_ordinal_does_not_end_a_sentence() -> None:
    text = "Der 5. Werktag galt bis 2023. Jetzt gilt der 3. Werktag."
    spans = sentence_spans(text, "de")
    assert [text[start:end] for start, end in spans] == ["Der 5. Werktag galt bis 2023.", "Jetzt gilt der 3. Werktag."]


@pytest.mark.parametrize(
    ("text", "language", "count"),
    [
        ("They pay £320, excl. VAT [1].", "en", 1),
        ("Das kostet 168 € inkl. MwSt. im Mai.", "de", 1),
        ("From 5:00 p.m. to 11:00 p.m. EST, also at 9 p.m. Tuesday [1].", "en", 1),
        ("It opens at 9 a.m. It closes at 5 p.m. The gate stays open.", "en", 3),
        ("Need: A person leaves; Who decides?: The lead; Who is told?: The team. Ask Ann.", "en", 2),
        ("They do not name Rocket.Chat, Node.js or pypdf._page.Page [1].", "en", 1),
        ("_Meetings may cost more than $10,000._ For these, approval is needed [1].", "en", 2),
    ],
)
def test_a_sentence_ends_neither_at_an_abbreviation_nor_inside_a_name(text: str, language: str, count: int) -> None:
    assert len(sentence_spans(text, language)) == count


def test_a_citation_is_no_number_even_as_the_label_of_a_link() -> None:
    for cited in ("[1]", "[1, 2]", "[2–3]", "[1](https://docs.test/p)", "[1](#one)"):
        assert [found.readings for found in analyse(f"Wait 30 days {cited}.", "en").quantities] == [(30.0,)], cited


SOURCE = (
    "Backups are kept for thirty days in the cellar of the old library. The keeper of the archive looks after them, "
    "and a copy goes to the branch office every week so that nothing is lost in a fire."
)


def evidence(claim: str) -> Evidence:
    return Evidence(claim=analyse(claim, "en"), cited=(Cited(id=1, passage=analyse(SOURCE, "en")),))


def test_a_supported_claim_scores_high_and_an_unsupported_one_scores_zero() -> None:
    assert score(evidence("Backups are kept for thirty days in the cellar of the old library.")) > 0.8
    assert score(evidence("Ferdinand Oyelaran paints wonderful giraffes.")) == 0.0


@pytest.mark.parametrize("claim", ["I keep backups for thirty days.", "Are backups kept for thirty days?"])
def test_opinions_and_questions_score_far_lower(claim: str) -> None:
    assert score(evidence(claim)) < 0.6 * score(evidence("Backups are kept for thirty days."))
