import time
from contextlib import suppress
from itertools import groupby, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.model.chat_reply import MAX_TAG, Reply, TagStream, TypedText, tags_of
from agent.model.protocol import ModelError

FIELDS = (
    "choices", "index", "message", "delta", "content", "tool_calls", "function", "function_call", "usage", "error",
    "text", "object", "type", "code", "finish_reason",
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
)


@settings(deadline=None)
@given(JSON)
def test_any_json_is_a_reply_or_a_model_error(value: object) -> None:
    for check in (Reply.check_message, Reply.check_answer):
        reply = Reply()
        with suppress(ModelError):
            reply.read(value)
            check(reply)


def typed_text(text: str, cuts: list[int] | None = None) -> list[tuple[str, str, int]]:
    """The typed text, adjacent pieces of one section joined."""
    stream = TagStream()
    edges = [0, *sorted(cut % (len(text) + 1) for cut in cuts or []), len(text)]
    pieces: list[TypedText] = []
    for begin, end in pairwise(edges):
        pieces += stream.feed(text[begin:end])
    pieces += stream.close()
    groups = groupby(pieces, key=lambda piece: (piece.kind, piece.section))
    return [(kind, "".join(piece.text for piece in group), section) for (kind, section), group in groups]


FRAGMENTS = st.sampled_from([
    "<thinking>", "</thinking>", "<think>", "</think>", "<answer>", "</answer>", "<ANSWER>", "</ answer >", "< Think >",
    '<answer lang="en">', "<answer a=b c='d e'>", "<answer a = b", "<", "<<", ">", "/", "</", "<thin", "king>", "think",
    "<answers>", "<b>", " ", "\n", "text", "äß漢", "=", '"', "'", "<answer " + "x" * MAX_TAG + ">",
    "<answer x=" + "y" * MAX_TAG + ">",
])  # fmt: skip
TEXTS = st.lists(st.one_of(FRAGMENTS, st.text(max_size=6)), max_size=14).map("".join)


@settings(deadline=None)
@given(TEXTS, st.lists(st.integers(min_value=0, max_value=2000), max_size=12))
def test_the_chunks_of_a_stream_make_no_difference(text: str, cuts: list[int]) -> None:
    assert typed_text(text, cuts) == typed_text(text) == typed_text(text, list(range(len(text))))


@settings(deadline=None)
@given(TEXTS)
def test_nothing_but_tags_is_lost(text: str) -> None:
    kept = "".join(part for _, part, _ in typed_text(text))
    remaining = iter(text)
    assert all(character in remaining for character in kept)
    assert len(kept) == len(text) or "<" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<thinking>a</thinking><answer>b</answer>", [("thinking", "a"), ("answer", "b")]),
        ("before <answer>b", [("untagged", "before "), ("answer", "b")]),
        ("<thinking>never closed", [("thinking", "never closed")]),
        ("no tags", [("untagged", "no tags")]),
        ("<THINK>a</Think><Answer lang='en'>b</ANSWER >", [("thinking", "a"), ("answer", "b")]),
        ("<think>a</thinking>c", [("thinking", "a"), ("untagged", "c")]),
        ("<thinking>I use <answer> now</thinking>c", [("thinking", "I use "), ("thinking", " now"), ("untagged", "c")]),
        ("<answer>a <think>b</think> c</answer>", [("answer", "a "), ("answer", "<think>b"), ("answer", "</think> c")]),
        ("<answer>[THINK]a[/THINK]b<think></answer>c",
         [("thinking", "a"), ("answer", "b"), ("answer", "<think>"), ("untagged", "c")]),
        ("<answer>a</thinking>b<answer>c", [("answer", "a"), ("answer", "</thinking>b"), ("answer", "c")]),
        ("[THINK]a[/THINK]b", [("thinking", "a"), ("untagged", "b")]),
        ("◁think▷a◁/think▷[THINKER] b", [("thinking", "a"), ("untagged", "[THINKER] b")]),
        ("<answer><thought>a [1</thought>b [1]</answer>", [("thinking", "a [1"), ("answer", "b [1]")]),
        ("<thinking>a</answer>b</thinking>c", [("thinking", "a"), ("thinking", "b"), ("untagged", "c")]),
        ("<answer> <think><think>c</think>d", [("answer", " "), ("thinking", "c"), ("answer", "d")]),
        ("<answer><thinking>y</answer></thinking>z", [("thinking", "y"), ("untagged", "z")]),
        ("<answer>a `<think>` b</answer>", [("answer", "a `<think>` b")]),
        ("<think>a `b`</think>c", [("thinking", "a `b`"), ("untagged", "c")]),
        ("x < answer and y > z", [("untagged", "x < answer and y > z")]),
        ("<answers>", [("untagged", "<answers>")]),
        ("<answer" + " " * MAX_TAG + ">", [("untagged", "<answer" + " " * MAX_TAG + ">")]),
    ],
)  # fmt: skip
def test_each_character_is_classified(text: str, expected: list[tuple[str, str]]) -> None:
    stream = TagStream()
    assert [(piece.kind, piece.text) for piece in [*stream.feed(text), *stream.close()]] == expected


