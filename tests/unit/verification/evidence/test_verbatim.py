"""A claim that is a whole sentence of its source needs no closer look; anything less does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verification.check import check
from verification.evidence.verbatim import is_verbatim_sentence
from verification.types import Draft, Source

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
    ],
)
def test_the_judge_decides_about_a_quotation_without_the_sentence_before_it(answer: str, quoted: int) -> None:
    """A sentence may be right and its subject another: spliced quotations of two routes passed in a recorded try."""
    claims = check(
        Draft(text=answer, question="Which way?", sources=(Source(id=1, title="Routes", text=ROUTES),), has_judge=True)
    ).claims
    assert [claim.settled_by for claim in claims].count("quotation") == quoted
