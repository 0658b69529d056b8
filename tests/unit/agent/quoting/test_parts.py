"""Messages that ask for several things."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.quoting.parts import MOST, questions, two_things


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("What is toil? And what is a freeze?", ["What is toil?", "And what is a freeze?"]),
        ("Who pays, and until when do I claim?", ["Who pays", "until when do I claim?"]),
        ("When is it open and is it free?", ["When is it open", "is it free?"]),
        ("Wie lange dauert es und wer zahlt?", ["Wie lange dauert es", "wer zahlt?"]),
        ("Combien coûte-t-il et qui paie ?", ["Combien coûte-t-il", "qui paie ?"]),
        ("¿Cuánto cuesta y quién paga?", ["¿Cuánto cuesta", "quién paga?"]),
        ("Berapa biayanya dan siapa yang membayar?", ["Berapa biayanya", "siapa yang membayar?"]),
        ("料金はいくらですか、いつ開きますか？", ["料金はいくらですか", "いつ開きますか？"]),
        ("When is it off, and between which hours is it on?", ["When is it off", "between which hours is it on?"]),
        ("Who pays, and up to how much?", ["Who pays", "up to how much?"]),
        ("Terms and conditions", ["Terms and conditions"]),
        ("What are the terms and conditions?", ["What are the terms and conditions?"]),
        ("", [""]),
    ],
)
def test_b_questions_one_behind_the_other_are_told_apart(text: str, parts: list[str]) -> None:
    assert questions(text) == parts


@pytest.mark.parametrize(
    ("text", "both"),
    [
        (
            "How long are audit logs and old tickets kept?",
            ("How long are audit logs?", "How long are old tickets kept?"),
        ),
        (
            "What is the price of the attic and of the hall?",
            ("What is the price of the attic?", "What is the price of the hall?"),
        ),
        ("Was kostet der Bus und die Bahn?", ("Was kostet der Bus?", "Was kostet der die Bahn?")),
    ],
)
def test_b_a_question_for_two_things_becomes_two(text: str, both: tuple[str, str]) -> None:
    assert two_things(text) == both


@pytest.mark.parametrize(
    "text",
    [
        "What is it?",
        "and why?",
        "Tell me of the and the",
        "a dog and the? of",
        "What is a and what is b?",
        "Who and",
        "Is it and is it?",
    ],
)
def test_b_a_question_for_one_thing_stays_one(text: str) -> None:
    assert two_things(text) is None


@given(st.text(max_size=200))
def test_b_parts_are_words_of_the_message_in_their_order(text: str) -> None:
    parts = questions(text)
    assert 1 <= len(parts) <= MOST
    at = 0
    for part in parts:
        at = text.index(part, at) + len(part)
