"""The chunks that Slack gets: inside the limits, nothing lost, nothing broken."""

import html
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verification.markup.chunks import group_messages, split_chunks
from verification.markup.mrkdwn import repair
from verification.rules.writing import violations
from verification.types import Dialect, Source

SOURCES = (
    Source(id=1, title="One", url="https://s.example/a_(b)?x=1&y=2"),
    Source(id=2, title="Two"),
    Source(id=3, title="Three", url="https://s.example/c|d"),
    Source(id=1, title="Again", url="https://other.example/"),
    Source(id=4, title="Odd", url="notes/x.md"),
)
PIECE_LIST = (
    "word sentence. *bold* _it_ `code <b>` `[1]` <https://l.m/n|lab> [1] [2] [1][3] [1,3] &amp; 2**10 漢字。 ! ? • 1."
    " # - | :"
)
PIECES = PIECE_LIST.split(" ")
TEXTS = st.lists(
    st.sampled_from(PIECES)
    | st.sampled_from(("\n", "\n\n", "\n• ", "\n```\ncode & <x>\nmore\n```\n", "\n*Title*\n\n", "\nIntro:\n\n"))
    | st.integers(0, 99).map(lambda number: f"w{number}q"),
    max_size=60,
).map(" ".join)


def words(texts: tuple[str, ...]) -> list[str]:
    return re.findall(r"w\d+q", "\n".join(texts))


@settings(max_examples=200, deadline=None)
@given(text=TEXTS, limit=st.sampled_from((60, 150, 400, 3000)))
def test_chunks_fit_and_lose_no_word(text: str, limit: int) -> None:
    text, _ = repair(text)
    chunks = split_chunks(text, SOURCES, "mrkdwn", limit)
    assert all(0 < len(chunk) <= limit for chunk in chunks)
    assert words(chunks) == words((text,))


@settings(max_examples=200, deadline=None)
@given(text=TEXTS, limit=st.sampled_from((150, 400, 3000)))
def test_every_chunk_satisfies_the_form_rules(text: str, limit: int) -> None:
    text, _ = repair(text)
    for chunk in split_chunks(text, SOURCES, "mrkdwn", limit):
        assert violations(chunk, limit=limit) == ()


@settings(max_examples=100, deadline=None)
@given(text=TEXTS)
def test_splitting_split_text_changes_nothing(text: str) -> None:
    chunks = split_chunks(repair(text)[0], SOURCES)
    assert tuple(part for chunk in chunks for part in split_chunks(chunk, SOURCES)) == chunks


def test_citations_become_links_but_not_in_code() -> None:
    text = "A [1], b [2], c [1][3], d [1, 3] e [9] `[1]` <https://x.y|[1]>\n```\n[1]\n```"
    one, three = "<https://s.example/a_(b)?x=1&y=2|[1]>", "<https://s.example/c%7Cd|[3]>"
    expected = f"A {one}, b [2], c {one}{three}, d {one}{three} e [9] `[1]` <https://x.y|[1]>\n```\n[1]\n```"
    assert split_chunks(text, SOURCES) == (expected,)


def test_citations_become_markdown_links() -> None:
    text = "A [1] b [2] [label 1](https://x.y) [\\[1\\]](https://x.y) `[1]`"
    (chunk,) = split_chunks(text, SOURCES, "markdown", 12_000)
    link = "[\\[1\\]](https://s.example/a_%28b%29?x=1&y=2)"
    assert chunk == f"A {link} b [2] [label 1](https://x.y) [\\[1\\]](https://x.y) `[1]`"
    assert violations(chunk, "markdown", limit=12_000) == ()


def test_code_is_escaped_for_slack_once() -> None:
    assert split_chunks("`a < b && c &lt; d`\n```\nx > y\n```") == (
        "`a &lt; b &amp;&amp; c &lt; d`\n```\nx &gt; y\n```",
    )
    assert split_chunks("`a < b`\n```\nx > y\n```", (), "markdown") == ("`a < b`\n```\nx > y\n```",)