@pytest.mark.parametrize(
    ("text", "draft", "fallback"),
    [
        ("<thinking>a</thinking><answer> b </answer> c", "b", False),
        ("<answer>unclosed", "unclosed", False),
        ("all of it", "all of it", True),
        ("<thinking>a</thinking>rest", "rest", True),
        ("<thinking>a</thinking>one<thinking>b</thinking>two", "two", True),
        ("reasoning without an opening tag</think>reply", "reply", True),
        ("</thinking>reply<thinking>and then cut off", "reply<thinking>and then cut off", True),
        ("preamble<thinking>cut off", "preamble<thinking>cut off", True),
        ("<think>cut off [1].", "", True),
        ("<think>a</think> b", "b", True),
        ("a</think> B", "B", True),
        ("Set [THINK] and [/THINK] round it [1]. Go on.", "Set [THINK] and [/THINK] round it [1]. Go on.", True),
        ("It ends with </thought>. See `</think>` [1].", "It ends with </thought>. See `</think>` [1].", True),
        ("<answer>Set <think> to see it [1]. Go on.</answer>", "Set <think> to see it [1]. Go on.", False),
        ("Hello</answer>", "Hello", True),
        ("<answer></answer>after", "", False),
        ("<answer>one</answer><thinking>x</thinking><answer>two</answer>", "one\n\ntwo", False),
        ("", "", True),
        ("<answer>five <", "five <", False),
        ("<answer>five.<|eot_id|> </s></answer>", "five.", False),
        ("It is List<s>[1].[/INST]<｜end▁of▁sentence｜>\n", "It is List<s>[1].", True),
        ("five </answ", "five </answ", True),
        ("<answer>a <ans", "a <ans", False),
    ],
)
def test_the_draft_is_the_answer_or_the_untagged_text(text: str, draft: str, fallback: bool) -> None:  # noqa: FBT001 (pytest fills it)
    stream = TagStream()
    stream.feed(text)
    assert stream.answered != fallback
    assert tags_of(text).draft == draft


@pytest.mark.parametrize("text", ["plain", "<b>", "a <b> c", "a > b", "a < b" + "c" * MAX_TAG])
def test_text_that_cannot_be_a_tag_does_not_wait(text: str) -> None:
    assert "".join(piece.text for piece in TagStream().feed(text)) == text


@pytest.mark.parametrize(
    "text", ["<", "</", "< ", "<thin", "</ANS", "<answer", "<answer a", "<answer a='x y", "<answer a=b "]
)
def test_text_that_could_be_a_tag_waits(text: str) -> None:
    stream = TagStream()
    assert stream.feed(text) == []
    assert "".join(piece.text for piece in stream.close()) == text


HOSTILE = [
    "<", "<answer ", "<answer a=", "<a", "< ", "<answer" + " " * 100, "<answer a='", "</", "<thinking><answer>", "a=b ",
]  # fmt: skip


def test_a_hostile_megabyte_takes_linear_time_and_little_memory() -> None:
    """Whole megabytes, and a tenth of one in pieces of seven characters. Quadratic work would take hours."""
    began = time.process_time()
    for piece in HOSTILE:
        for length, step in ((1 << 20, 1 << 20), (100_000, 7)):
            text = ("<answer " if piece == "a=b " else "") + piece * (length // len(piece))
            stream = TagStream()
            for start in range(0, len(text), step):
                stream.feed(text[start : start + step])
                assert len(stream._held) < MAX_TAG
    assert time.process_time() - began < 60


def tag_of(length: int) -> str:
    """An opening tag of exactly ``length`` characters."""
    return f'<answer a="{"x" * (length - 13)}">'


def test_the_longest_tag_is_a_tag_wherever_it_is_cut_and_a_longer_one_is_text() -> None:
    longest = tag_of(MAX_TAG)
    assert len(longest) == MAX_TAG
    for cut in (1, 2, MAX_TAG - 2, MAX_TAG - 1):
        assert typed_text(f"{longest}yes", [cut]) == [("answer", "yes", 1)]
    assert typed_text(f"{tag_of(MAX_TAG + 1)}no")[0][0] == "untagged"


def test_text_too_long_to_be_a_tag_is_not_held_back() -> None:
    unfinished = tag_of(MAX_TAG + 9)[:MAX_TAG]
    stream = TagStream()
    assert [piece.text for piece in stream.feed(unfinished)] == [unfinished]
    held = TagStream()
    assert held.feed(unfinished[:-1]) == []


def test_each_effective_tag_begins_one_new_section() -> None:
    assert [section for _, _, section in typed_text("a<thinking>b</thinking>c<answer>d</answer>e")] == [0, 1, 2, 3, 4]


def test_closing_a_stream_twice_adds_nothing() -> None:
    stream = TagStream()
    assert stream.feed("a <ans") == [TypedText(kind="untagged", text="a ")]
    assert stream.close() == [TypedText(kind="untagged", text="<ans")]
    assert stream.close() == []
    assert stream.feed("b") == [TypedText(kind="untagged", text="b")]
