"""The scanner: fence, then inline code, then token, then text."""

from hypothesis import given, settings
from hypothesis import strategies as st

from verification.markup.scanner import code_spans, fences, segments


def kinds(text: str) -> list[tuple[str, str]]:
    return [(part.kind, text[part.start : part.end]) for part in segments(text)]


@settings(max_examples=300, deadline=None)
@given(text=st.text(alphabet="`~<>|\n a>-1.@U:/h", max_size=80) | st.text(max_size=80))
def test_segments_cover_the_text_in_order(text: str) -> None:
    parts = segments(text)
    assert "".join(text[part.start : part.end] for part in parts) == text
    assert all(part.start < part.end for part in parts)


def test_code_comes_before_tokens_and_tokens_before_text() -> None:
    assert kinds("a `<https://x.y>` <https://x.y|l `m`> b") == [
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
        assert kinds(token) == [("token", token)]


def test_other_angle_brackets_are_plain_text() -> None:
    for text in ["<foo>", "<std::vector>", "<https://x y>", "< https://x.y>", "<!unknown>", "<javascript:x>"]:
        assert kinds(text) == [("text", text)]


def test_inline_code_never_crosses_a_line_ending() -> None:
    assert kinds("a `b\nc` d") == [("text", "a `b\nc` d")]


def test_code_spans_close_with_a_run_of_the_same_length() -> None:
    assert kinds("``a`b`` `c``d`") == [("code", "``a`b``"), ("text", " "), ("code", "`c``d`")]
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


def test_no_fence_is_found_here() -> None:
    for text in ["a ``` b", "a ```b``` c", "```a``` b\nc", "``\na\n``", "a ~~~\nb\n"]:
        assert fences(text) == []


def test_ticks_in_a_line_do_not_swallow_a_real_fence() -> None:
    text = "Use ``` to open.\n\n```\ncode\n```"
    (fence,) = fences(text)
    assert text[fence.start : fence.end] == "```\ncode\n```"
