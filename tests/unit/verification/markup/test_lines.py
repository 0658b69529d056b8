"""What each line of an answer is: code, tables as aligned text, and the scanner below them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verification.markup.lines import (
    column_alignments,
    display_width,
    draw_table,
    drawn_rows,
    ends_in_colon,
    flatten_cell,
    is_delimiter,
    is_drawn,
    is_row,
    lines,
    split_cells,
)
from verification.markup.mrkdwn import repair
from verification.markup.scanner import code_spans, fences, segments


def test_a_text_is_split_into_its_lines() -> None:
    for text, expected in [
        ("*Title* [1]\nText", [("heading", "*Title* [1]"), ("text", "Text")]),
        ("One\nruns on\n\nTwo", [("text", "One\nruns on"), ("text", "Two")]),
        ("Steps:\n12. go", [("text", "Steps:"), ("item", "go")]),
        ("| a | b |\n|---|---|\n| 1 | 2 |", [("head", "| a | b |"), ("rule", "|---|---|"), ("row", "| 1 | 2 |")]),
        ("```\na = 1\n```", [("fence", "\na = 1\n```")]),
        ("Run:\n```make test```", [("text", "Run:"), ("fence", "make test```")]),
        (
            "```\na | b\n--+--\n1 | 2\n```",
            [("frame", "```"), ("head", "a | b"), ("rule", "--+--"), ("row", "1 | 2"), ("frame", "```")],
        ),
    ]:
        found = [(line.kind, text[line.content : line.end]) for line in lines(text) if line.kind != "blank"]
        assert found == expected


def test_a_citation_after_the_colon_changes_nothing() -> None:
    assert ends_in_colon("*The steps:* [1]")
    assert not ends_in_colon("At 10:00 it starts")
    assert not ends_in_colon("Renewal is free :tada:")
    assert ends_in_colon("The steps :tada::")
    assert ends_in_colon("From 10:30:")


@given(st.text(alphabet="ab.1 \n-•|*#`:。[]~>", max_size=120))
def test_lines_are_in_order_and_cover_the_visible_text(text: str) -> None:
    last = 0
    for line in lines(text):
        assert last <= line.start <= line.content <= max(line.content, line.end) <= len(text)
        assert not text[last : line.start].strip()
        last = line.end
    assert not text[last:].strip()


def test_columns_line_up_with_wide_characters() -> None:
    text = draw_table([["漢字", "n"], ["a", "10"]], "<>", headed=True)
    assert text == "漢字 |  n\n-----+---\na    | 10"
    assert {display_width(line) for line in text.split("\n")} == {9}


def test_alignments_and_ragged_rows_are_read() -> None:
    text = draw_table([["left", "mid", "right"], ["a", "b"], ["c", "d", "e", "f"]], "<^>", headed=True)
    assert text.split("\n") == ["left | mid | right", "-----+-----+-------+--", "a    |  b", "c    |  d  |     e | f"]


def test_a_drawn_table_is_recognised_again() -> None:
    for rows in ([["a", "b"], ["1", "2"]], [["only"], ["x"]], [["x"], ["y"]]):
        text = draw_table(rows, "", headed=True)
        assert is_drawn(text)
        assert drawn_rows(text) == rows
    assert not is_drawn("a | b\nc | d")
    assert not is_drawn("one line")


def test_cells_keep_pipes_in_code_in_tokens_and_escaped() -> None:
    assert split_cells("| `a|b` | <https://x.y|l> | c\\|d |") == ["`a|b`", "<https://x.y|l>", "c|d"]
    assert split_cells("a | b") == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*b* _i_ ~s~ `c_d_`", "b i s c_d_"),
        ("<https://x.y|l> <https://x.y>", "l (https://x.y) https://x.y"),
        ("a &amp; b", "a & b"),
        ("2*3*4 *.py", "2*3*4 *.py"),
    ],
)
def test_cells_are_plain_text(text: str, expected: str) -> None:
    assert flatten_cell(text) == expected


def test_delimiters_and_rows_of_a_table_are_recognised() -> None:
    assert is_delimiter("|---|:-:|")
    assert is_delimiter("--- | ---")
    assert not is_delimiter("---")
    assert not is_delimiter("| a | - |")
    assert is_row("| a | b |")
    assert is_row("| | b |")
    assert is_row("| a | |")
    for text in ("|x| + |y|", "| a or b", "a or b |", "a | b", "| a |"):
        assert not is_row(text)
    assert column_alignments("|:-:|--:|:--|---|") == "^><<"


def test_control_characters_have_a_width() -> None:
    assert display_width("漢\x07") == 2
    assert display_width("\u200b") == 0


def test_code_ticks_in_a_cell_do_not_close_the_block() -> None:
    text, _ = repair("| a |\n|---|\n| ``x ``` y`` |")
    assert text.count("```") == 2


def segment_kinds(text: str) -> list[tuple[str, str]]:
    return [(part.kind, text[part.start : part.end]) for part in segments(text)]


@settings(max_examples=300, deadline=None)
@given(text=st.text(alphabet="`~<>|\n a>-1.@U:/h", max_size=80) | st.text(max_size=80))
def test_segments_cover_the_text_in_order(text: str) -> None:
    parts = segments(text)
    assert "".join(text[part.start : part.end] for part in parts) == text
    assert all(part.start < part.end for part in parts)


def test_code_comes_before_tokens_and_tokens_before_text() -> None:
    assert segment_kinds("a `<https://x.y>` <https://x.y|l `m`> b") == [
        ("text", "a "),
        ("code", "`<https://x.y>`"),
        ("text", " "),
        ("token", "<https://x.y|l `m`>"),
        ("text", " b"),
    ]


def test_slack_tokens_are_tokens() -> None:
    for token in [
        "<@U123ABC>", "<@W123|name>", "<#C123ABC|general>", "<!here>", "<!channel|channel>", "<!subteam^S123|@ops>",
        "<!date^1392734382^{date}^https://x.y|Feb>", "<https://x.y/z?a=1&b=2>", "<mailto:a@b.c|Mail>", "<tel:+4912>",
    ]:  # fmt: skip
        assert segment_kinds(token) == [("token", token)]


def test_other_angle_brackets_are_plain_text() -> None:
    for text in ["<foo>", "<std::vector>", "<https://x y>", "< https://x.y>", "<!unknown>", "<javascript:x>"]:
        assert segment_kinds(text) == [("text", text)]


def test_inline_code_never_crosses_a_line_ending() -> None:
    assert segment_kinds("a `b\nc` d") == [("text", "a `b\nc` d")]


def test_code_spans_close_with_a_run_of_the_same_length() -> None:
    assert segment_kinds("``a`b`` `c``d`") == [("code", "``a`b``"), ("text", " "), ("code", "`c``d`")]
    assert code_spans("`a` b `c", 0, 8) == {0: 3, 2: 7}
    assert code_spans("`a`\n`", 0, 5) == {0: 3}


def test_fences_are_recognised() -> None:
    for text, code, closed, quoted in [
        ("```\na\nb\n```", "a\nb", True, False),
        ("```py\na\n```\nrest", "a", True, False),
        ("~~~\na ``` b\n~~~", "a ``` b", True, False),
        ("````\n```\n````", "```", True, False),
        ("```\na", "a", False, False),
        ("```", "", False, False),
        ("```\n```", "", True, False),
        ("  ```\n  a\n  ```", "  a", True, False),
        ("- ```\n  a\n  ```", "  a", True, False),
        ("> ```\n> a\n> ```", "> a", True, True),
        ("> ```\n> a\nb", "> a", False, True),
        ("```a\nb```", "b", True, False),
        ("x ```a\nb``` c", "a\nb", True, False),
        ("```\n> ```\n```", "> ```", True, False),
        ("x ```\na```\nc\n```", "a```\nc", True, False),
    ]:
        (fence,) = fences(text)
        assert text[fence.body : fence.body_end] == code
        assert (fence.closed, fence.quoted) == (closed, quoted)


def test_text_without_a_fence_has_none() -> None:
    for text in ["a ``` b", "a ```b``` c", "```a``` b\nc", "``\na\n``", "a ~~~\nb\n"]:
        assert fences(text) == []


def test_ticks_in_a_line_do_not_swallow_a_real_fence() -> None:
    text = "Use ``` to open.\n\n```\ncode\n```"
    (fence,) = fences(text)
    assert text[fence.start : fence.end] == "```\ncode\n```"
