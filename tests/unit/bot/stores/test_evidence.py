"""The passages of a claim: only lines that its verdict names, a table row with the table's head."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.stores.evidence import MAX_PASSAGES, passages_of
from verification.judgement import source_lines
from verification.types import Claim, Source

TABLE = "Limits by plan\n\n| Plan | Requests | Price |\n|---|---|---|\n| Free | 60 | 0 |\n| Pro | 600 | 9 |\n"
POLICY = Source(
    id=2,
    title="Leave",
    updated_at="2026-11-01",
    text="Parental leave is six weeks.\n\nAfter six years notice is three months.\n\nAsk\nyour lead about it.",
)
PLANS = Source(id=1, title="Plans", text=TABLE)


def claim(text: str, **fields: Any) -> Claim:
    return Claim(text=text, start=0, end=len(text), **{"cited": (2,), "settled_by": "judge", **fields})


def shown(one: Claim) -> list[tuple[int, str]]:
    return [(passage.source, passage.text) for passage in passages_of(one, (PLANS, POLICY))]


def test_the_judged_line_is_shown_and_not_the_one_that_shares_more_words() -> None:
    one = claim("Six weeks or years of leave: notice is 3 months [2].", lines=((2, 2),))
    assert shown(one) == [(2, "After six years notice is three months.")]
    (passage,) = passages_of(one, (POLICY,))
    assert [passage.text[start:end] for start, end in passage.marks] == ["six years notice", "months"]


def test_a_table_row_comes_with_the_head_of_its_table() -> None:
    one = claim("Pro costs 9 [1].", cited=(1,), lines=((1, 5),))
    assert shown(one) == [(1, "| Plan | Requests | Price |\n| Pro | 600 | 9 |")]
    (passage,) = passages_of(one, (PLANS,))
    assert [passage.text[start:end] for start, end in passage.marks] == ["Pro", "9"]


@pytest.mark.parametrize(
    ("quoted", "cited", "place"),
    [
        ("After six years *notice* is three months [2].", (2,), (2, "After six years notice is three months.")),
        ("Ask your lead about it. [2]", (2,), (2, "Ask\nyour lead about it.")),
        ("Pro | 600 | 9", (1,), (1, "| Plan | Requests | Price |\n| Pro | 600 | 9 |")),
    ],
)
def test_a_quotation_is_shown_in_its_place(quoted: str, cited: tuple[int, ...], place: tuple[int, str]) -> None:
    assert shown(claim(quoted, cited=cited, settled_by="quotation")) == [place]


def test_lines_of_two_sources_are_two_passages_and_a_date_is_the_titles_line() -> None:
    one = claim("Both [1][2].", cited=(1, 2), lines=((2, 0), (1, 4), (1, 9), (7, 1)))
    assert [source for source, _ in shown(one)] == [1, 2]
    assert shown(one)[1] == (2, "Leave, updated 2026-11-01")


def test_a_passage_is_shown_as_a_page_shows_it_and_cut_between_words() -> None:
    text = "- A key is [made\n  here](https://x.example/k) **once**.\n- Ask [Ann](mailto:ann@x.example) first.\n\n"
    text += "The list of all regions in which a key may be used is long, so it comes in\ntwo parts that need time."
    page = Source(id=2, title="Keys", text=text)
    quoted, judged = claim("Ask Ann first [2].", settled_by="quotation"), claim("It is long [2].", lines=((2, 4),))
    assert [one.text for one in passages_of(quoted, (page,))] == ["- Ask Ann first."]
    assert [one.text for one in passages_of(judged, (page,))] == [text.partition("\n\n")[2].replace("\n", " ")]
    words = " ".join(f"word{number}" for number in range(200))
    (cut,) = passages_of(claim("Here is word150 [2].", lines=((2, 1),)), (replace(page, text=words),))
    assert set(cut.text.strip("…").split()) <= set(words.split())
    assert (cut.text[0], cut.text[-1]) == ("…", "…")
    assert [cut.text[start:end] for start, end in cut.marks] == ["word150"]


@pytest.mark.parametrize("settled_by", ["nobody", "rule"])
def test_a_claim_that_no_one_read_has_no_passage(settled_by: str) -> None:
    assert shown(claim("After six years notice is three months [2].", settled_by=settled_by)) == []


TEXTS = st.lists(st.sampled_from([*TABLE.split("\n"), *POLICY.text.split("\n"), "x" * 900]), max_size=9).map("\n".join)


@given(
    st.lists(TEXTS, min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 9)), max_size=9),
    st.sampled_from(["judge", "quotation", "rule", "nobody"]),
    st.sampled_from(["Pro costs 9.", "After six years notice is three months.", "| Free | 60 | 0 |"]),
)
def test_every_passage_is_one_that_the_verdict_names(
    texts: list[str], lines: list[tuple[int, int]], settled_by: Any, words: str
) -> None:
    sources = tuple(Source(id=n, title=f"T{n}", text=text) for n, text in enumerate(texts, 1))
    pages = {source.id: source_lines(source) for source in sources}
    one = replace(claim(words, cited=(1,), settled_by=settled_by), lines=tuple(lines))
    named = {(number, pages[number][line]) for number, line in lines if 0 <= line < len(pages.get(number, ()))}
    found = passages_of(one, sources)
    assert len(found) <= MAX_PASSAGES
    for passage in found:
        for part in passage.text.strip("…").split("\n"):
            is_named = any(part in line for number, line in named if number == passage.source)
            is_head = part == "| Plan | Requests | Price |"
            is_quoted = settled_by == "quotation" and part in "\n".join(pages[1])
            assert is_quoted or (settled_by == "judge" and (is_named or is_head))
