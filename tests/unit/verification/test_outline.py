"""The parts of a text that salvage keeps or drops."""

from hypothesis import given
from hypothesis import strategies as st

from verification.salvage import outline


def shape(text: str) -> list[tuple[str, str]]:
    return [(part.kind, text[part.start : part.end].strip()) for part in outline(text)]


def test_a_text_is_split_into_its_parts() -> None:
    for text, parts in [
        ("", []),
        ("One. Two [1]. Three", [("sentence", "One."), ("sentence", "Two [1]."), ("sentence", "Three")]),
        ("„Alles gut.” [1]", [("sentence", "„Alles gut.” [1]")]),
        ("One. [1] Two.", [("sentence", "One. [1]"), ("sentence", "Two.")]),
        ("返金は14日です[1]。次です。", [("sentence", "返金は14日です[1]。"), ("sentence", "次です。")]),
        ("*Head*\nText", [("heading", "*Head*"), ("sentence", "Text")]),
        ("## Head\n\nText", [("heading", "## Head"), ("sentence", "Text")]),
        ("• a\n• b", [("item", "• a"), ("item", "• b")]),
        ("- a\n  more\n- b", [("item", "- a\n  more"), ("item", "- b")]),
        ("1. a\n\n2. b\n\nText", [("item", "1. a"), ("item", "2. b"), ("sentence", "Text")]),
        ("```\ncode\n```", [("fence", "```\ncode\n```")]),
        ("| a |\n|---|\n| 1 |", [("head", "| a |"), ("head", "|---|"), ("row", "| 1 |")]),
        (
            "```\na  b\n-- --\n1  2\n```",
            [("head", "```"), ("head", "a  b"), ("head", "-- --"), ("row", "1  2"), ("foot", "```")],
        ),
        ("```\n--\na\n```", [("fence", "```\n--\na\n```")]),
    ]:
        assert shape(text) == parts


def test_the_depth_and_number_of_list_items_are_read() -> None:
    parts = outline("3. a\n   - b\n4. c:\n")
    assert [(part.indent, part.number, part.introduces) for part in parts] == [
        (0, 3, False),
        (3, None, False),
        (0, 4, True),
    ]


@given(st.text(alphabet="ab.1 \n-•|*#`:。[]", max_size=120))
def test_parts_are_in_order_and_cover_the_visible_text(text: str) -> None:
    last = 0
    for part in outline(text):
        assert last <= part.start < part.end <= len(text)
        assert not text[last : part.start].strip()
        last = part.end
    assert not text[last:].strip()
