"""Verified mrkdwn as rich text: the same words, links and code, in Slack's own lists and code blocks."""

import re
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.delivery.rich_text import Block, rich_text
from verification.markup.chunks import split_chunks
from verification.markup.mrkdwn import repair, strip_mrkdwn
from verification.markup.scanner import TOKEN, fences, segments
from verification.types import Source

CITED = "<https://docs.example/a|[1]>"
OTHER = "<https://docs.example/b|[2]>"
SOURCES = tuple(Source(id=n, title=f"T{n}", url=f"https://docs.example/{n}", text="") for n in (1, 2))

words = st.sampled_from(["deploy", "3", "a_b", "2*3", "R&D", "<b>", "naïve", "「重要」", "x.py", "~5", "[1]", "[2]"])
spans = st.sampled_from(
    ["{}", "**{}**", "_{}_", "~~{}~~", "***{}***", "`{}`", "[{}](https://docs.example/p?a=1&copy=2)"]
)
phrases = st.lists(st.tuples(spans, words), min_size=1, max_size=5).map(
    lambda found: " ".join(span.format(word) for span, word in found)
)
lines = st.tuples(st.sampled_from(["", "- ", "1. ", "3. ", "    - ", "> ", "# ", "   "]), phrases).map("".join)
drafts = st.lists(
    lines | st.sampled_from(["", "```py\nif a < b:\n    *go*\n```", "| A | B |\n|---|---|\n| 1 | `x` |"]), max_size=8
).map("\n".join)


def leaves(block: Block) -> Iterator[dict[str, Any]]:
    for one in block["elements"]:
        yield from leaves(one) if "elements" in one else (one,)


def shown(block: Block) -> list[str]:
    """The words that a reader sees, without marks, bullets and numbers of items."""
    parts = [
        "".join(one["text"] for one in leaves(item)) for element in block["elements"] for item in items_of(element)
    ]
    return bare("\n".join(parts))


def items_of(element: Block) -> list[Block]:
    return element["elements"] if element["type"] == "rich_text_list" else [element]


def bare(text: str) -> list[str]:
    text = re.sub(r"(?m)^ *(?:[•◦▪>-]|\d+[.)]) +", "", text)
    return re.sub(r"\[\d\]|[*_~`\u200b]", "", text).split()


@given(drafts)
def test_words_links_and_code_are_those_of_the_chunk(draft: str) -> None:
    text, _ = repair(draft)
    for chunk in split_chunks(text, SOURCES):
        found = list(leaves(block := rich_text(chunk)))
        assert shown(block) == bare(strip_mrkdwn(chunk))
        targets = {token[0][1:-1].partition("|")[0] for token in TOKEN.finditer(chunk) if is_outside_code(chunk, token)}
        assert {one["url"] for one in found if one["type"] == "link"} == {url.replace("&amp;", "&") for url in targets}
        code = [chunk[s.start : s.end].strip("`") for s in segments(chunk) if s.kind == "code"]
        code += [chunk[fence.body : fence.body_end].strip("\n") for fence in fences(chunk)]
        inside = [one["text"] for one in found if one.get("style", {}).get("code")]
        inside += [leaf["text"] for one in block["elements"] if "preformatted" in one["type"] for leaf in leaves(one)]
        assert sorted(inside) == sorted(filter(None, map(unescape, code)))


def is_outside_code(chunk: str, token: re.Match[str]) -> bool:
    return any(s.kind == "token" and s.start == token.start() for s in segments(chunk))


def unescape(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def lists(chunk: str) -> list[tuple[str, int, int, list[str]]]:
    return [
        (
            one["style"],
            one["indent"],
            one.get("offset", 0),
            ["".join(leaf["text"] for leaf in leaves(item)) for item in one["elements"]],
        )
        for one in rich_text(chunk)["elements"]
        if one["type"] == "rich_text_list"
    ]


def test_lists_keep_their_nesting_and_their_numbers() -> None:
    chunk = "1. One\n   goes on\n    • inner\n    • second\n2. Two\n\n• other"
    assert lists(chunk) == [
        ("ordered", 0, 0, ["One\ngoes on"]),
        ("bullet", 1, 0, ["inner", "second"]),
        ("ordered", 0, 1, ["Two"]),
        ("bullet", 0, 0, ["other"]),
    ]


def test_a_list_numbered_by_ones_counts() -> None:
    assert lists("1. a\n1. b\n1. c") == [("ordered", 0, 0, ["a", "b", "c"])]


def test_a_heading_and_nested_marks_become_styles() -> None:
    found = list(leaves(rich_text("*Steps*\n\n_*both*_ and `a*b`, snake_case 2 * 3")))
    assert [(one["text"], sorted(one.get("style", {}))) for one in found] == [
        ("Steps", ["bold"]),
        ("\n\n", []),
        ("both", ["bold", "italic"]),
        (" and ", []),
        ("a*b", ["code"]),
        (", snake_case 2 * 3", []),
    ]


def test_one_citation_is_shown_for_a_list_or_paragraph_that_rests_on_one_source() -> None:
    same = f"It is 3 {CITED}. It stays {CITED}.\n\n• a {CITED}\n• b {CITED}"
    texts = "".join(one["text"] for one in leaves(rich_text(same)))
    assert texts == "It is 3. It stays [1].ab [1]"
    for kept in (f"It is 3 {CITED}. It is 4 {OTHER}.", f"• a {CITED}\n• b\n• c {CITED}"):
        assert sum(one["type"] == "link" for one in leaves(rich_text(kept))) == 2
