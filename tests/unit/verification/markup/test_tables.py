"""Tables as aligned monospaced text."""

import pytest

from verification.markup.lines import (
    column_alignments,
    display_width,
    draw_table,
    drawn_rows,
    flatten_cell,
    is_delimiter,
    is_drawn,
    is_row,
    split_cells,
)
from verification.markup.mrkdwn import repair


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
