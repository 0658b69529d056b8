"""verification/markup/lines.py: what each line of an answer is."""

from hypothesis import given
from hypothesis import strategies as st

from verification.markup.lines import ends_in_colon, lines


def kinds(text: str) -> list[tuple[str, str]]:
    return [(line.kind, text[line.content : line.end]) for line in lines(text) if line.kind != "blank"]


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
        assert kinds(text) == expected


def test_a_citation_after_the_colon_changes_nothing() -> None:
    assert ends_in_colon("*The steps:* [1]")
    assert not ends_in_colon("At 10:00 it starts")


@given(st.text(alphabet="ab.1 \n-•|*#`:。[]~>", max_size=120))
def test_lines_are_in_order_and_cover_the_visible_text(text: str) -> None:
    last = 0
    for line in lines(text):
        assert last <= line.start <= line.content <= max(line.content, line.end) <= len(text)
        assert not text[last : line.start].strip()
        last = line.end
    assert not text[last:].strip()
