"""A message without what only takes up room, before anything reads it for its questions."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.quoting.message_text import normalised
from agent.quoting.parts import questions
from agent.quoting.told import claimed, told_and_asked


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("  How  do\n\n\nI start ?? ", "How do\nI start ?"),
        ("What?! Really!!", "What? Really!"),
        ("Where is it. . . . . Here?", "Where is it. Here?"),
        ("Run `x --force` - why?", "Run `x --force` - why?"),
        ("a - - - - b?", "a - b?"),
        ("> is it 100?\nIs it 140?", "Is it 140?"),
        ("```\nwhat is this?\n```\nWhat is toil?", "What is toil?"),
        ("```\nwhat is this?\n```", "```\nwhat is this?\n```"),
        ("> what is toil?", "> what is toil?"),
        ("???", "?"),
        ("", ""),
    ],
)
def test_b_a_message_is_read_without_what_only_takes_up_room(text: str, read: str) -> None:
    assert normalised(text) == read


@given(st.text(max_size=200))
def test_b_to_read_a_message_twice_changes_nothing_and_loses_no_word_outside_quotations(text: str) -> None:
    read = normalised(text)
    assert normalised(read) == read
    if "`" not in text and ">" not in text:
        assert re.findall(r"\w+", read) == re.findall(r"\w+", text)


@pytest.mark.parametrize(
    "filler",
    [" ", "\n", ", ", "- ", ".", "? ", "a ? ", "'a b ", "word ", "word, ", "word: ", "@", "1 or ", "\n> a", "```"],
)
def test_b_a_long_message_is_read_in_linear_time(filler: str) -> None:
    began = time.process_time()
    much = filler * 10_000
    for text in (much, f"I asked Bob{much}what is that?", f"{much}who?", f"who? {much}", f"who? {much}ok?"):
        told, asks = told_and_asked(normalised(text))
        assert told or asks or not text.strip()
        for question in questions(asks):
            claimed(question)
    assert time.process_time() - began < 5