def test_a_long_fence_is_closed_and_opened_again() -> None:
    code = "\n".join(f"line {number} <tag> [1]" for number in range(300))
    chunks = split_chunks(f"Before.\n\n```\n{code}\n```\n\nAfter.", SOURCES)
    assert len(chunks) > 2
    fenced = [chunk for chunk in chunks if "line" in chunk]
    assert all(chunk.count("```") == 2 for chunk in fenced)
    joined = "\n".join(re.sub(r"^```\n|\n```$", "", re.sub(r"^Before\.\n\n|\n\nAfter\.$", "", c)) for c in fenced)
    assert html.unescape(joined) == code


def test_long_table_repeats_its_header() -> None:
    rows = "\n".join(f"| service-{number} | {number} |" for number in range(200))
    text, _ = repair(f"| Name | Count |\n|---|--:|\n{rows}")
    chunks = split_chunks(text, (), "mrkdwn", 800)
    assert len(chunks) > 3
    header = chunks[0].split("\n")[1:3]
    assert all(chunk.split("\n")[1:3] == header for chunk in chunks)
    assert sum(chunk.count("service-") for chunk in chunks) == 200


def test_long_markdown_table_repeats_its_header() -> None:
    rows = "\n".join(f"| service-{number} | {number} |" for number in range(100))
    chunks = split_chunks(f"| Name | Count |\n|---|--:|\n{rows}", (), "markdown", 600)
    assert len(chunks) > 2
    assert all(chunk.startswith("| Name | Count |\n|---|--:|\n| service-") for chunk in chunks)


def test_a_title_stays_with_the_text_it_introduces() -> None:
    chunks = split_chunks(f"{'a ' * 60}.\n\n*Title*\n\n{'b ' * 60}.", (), "mrkdwn", 170)
    assert [chunk[:7] for chunk in chunks] == ["a a a a", "*Title*"]
    chunks = split_chunks(f"{'a ' * 60}.\n\n*a footnote\n\n{'b ' * 60}.", (), "mrkdwn", 170)
    assert [chunk[:7] for chunk in chunks] == ["a a a a", "b b b b"]


def test_a_link_is_never_cut() -> None:
    link = "<https://x.y/" + "p" * 60 + "|a label with words>"
    for pad in range(120):
        for chunk in split_chunks("w " * pad + link + " end" * 20, (), "mrkdwn", 120):
            assert chunk.count("<") == chunk.count(">") == chunk.count("|a label with words>")


def test_a_line_without_spaces_is_still_cut() -> None:
    chunks = split_chunks("漢" * 7000)
    assert [len(chunk) for chunk in chunks] == [3000, 3000, 1000]
    assert [len(chunk) for chunk in split_chunks(f"```\n{'x' * 7000}\n```")] == [3000, 3000, 1024]
    (code, *rest) = split_chunks("```\n" + "x<" * 3000 + "\n```")
    assert len(code) <= 3000
    assert html.unescape("".join(part[4:-4] for part in (code, *rest))) == "x<" * 3000


def test_a_cut_creates_no_accidental_markup() -> None:
    for pad in range(40, 70):
        for chunk in split_chunks("w" * pad + " # 5 is not a title " + "x" * 50, (), "mrkdwn", 72):
            assert violations(chunk) == ()


@pytest.mark.parametrize(("limit", "lines"), [(44, 9), (43, 8)])
def test_each_chunk_has_as_many_lines_as_fit(limit: int, lines: int) -> None:
    chunks = split_chunks("\n".join(["abcd"] * 40), (), "mrkdwn", limit)
    assert {chunk.count("abcd") for chunk in chunks[:-1]} == {lines}


def test_a_sentence_that_ends_early_does_not_make_a_short_chunk() -> None:
    first, *_ = split_chunks("Ab. " + "word " * 40, (), "mrkdwn", 60)
    assert 55 <= len(first) <= 60


def test_adjacent_tokens_are_cut_between_each_other() -> None:
    token = "<https://a.test/1|one>"
    assert split_chunks(token * 6, (), "mrkdwn", 50) == (token * 2,) * 3
    cited = "[1, 2, 3, 4, 5]"
    assert split_chunks(cited * 6, (), "mrkdwn", 50) == (cited * 3,) * 2
    code = "漢" * 54 + "`code`"
    assert split_chunks(code + "字" * 30, (), "mrkdwn", 60) == (code, "字" * 30)


