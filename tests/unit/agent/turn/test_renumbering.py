"""Citations in the order of the text: shown numbers count from 1, independent of those in the prompt."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.turn.renumbering import citation_order, renumber
from verification.rules.citations import citations
from verification.types import Source

SOURCES = tuple(Source(id=number, title=str(number)) for number in range(1, 15))
TABLE = "```\nRegion | Limit\n-------+------\nEU     | 600 [9]\n```"


def test_citations_are_numbered_in_the_order_of_the_text() -> None:
    text = f"Seven [12][3]; `[12]` is code.\n\n{TABLE}\n\nAgain [3]."
    order = citation_order(text, SOURCES)
    assert order == {12: 1, 3: 2, 9: 3}
    shown = renumber(text, order)
    assert shown == f"Seven [1][2]; `[12]` is code.\n\n{TABLE.replace('[9]', '[3]')}\n\nAgain [2]."
    streamed = r"Seven [\[12\]](https://x.example/a) and [3], not `[\[3\]](x)`"
    assert renumber(streamed, order) == r"Seven [\[1\]](https://x.example/a) and [2], not `[\[3\]](x)`"


@given(st.lists(st.sampled_from(["It is so [4].", "Or [2][11] not.", "`[7]`", "Well\n\n", "[3]"]), max_size=9))
def test_beginning_has_the_numbers_of_the_whole(parts: list[str]) -> None:
    text = " ".join(parts)
    order = citation_order(text, SOURCES)
    shown = renumber(text, order)
    numbers = list(dict.fromkeys(number for citation in citations(shown) for number in citation.ids))
    assert numbers == list(range(1, len(order) + 1))
    for end in range(len(parts)):
        begun = " ".join(parts[:end])
        assert shown.startswith(renumber(begun, citation_order(begun, SOURCES)))
