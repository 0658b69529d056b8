"""Passages as words and facts, the score of a claim, and claims that are whole sentences of a source."""

import pytest
import sentencex  # type: ignore[import-untyped]  # ships no types
from hypothesis import example, given
from hypothesis import strategies as st

from verification.check import check
from verification.evidence.evidence import Cited, Evidence, score
from verification.evidence.passages import analyse, sentence_spans
from verification.evidence.verbatim import is_verbatim_sentence
from verification.types import Draft, Source

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
        ("*What is a unit?* gives another range: 1 to 2 [1].", "en", 1),
        ("The page *Why pay? Why now!* says so [1], and [Ask us!](https://x.example/q) too. It is new.", "en", 2),
        ("これは「何ですか？」という題です。次の文。", "ja", 2),
        ("Support is there until “5 p.m. ET.” [1] Write to us.", "en", 2),
        ('"Keys expire." [1] "They rotate." [2]', "en", 2),
    ],
)
def test_a_sentence_ends_neither_at_an_abbreviation_nor_inside_a_name(text: str, language: str, count: int) -> None:
    assert len(sentence_spans(text, language)) == count


def test_a_citation_is_not_a_number_even_as_the_label_of_a_link() -> None:
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


PAGE = (
    "On call\nThe primary answers within 5 minutes. Pay is approx. Fifty euros a week. It begins on 3. Mai at noon.\n"
    "- Keys expire after 90 days\n2. Keys are never shared.\n\nIs the limit 5 MB? The build takes 5.5 hours.\n"
    "Silences are allowed\nonly at night. 鍵は90日で失効します。共有は禁止です。"
)


def test_a_sentence_of_the_source_counts_as_a_quotation() -> None:
    for claim in [
        "The primary answers within 5 minutes [1].", "The primary answers within 5 minutes. [1]",
        "*The primary answers within 5 minutes [1].*", "Keys expire after 90 days [1, 2]",
        "Keys are never shared [1][2].", "The build takes 5.5 hours [1].", "鍵は90日で失効します[1]。",
    ]:  # fmt: skip
        assert is_verbatim_sentence(claim, ["Something else.", PAGE])


def test_a_part_of_a_sentence_is_not_a_quotation() -> None:
    for claim in [
        "The primary answers within 15 minutes [1].", "the primary answers within 5 minutes [1].",
        "primary answers within 5 minutes [1].", "The primary answers within 5 [1].", "Fifty euros a week [1].",
        "It begins on 3 [1].", "Is the limit 5 MB? [1]", "Is the limit 5 MB [1].", "The build takes 5 [1].",
        "Silences are allowed [1].", "only at night [1].", "On call [1]", "[1]", "",
    ]:  # fmt: skip
        assert not is_verbatim_sentence(claim, ["Something else.", PAGE])


def test_a_quotation_is_found_after_the_same_words_inside_another_sentence() -> None:
    assert is_verbatim_sentence("Keys expire daily.", ["All Keys expire daily. Keys expire daily. Keys last."])


ROW = "Run run7 --check first [1] | Keys expire after 90 days [1] | page (https://docs.example/p)"


def test_a_row_of_sentences_counts_as_a_quotation() -> None:
    texts = ["Run `run7 --check` first. See below.", PAGE.replace("- Keys", "Keys")]
    assert is_verbatim_sentence(ROW, texts, {"https://docs.example/p"}.__contains__)
    assert is_verbatim_sentence("| Keys are never shared [1] | Keys expire after 90 days |", [PAGE])


def test_a_row_with_anything_else_is_not_a_quotation() -> None:
    for row in [
        ROW.replace("90", "91"),
        ROW.replace("docs", "evil"),
        ROW.replace("page (", "refunds are always free ("),
        ROW.replace("page (", "page 5 ("),
        ROW.replace("first", "first | no"),
        "page (https://docs.example/p) | page (https://docs.example/p)",
        "|",
    ]:
        texts = ["Run `run7 --check` first. See below.", PAGE]
        assert not is_verbatim_sentence(row, texts, {"https://docs.example/p"}.__contains__)


@given(st.text(alphabet="ab .\n[1]*?", max_size=60), st.text(alphabet="ab .\n*?", max_size=200))
def test_a_verbatim_sentence_is_in_the_source(claim: str, source: str) -> None:
    assert (
        not is_verbatim_sentence(claim, [source]) or claim.replace("[1]", " ").strip(" \n\t*_~.").split()[0] in source
    )


def test_many_repetitions_are_cheap_to_check() -> None:
    assert not is_verbatim_sentence("aaaaaaaaaa", ["a" * 1_000_000])


PLANS = """The plans:

| Plan | Requests per minute | Price | Notes |
| :--- | ---: | --- | --- |
| Team | 600 | 20 € | has a *seat* |
| R&D | 60 | | |
| Call<br>centre | 90<br/>00 | | |

Keys are made for one service and one environment, and expire after
90 days. Ask the platform team.
<ul><li>The office opens at eight.</li><li>It closes at six.<br>The gate does not.</li></ul>
"""


def test_a_row_in_words_and_a_sentence_over_two_lines_are_quotations() -> None:
    def settled_by(*claims: str) -> list[str]:
        text = "\n".join(f"- {claim} [1]" for claim in claims)
        source = Source(id=1, title="Plans", url="", text=PLANS)
        return [claim.settled_by for claim in check(Draft(text=text, sources=(source,), has_judge=True)).claims]

    assert set(
        settled_by(
            "Plan: Team; Requests per minute: 600; Price: 20 €; Notes: has a seat",
            "*Plan: R&amp;D; Requests per minute: 60*",
            "Keys are made for one service and one environment, and expire after 90 days.",
            "Plan: Call centre; Requests per minute: 90 00",
            "The office opens at eight.",
            "It closes at six.",
            "The gate does not.",
        )
    ) == {"quotation"}
    others = (
        "Plan: Team; Requests per minute: 60",
        "Plan: Team; Requests per minute: 600; Price: 20 €",
        "Plan: R&amp;D; Price: 60",
        "Keys are made for one service and one environment.",
    )
    assert "quotation" not in settled_by(*others)


ROUTES = """## From the north
Take the red tram. It needs an hour.

Take the blue bus. It needs *ten* minutes.

- Cabs wait. Pay in cash."""


@pytest.mark.parametrize(
    ("answer", "quoted"),
    [
        ("Take the red tram [1]. It needs an hour [1].", 2),
        ("Take the red tram [1]. It needs ten minutes [1].", 1),
        ("It needs ten minutes [1].", 0),
        ("- Cabs wait. [1]\n- Take the blue bus. [1]", 2),
        ("- Cabs wait. Pay in cash. [1]", 2),
        ("From the north:\n- Cabs wait. [1]", 1),
    ],
)
def test_the_judge_decides_about_a_quotation_without_the_sentence_before_it(answer: str, quoted: int) -> None:
    """A sentence may be right and its subject another: spliced quotations of two routes passed in a recorded try."""
    claims = check(
        Draft(text=answer, question="Which way?", sources=(Source(id=1, title="Routes", text=ROUTES),), has_judge=True)
    ).claims
    assert [claim.settled_by for claim in claims].count("quotation") == quoted