@pytest.mark.parametrize(
    ("atom", "dialect"),
    [
        ("[1, 2, 3]", "mrkdwn"),
        ("[a label with words](https://x.y/p)", "markdown"),
        ("[this &amp; that](https://x.y/p)", "markdown"),
        ("https://x.y/" + "p" * 20, "mrkdwn"),
        ("&amp;", "mrkdwn"),
    ],
)
def test_citations_links_addresses_and_escapes_stay_whole(atom: str, dialect: Dialect) -> None:
    for pad in range(60):
        chunks = split_chunks("w" * pad + f" {atom}" * 3 + "漢" * 60, (), dialect, 60)
        assert sum(chunk.count(atom) for chunk in chunks) == 3, pad
        assert sum(chunk.count(atom) for chunk in split_chunks("漢" * pad + f"{atom} end", (), dialect, 60)) == 1, pad


@pytest.mark.parametrize(("ticks", "opens", "info"), [(8, "`" * 8, "abcdefgh"), (9, "```", "abcdefgh")])
def test_long_ticks_leave_room_for_the_code(ticks: int, opens: str, info: str) -> None:
    fence = "`" * ticks
    first, second, *_ = split_chunks(f"{fence}{'abcdefghij' * 2}\n{'x' * 200}\n{fence}", (), "markdown", 64)
    assert first.startswith(f"{opens}{info}\nx")
    assert len(first) == 64 == len(second)


def test_a_table_whose_header_is_longer_than_a_chunk_is_still_cut() -> None:
    header, rule = " | ".join(["a long title"] * 8), "-+-".join(["-" * 12] * 8)
    chunks = split_chunks(f"```\n{header}\n{rule}\none | two\n```", (), "mrkdwn", 60)
    assert all(len(chunk) <= 60 for chunk in chunks)
    assert "one | two" in chunks[-1]


@pytest.mark.parametrize("text", ["", " ", "\n\n \n"])
def test_an_empty_text_gives_no_chunk(text: str) -> None:
    assert split_chunks(text) == ()


def test_short_text_is_one_chunk_unchanged() -> None:
    text = "*Title*\n\n• a\n    • b\n\n```\nx\n```\nend"
    assert split_chunks(text) == (text,)


def test_messages_have_at_most_45_blocks_and_12000_characters() -> None:
    groups = group_messages(tuple("x" for _ in range(100)))
    assert [len(group) for group in groups] == [45, 45, 10]
    groups = group_messages(("x" * 3000,) * 9)
    assert [len(group) for group in groups] == [4, 4, 1]
    assert group_messages(("x" * 13_000, "y")) == (("x" * 13_000,), ("y",))
    assert [len(group) for group in group_messages(("x" * 12_000, "y" * 6000, "z" * 6001))] == [1, 1, 1]
    assert [len(group) for group in group_messages(("x" * 12_000, "y" * 6000, "z" * 6000))] == [1, 2]
    assert group_messages(()) == ()


@settings(max_examples=100, deadline=None)
@given(sizes=st.lists(st.integers(1, 3000), max_size=120))
def test_messages_keep_every_chunk_in_order(sizes: list[int]) -> None:
    chunks = tuple("x" * size for size in sizes)
    groups = group_messages(chunks)
    assert tuple(chunk for group in groups for chunk in group) == chunks
    assert all(len(group) <= 45 and sum(map(len, group)) <= 12_000 for group in groups)


def test_a_bare_url_is_a_link_but_a_host_or_channel_is_a_word() -> None:
    """Slack is told to take blocks verbatim: it would make links of hosts and channels, and calls of names."""
    text = "See https://a.example/x_y?b=1&amp;c=2. Ask in #help or @anna, at wiki.example/x (`https://b.example`)."
    shown = text.replace("https://a.example/x_y?b=1&amp;c=2", "<https://a.example/x_y?b=1&amp;c=2>")
    assert split_chunks(text) == (shown,)
    assert split_chunks(shown) == (shown,)
    assert split_chunks(text, dialect="markdown") == (text,)
